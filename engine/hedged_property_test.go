package engine_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/throttle"
)

// contest is one hedged call in virtual time, and what the world remembers of it to
// hold against the engine.
type contest struct {
	call     engine.Call
	hedged   engine.HedgedCall
	spec     engine.Spec
	deadline time.Duration
	racers   []*racer
	asks     int // changes when an appointment to ask for another attempt is off
	over     bool
	reason   lull.Reason
}

type racer struct {
	engine.HedgedAttempt
	verdict  lull.Verdict
	ends     time.Duration
	panics   bool
	returned bool
}

func (c *contest) flying() (n int) {
	for _, r := range c.racers {
		if !r.returned {
			n++
		}
	}
	return n
}

func randomHedging(r *rand.Rand) lull.Policy {
	pick := func(d ...time.Duration) time.Duration { return d[r.IntN(len(d))] }
	p := randomPolicy(r)
	p.Attempts = r.IntN(2)
	p.Hedge = hedge.Config{Attempts: 2 + r.IntN(4), Delay: pick(0, 0, 5*ms, 50*ms, hedge.AtOnce), InFlight: []int{0, 1, 3}[r.IntN(3)]}
	if p.Hedge.Delay == hedge.AtOnce || r.IntN(2) == 0 {
		p.Hedge.Share = -1
	}
	return p
}

func (w *world) arriveHedged() {
	w.calls++
	c := &contest{spec: engine.Spec{NotIdempotent: w.r.IntN(4) == 0, NotReplayable: w.r.IntN(20) == 0, UnlessUnsent: w.r.IntN(2) == 0}}
	c.deadline = math.MaxInt64
	if limit := w.policy.WithDefaults().Deadline; limit > 0 {
		c.deadline = w.now + limit
	}
	var step engine.Step
	c.call, step = w.d.State().Start(w.now, c.spec)
	if step.Done {
		w.refused++
		return
	}
	c.hedged.Call = &c.call
	w.firstOf(c)
}

func (w *world) firstOf(c *contest) {
	step := c.hedged.Attempt(w.now, w.r.Uint64)
	switch {
	case step.Done:
		w.decided(c, step)
	case step.Full: // a caller that cannot wait gives up
		w.decided(c, c.hedged.Stop(w.now, engine.Canceled, w.r.Uint64))
	case step.Wait > 0:
		w.after(step.Wait, func() { w.firstOf(c) })
	default:
		r := &racer{}
		w.ask(c, c.hedged.First(w.now, &r.HedgedAttempt))
		w.attemptBegan(c, r)
	}
}

// ask makes an appointment to ask for another attempt.
func (w *world) ask(c *contest, wait time.Duration) {
	c.asks++
	if wait == math.MaxInt64 {
		return
	}
	if wait < 0 || c.deadline != math.MaxInt64 && w.now+wait >= c.deadline {
		w.fatalf("at %v another attempt is to be asked for in %v, the deadline is %v", w.now, wait, c.deadline)
	}
	turn := c.asks
	w.after(wait, func() {
		if !c.over && c.asks == turn {
			w.another(c)
		}
	})
}

func (w *world) another(c *contest) {
	r := &racer{}
	flying, inFlight := c.flying(), w.d.Hedger().InFlight()
	step := c.hedged.Hedge(w.now, &r.HedgedAttempt, w.r.Uint64)
	switch {
	case step.Done:
		if flying > 0 {
			w.fatalf("a call ended with %v while %d attempts were in flight", step.Reason, flying)
		}
		w.decided(c, step)
		return
	case step.Full:
		if flying == 0 && step.Wait == math.MaxInt64 {
			w.fatalf("with nobody in flight another attempt was refused for %v, and the call goes on", step.Reason)
		}
		w.ask(c, step.Wait)
		return
	}
	limit := w.policy.Hedge.InFlight
	if limit == 0 {
		limit = hedge.DefaultInFlight
	}
	last := lull.Verdict{Kind: lull.KindSuccess}
	if n := len(c.racers); n > 0 {
		last = c.racers[n-1].verdict
	}
	switch {
	case len(c.racers)+1 > w.policy.Hedge.Attempts:
		w.fatalf("attempt %d of a policy that allows %d", len(c.racers)+1, w.policy.Hedge.Attempts)
	case c.spec.NotReplayable && (flying > 0 || !c.spec.UnlessUnsent || !last.NeverSent):
		w.fatalf("a request that cannot be made again was")
	case c.spec.NotIdempotent && (flying > 0 || !last.NeverSent):
		w.fatalf("an unsafe operation was repeated beside %d others, after %+v", flying, last)
	case flying > 0 && inFlight >= limit:
		w.fatalf("a hedge began beside %d others, the limit is %d", inFlight, limit)
	case w.now >= c.deadline:
		w.fatalf("an attempt began at %v, the deadline is %v", w.now, c.deadline)
	}
	w.retries++
	if last.After > 0 { // it may have been free
		w.invited++
	}
	w.ask(c, step.Wait)
	w.attemptBegan(c, r)
}

