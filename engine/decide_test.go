package engine_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/budgettest"
	"github.com/lullgo/lull/internal/seed"
)

// twins is one call on two dependencies: as a plain call on one, and as a hedged call without
// overlapping attempts on the other.
type twins struct {
	w      *world
	plain  engine.Call
	call   engine.Call
	hedged engine.HedgedCall
	racer  engine.HedgedAttempt
	of     [2]*lull.Dependency
}

// same compares the Steps of the two, and what their dependencies remember.
func (p *twins) same(what string, plain, hedged engine.Step) {
	p.w.t.Helper()
	if hedged.Full { // a plain call has to ask again
		hedged.Full = false
	} else if what == "an attempt" && hedged.Wait >= time.Hour {
		hedged.Wait = 0 // when to ask for another beside it
	}
	if plain != hedged {
		p.w.fatalf("at %v, %s: plain %+v, hedged %+v", p.w.now, what, plain, hedged)
	}
	a, b := p.of[0], p.of[1]
	p.w.remembers(what, a, b)
	if x, y := a.Limiter(), b.Limiter(); x != nil && x.InFlight() != y.InFlight() {
		p.w.fatalf("at %v, %s: %d and %d in flight", p.w.now, what, x.InFlight(), y.InFlight())
	}
}

func (w *world) arriveTwice(of [2]*lull.Dependency) {
	w.calls++
	p := &twins{w: w, of: of}
	spec := engine.Spec{NotIdempotent: w.r.IntN(4) == 0, NotReplayable: w.r.IntN(20) == 0}
	if w.r.IntN(3) == 0 {
		spec.Deadline = w.now + time.Duration(w.r.Int64N(int64(time.Second)))
	}
	var plain, hedged engine.Step
	p.plain, plain = of[0].State().Start(w.now, spec)
	p.call, hedged = of[1].State().Start(w.now, spec)
	p.same("the start", plain, hedged)
	if plain.Done {
		return
	}
	if w.r.IntN(20) == 0 {
		p.plain.NestedIn(2)
		p.call.NestedIn(2)
	}
	p.hedged.Call = &p.call
	p.attempt()
}

func (p *twins) attempt() {
	luck := p.w.luck()
	first := p.plain.Attempts() == 0
	plain := p.plain.Attempt(p.w.now, luck)
	var hedged engine.Step
	if first {
		hedged = p.hedged.Attempt(p.w.now, luck)
	} else {
		hedged = p.hedged.Hedge(p.w.now, &p.racer, luck)
	}
	p.same("an attempt", plain, hedged)
	switch {
	case plain.Done:
	case plain.Wait > 0:
		p.w.after(plain.Wait, p.attempt)
	default:
		if first {
			p.hedged.First(p.w.now, &p.racer)
		} else {
			p.w.retries++
		}
		p.attemptBegan()
	}
}

// attemptBegan draws how the attempt ends.
func (p *twins) attemptBegan() {
	w := p.w
	v, _, took := w.drawEnd(p.plain.Timeout(w.now))
	w.after(took, func() {
		luck := p.w.luck()
		plain := p.plain.Next(w.now, v, luck)
		hedged := p.hedged.Ended(w.now, &p.racer, v, luck)
		p.same("the end of an attempt", plain, hedged)
		if !plain.Done {
			w.after(plain.Wait, p.attempt)
		}
	})
}

// Rule 15: the retries of a hedged call meet the same conditions and cost the same. A hedged call
// without overlapping attempts is a plain one whose retries follow at once.
func TestRule15AHedgedCallDecidesAsAPlainOne(t *testing.T) {
	worlds, callsEach := seed.Runs(40), 1000
	const base = 1500
	calls, retries := 0, 0
	for i := range uint64(worlds) {
		seed := base + i
		r := rand.New(rand.NewPCG(seed, 0))
		plain := randomPolicy(r)
		plain.Attempts = 2 + r.IntN(4)
		plain.Backoff = backoff.Schedule{Kind: backoff.Constant}
		plain.Limit = bulkhead.Config{InFlight: []int{0, 1, 5}[r.IntN(3)]}
		if !plain.Breaker.Off && r.IntN(2) == 0 {
			plain.Breaker.FailureRate = 0.5
		}
		hedged := plain
		hedged.Attempts, hedged.Hedge = 0, hedge.Config{Attempts: plain.Attempts, Delay: time.Hour, Share: -1, InFlight: -1}
		kind := r.IntN(5)
		w := &world{t: t, seed: seed, r: r, policy: plain}
		var of [2]*lull.Dependency
		for j, p := range []lull.Policy{plain, hedged} {
			of[j] = newDependency(t, p, lull.WithBudget(budgetOfKind(kind)))
			of[j].Budget() // Without a hedge a state makes its budget when it is needed: the first call earns nothing.
		}
		w.play(callsEach, 200, func() { w.arriveTwice(of) }, nil)
		calls, retries = calls+w.calls, retries+w.retries
	}
	t.Logf("%d calls, %d retries (base seed %d)", calls, retries, base)
	if retries < calls/20 {
		t.Errorf("%d retries of %d calls: nothing was compared", retries, calls)
	}
}