// attemptBegan is an attempt under way, whose end is drawn now.
func (w *world) attemptBegan(c *contest, r *racer) {
	c.racers = append(c.racers, r)
	if got := c.hedged.Attempts(); got != len(c.racers) {
		w.fatalf("the engine counts %d attempts, the world %d", got, len(c.racers))
	}
	var took time.Duration
	r.verdict, r.panics, took = w.drawEnd(c.hedged.Timeout(w.now))
	r.ends = w.now + took
	w.after(took, func() { w.attemptEnded(c, r) })
}

func (w *world) attemptEnded(c *contest, r *racer) {
	if r.returned {
		return // it was cancelled
	}
	r.returned = true
	flying := c.flying()
	if r.panics {
		c.hedged.Release(w.now, &r.HedgedAttempt)
		c.hedged.Abandon(w.now)
		w.decided(c, engine.Step{Decision: engine.Decision{Done: true, Reason: engine.Canceled}})
		return
	}
	v := r.verdict
	step := c.hedged.Ended(w.now, &r.HedgedAttempt, v, w.r.Uint64)
	known := v.Kind == lull.KindPermanent && v.Code != engine.CodeRetriedBelow
	final := v.Kind == lull.KindSuccess || v.Kind == engine.KindCanceled || known
	switch {
	case final != step.Done && final:
		w.fatalf("after %+v the call goes on", v)
	case !final && step.Done && flying > 0:
		w.fatalf("%+v ended a call of which %d attempts were in flight", v, flying)
	case (step.Reason == engine.Success) != (v.Kind == lull.KindSuccess) && step.Done:
		w.fatalf("%+v ended a call with %v", v, step.Reason)
	case !step.Done && step.Wait != math.MaxInt64 && v.After > 0 && step.Wait < v.After:
		w.fatalf("another attempt in %v, sooner than the server asked for: %v", step.Wait, v.After)
	case !step.Done && step.Wait == math.MaxInt64 && flying == 0:
		w.fatalf("after %+v nobody is in flight, and nobody will be", v)
	}
	if step.Done {
		w.decided(c, step)
		return
	}
	if w.r.IntN(100) == 0 {
		w.decided(c, c.hedged.Stop(w.now, engine.Canceled, w.r.Uint64))
		return
	}
	w.ask(c, step.Wait)
}

// decided cancels those that have lost. They return a little later.
func (w *world) decided(c *contest, step engine.Step) {
	if c.over {
		w.fatalf("a call ended twice")
	}
	c.over, c.reason = true, step.Reason
	if step.Reason == engine.Success {
		w.successes++
		w.helped += len(c.racers) - 1
	}
	for _, r := range c.racers {
		if r.returned {
			continue
		}
		r.returned = true
		w.after(time.Duration(w.r.Int64N(int64(2*ms))), func() {
			if w.r.IntN(2) == 0 {
				c.hedged.Release(w.now, &r.HedgedAttempt)
			} else if again := c.hedged.Ended(w.now, &r.HedgedAttempt, r.verdict, w.r.Uint64); !again.Done || again.Reason != c.reason {
				w.fatalf("a call that ended with %v goes on with %+v when a loser returns", c.reason, again)
			}
			c.hedged.Release(w.now, &r.HedgedAttempt) // once more is nothing
		})
	}
	var late engine.HedgedAttempt
	if again := c.hedged.Hedge(w.now, &late, nil); !again.Done {
		w.fatalf("a call that ended with %v goes on", step.Reason)
	}
}

// The promises of a HedgedCall hold under any policy that hedges: see the fatalfs of this file.
// When all calls have ended, nothing is held.
func TestHedgedCallsKeepTheirPromises(t *testing.T) {
	worlds, callsEach := seed.Runs(30), 2000
	base := seed.Fresh(t)
	calls, extra := 0, 0
	for i := range uint64(worlds) {
		seed := base + i
		r := rand.New(rand.NewPCG(seed, 0))
		w := &world{t: t, seed: seed, r: r, policy: randomHedging(r)}
		var err error
		if w.d, err = lull.NewDependency("world", w.policy); err != nil {
			w.fatalf("%v", err)
		}
		w.play(callsEach, 500, w.arriveHedged, w.paidFor)
		if l := w.d.Limiter(); l != nil && l.InFlight() != 0 {
			w.fatalf("all calls have ended, but %d permits are out", l.InFlight())
		}
		if n := w.d.State().Waiting(); n != 0 {
			w.fatalf("all calls have ended, but %d are counted that wait", n)
		}
		if n := w.d.Hedger().InFlight(); n != 0 {
			w.fatalf("all calls have ended, but %d hedges are in flight", n)
		}
		calls, extra = calls+w.calls, extra+w.retries
	}
	t.Logf("%d calls, %d attempts beside or after the first (base seed %d)", calls, extra, base)
}

// FuzzHedgedCall calls the methods of a HedgedCall in any order, at any times.
// Nothing may panic, and nothing is held in the end.
func FuzzHedgedCall(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x02\x01 a first, a hedge, and some ends"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := tape(data)
		p := in.policy()
		p.Attempts = int(in.byte() % 2)
		p.Hedge = hedge.Config{Attempts: int(in.byte() % 6), Delay: in.duration(), Percentile: in.float(), Window: in.duration(), MinSamples: int(int8(in.byte())), MinDelay: in.duration(), MaxDelay: in.duration(), Share: in.float(), InFlight: int(int8(in.byte()))}
		d, err := lull.NewDependency("fuzzed", p)
		if err != nil {
			p = lull.Policy{
				Hedge:    hedge.Config{Attempts: 3, Delay: 100 * time.Microsecond, Share: -1, InFlight: 2},
				Throttle: throttle.Config{Mode: throttle.Mode(in.byte() % 3)},
				Limit:    bulkhead.Config{InFlight: int(in.byte() % 3)},
				Budget:   budget.Config{Stock: 10},
				Breaker:  breaker.Config{Off: in.byte()%2 == 0},
			}
			if d, err = lull.NewDependency("fuzzed", p); err != nil {
				t.Fatal(err)
			}
		}
		luck := func() uint64 { return uint64(in.int64()) }
		for len(in) > 0 {
			now := in.duration()
			call, step := d.State().Start(now, engine.Spec{Deadline: in.duration(), NotIdempotent: in.byte()%4 == 0, NotReplayable: in.byte()%4 == 0, UnlessUnsent: len(in)%2 == 0})
			if step.Done {
				continue
			}
			c := engine.HedgedCall{Call: &call}
			var racers [8]engine.HedgedAttempt
			if step = c.Attempt(now, luck); step.Done || step.Full || step.Wait > 0 {
				c.Abandon(now)
				continue
			}
			c.First(now, &racers[0])
			begun := 1
			for range 12 {
				now = in.duration()
				r := &racers[int(in.byte())%begun]
				switch in.byte() % 8 {
				case 0:
					c.Abandon(now)
				case 1:
					c.Stop(now, lull.Reason(in.byte()), luck)
				case 2:
					c.Release(now, r)
				case 3, 4, 5:
					if step := c.Hedge(now, &racers[begun], luck); !step.Done && !step.Full {
						begun++
					}
				default:
					c.Ended(now, r, lull.Verdict{Kind: engine.VerdictKind(in.byte() % 10), After: in.duration(), NeverSent: in.byte()%2 == 0, Code: []string{"", "503", engine.CodeUnclassified, engine.CodeTimeout}[in.byte()%4]}, luck)
				}
			}
			for i := range racers {
				c.Release(now, &racers[i])
			}
			c.Abandon(now)
			if l := d.Limiter(); l != nil && l.InFlight() != 0 {
				t.Fatalf("%d permits are out", l.InFlight())
			}
			if n := d.State().Waiting(); n != 0 {
				t.Fatalf("%d calls wait", n)
			}
			if n := d.Hedger().InFlight(); n != 0 {
				t.Fatalf("%d hedges are in flight", n)
			}
		}
	})
}