// budgetOfKind is the policy's own (nil), or another kind.
func budgetOfKind(kind int) func() budget.Budget {
	return [...]func() budget.Budget{
		nil,
		func() budget.Budget { return &budgettest.Budget{Stock: 50} },
		func() budget.Budget {
			return must(budget.NewGRPCThrottle(budget.GRPCConfig{MaxTokens: 10, TokenRatio: 0.5}))
		},
		func() budget.Budget { return &budgettest.Budget{AtMost: 4, Stock: 200} },
		func() budget.Budget { return &budgettest.Budget{AtMost: 3} },
	}[kind]
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Hedged calls repeat timeouts by the same rule: if another call was answered quickly, before or
// while they wait.
func TestRule15HedgedTimeoutsAreRepeatedRarely(t *testing.T) {
	for _, c := range []struct {
		name        string
		later, took time.Duration
		want        engine.Reason
	}{
		{"quick", 5 * time.Millisecond, 5 * time.Millisecond, engine.Success},
		{"quick, while it waits", 70 * time.Millisecond, 5 * time.Millisecond, engine.Success},
		{"slow", 5 * time.Millisecond, 25 * time.Millisecond, engine.Unanswered},
		{"none", 0, 0, engine.Success},
	} {
		d := newDependency(t, lull.Policy{
			Hedge:   hedge.Config{Attempts: 2, Delay: time.Hour, Share: -1},
			Budget:  plenty,
			Breaker: breaker.Config{Off: true},

			AttemptTimeout: 40 * time.Millisecond,
		})
		now := time.Duration(0)
		for range 100 {
			callOf(t, d, now, 5*time.Millisecond, success)
			now += 25 * time.Millisecond
		}
		call := begun(t, d, now)
		h := engine.HedgedCall{Call: &call}
		var r engine.HedgedAttempt
		h.First(now, &r)
		began := now
		answer := func() {
			if c.later > 0 && now >= began+c.later+c.took {
				callOf(t, d, began+c.later, c.took, success)
				c.later = 0
			}
		}
		now += 40 * time.Millisecond
		answer()
		step := h.Ended(now, &r, timedOut, nil)
		for !step.Done {
			now += step.Wait
			answer()
			if step = h.Hedge(now, &r, nil); !step.Full {
				break
			}
		}
		if step.Reason != c.want {
			t.Errorf("%s: %+v, want %v", c.name, step, c.want)
		}
	}
}

// A hint holds for the call: an attempt that fails later without a hint does not make the next
// one begin sooner.
func TestRule15AHintIsNotForgottenBesideOthers(t *testing.T) {
	d := newDependency(t, hedging(4))
	call := begun(t, d, 0)
	c := engine.HedgedCall{Call: &call}
	var first, second, third engine.HedgedAttempt
	c.First(0, &first)
	if step := c.Hedge(10*ms, &second, nil); step.Done || step.Full {
		t.Fatalf("no hedge: %+v", step)
	}
	hint := c.Ended(20*ms, &second, lull.Verdict{Kind: lull.KindTransient, Code: "503", After: 100 * ms}, func() uint64 { return 0 })
	if hint.Wait != 100*ms {
		t.Fatalf("%+v, want a wait of 100 ms", hint)
	}
	if step := c.Ended(30*ms, &first, transient, nil); step.Done || step.Wait != 90*ms {
		t.Errorf("%+v, want the rest of the hint, 90 ms", step)
	}
	if step := c.Hedge(120*ms, &third, nil); step.Done || step.Full {
		t.Errorf("after the hint: %+v", step)
	}
}

// An attempt releases what it holds once, however often Release is called, also after it has
// ended or lost.
func TestReleaseGivesBackOnce(t *testing.T) {
	p := hedging(3)
	p.Limit = bulkhead.Config{InFlight: 10}
	d := newDependency(t, p)
	call := begun(t, d, 0)
	c := engine.HedgedCall{Call: &call}
	var all [3]engine.HedgedAttempt
	c.First(0, &all[0])
	for i := range all[1:] {
		if step := c.Hedge(time.Duration(i+1)*10*ms, &all[i+1], nil); step.Done || step.Full {
			t.Fatalf("no hedge: %+v", step)
		}
	}
	c.Ended(30*ms, &all[1], transient, nil)
	c.Ended(40*ms, &all[0], lull.Verdict{Kind: lull.KindSuccess}, nil)
	for range 2 {
		for i := range all {
			c.Release(50*ms, &all[i])
		}
	}
	if n, places, hedges := c.InFlight(), d.Limiter().InFlight(), d.Hedger().InFlight(); n != 0 || places != 0 || hedges != 0 {
		t.Errorf("after all have been released %d attempts are in flight, and %d places and %d hedges are out", n, places, hedges)
	}
}
