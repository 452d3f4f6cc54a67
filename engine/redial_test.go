package engine_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/seed"
)

func redialPlan(t testing.TB, p engine.RedialPolicy) *engine.RedialPlan {
	t.Helper()
	plan, err := engine.NewRedialPlan(p)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// draws returns sources that draw the least, the middle and the most.
func draws() map[string]func() uint64 {
	return map[string]func() uint64{
		"least": func() uint64 { return 0 }, "middle": nil, "most": func() uint64 { return math.MaxUint64 },
	}
}

// The waits of the zero policy, from the least draw to the most.
func TestRedialWaits(t *testing.T) {
	const s = time.Second
	hint := func(after time.Duration) engine.Verdict {
		return engine.Verdict{Kind: engine.KindRateLimited, After: after}
	}
	for _, x := range []struct {
		name                string
		step                func(r *engine.Redial, random func() uint64) time.Duration
		least, middle, most time.Duration
	}{
		{"start", func(r *engine.Redial, random func() uint64) time.Duration { return r.Start(0, random) }, 0, s / 2, s},
		{"lost", func(r *engine.Redial, random func() uint64) time.Duration {
			r.Connected(0)
			return r.Lost(60*s, engine.Verdict{}, 0, random).Wait
		}, 0, 15 * s / 8, 15 * s},
		{"lost, with a hint", func(r *engine.Redial, random func() uint64) time.Duration {
			r.Connected(0)
			return r.Lost(60*s, hint(3*s), 0, random).Wait
		}, 3 * s, 3*s + 15*s/8, 18 * s},
		{"drained", func(r *engine.Redial, random func() uint64) time.Duration {
			r.Connected(0)
			return r.Lost(60*s, engine.Verdict{}, 40*s, random).Wait
		}, 0, 20 * s, 40 * s},
		{"died young", func(r *engine.Redial, random func() uint64) time.Duration {
			r.Connected(0)
			return r.Lost(59*s, engine.Verdict{}, 0, random).Wait
		}, 0, s / 2, s},
		{"failed", func(r *engine.Redial, random func() uint64) time.Duration {
			return r.Failed(0, engine.Verdict{}, random).Wait
		}, 0, s / 2, s},
		{"failed often", func(r *engine.Redial, random func() uint64) (wait time.Duration) {
			for range 50 {
				wait = r.Failed(0, engine.Verdict{Kind: engine.KindTransient}, random).Wait
			}
			return wait
		}, 0, 30 * s, 60 * s},
		{"refused, with a hint", func(r *engine.Redial, random func() uint64) time.Duration {
			return r.Failed(0, hint(10*s), random).Wait
		}, 10 * s, 15 * s, 20 * s},
		{"refused, with a hint without end", func(r *engine.Redial, random func() uint64) time.Duration {
			return r.Failed(0, hint(math.MaxInt64), random).Wait
		}, math.MaxInt64, math.MaxInt64, math.MaxInt64},
	} {
		want := map[string]time.Duration{"least": x.least, "middle": x.middle, "most": x.most}
		for draw, random := range draws() {
			r := redialPlan(t, engine.RedialPolicy{}).Redial()
			if got := x.step(&r, random); (got - want[draw]).Abs() > time.Microsecond {
				t.Errorf("%s: the %s wait is %v, want %v", x.name, draw, got, want[draw])
			}
		}
	}
}

// Only a connection that has lasted sets the count of failures back. A drain is no failure.
func TestRedialCounts(t *testing.T) {
	r := redialPlan(t, engine.RedialPolicy{}).Redial()
	now := time.Duration(0)
	lives := func(for_, drain time.Duration) {
		r.Connected(now)
		now += for_
		r.Lost(now, engine.Verdict{}, drain, nil)
	}
	r.Start(now, nil)
	for i, x := range []struct {
		for_, drain time.Duration
		want        int // failures
	}{{time.Second, 0, 1}, {time.Second, 0, 2}, {time.Second, time.Minute, 2}, {59 * time.Second, 0, 3}, {time.Minute, 0, 0}, {time.Hour, 0, 0}, {0, 0, 1}} {
		lives(x.for_, x.drain)
		next := r
		if got := next.Failed(now, engine.Verdict{}, nil).Ceiling; got != engine.DefaultRedialBase<<x.want {
			t.Errorf("%d: the next ceiling is %v, want that after %d failures", i, got, x.want)
		}
	}
}

// Down counts the time since there was a connection that lasted.
func TestRedialDown(t *testing.T) {
	r := redialPlan(t, engine.RedialPolicy{}).Redial()
	const s = time.Second
	r.Start(10*s, nil)
	r.Failed(20*s, engine.Verdict{}, nil)
	r.Connected(30 * s)
	if got := r.Down(35*s, true); got != 25*s {
		t.Errorf("with a young connection: %v", got)
	}
	r.Lost(40*s, engine.Verdict{}, 0, nil)
	if got := r.Down(50*s, false); got != 40*s {
		t.Errorf("after it: %v", got)
	}
	r.Connected(60 * s)
	if got := r.Down(120*s, true); got != 0 {
		t.Errorf("with one that has lasted: %v", got)
	}
	r.Lost(130*s, engine.Verdict{}, 0, nil)
	if got := r.Down(131*s, false); got != s {
		t.Errorf("after that: %v", got)
	}
}

// It ends when the caller goes, and after a permanent answer as long as no connection has lasted.
// A name that does not exist may exist later.
func TestRedialEnds(t *testing.T) {
	refusal := engine.Verdict{Kind: engine.KindPermanent, Code: "403"}
	for _, x := range []struct {
		v               engine.Verdict
		why, afterwards engine.Reason // why it ends before a connection has lasted, and after; Success: it goes on
	}{
		{refusal, engine.Permanent, engine.Success},
		{engine.Verdict{Kind: engine.KindPermanent, Code: "nxdomain", NeverSent: true}, engine.Success, engine.Success},
		{engine.Verdict{Kind: engine.KindPermanent, Code: engine.CodeRetriedBelow}, engine.Success, engine.Success},
		{engine.Verdict{Kind: engine.KindCanceled}, engine.Canceled, engine.Canceled},
		{engine.Verdict{}, engine.Success, engine.Success},
		{engine.Verdict{Kind: engine.KindOverloaded}, engine.Success, engine.Success},
	} {
		const minute = time.Minute
		fresh, young, old := redialPlan(t, engine.RedialPolicy{}).Redial(), redialPlan(t, engine.RedialPolicy{}).Redial(), redialPlan(t, engine.RedialPolicy{}).Redial()
		check := func(name string, step engine.Step, why engine.Reason) {
			if step.Done != (why != engine.Success) || step.Reason != why {
				t.Errorf("%s with %+v: %+v, want %v", name, x.v, step, why)
			}
		}
		check("the first dial", fresh.Failed(0, x.v, nil), x.why)
		young.Connected(0)
		check("a young connection", young.Lost(minute-1, x.v, 0, nil), x.why)
		young.Connected(minute)
		check("another young connection, drained", young.Lost(2*minute-1, x.v, minute, nil), x.why)
		check("a dial after young connections", young.Failed(2*minute, x.v, nil), x.why)
		old.Connected(0)
		check("a connection that has lasted", old.Lost(minute, x.v, 0, nil), x.afterwards)
		check("a dial after it", old.Failed(minute, x.v, nil), x.afterwards)
		old.Connected(minute)
		check("a young connection after it", old.Lost(minute, x.v, 0, nil), x.afterwards)
	}
	r := redialPlan(t, engine.RedialPolicy{}).Redial()
	r.Connected(0)
	r.Lost(time.Minute, refusal, 0, nil)
	for i := range 20 { // with backoff
		step := r.Failed(time.Minute, refusal, func() uint64 { return math.MaxUint64 })
		if want := min(time.Second<<i, time.Minute); (step.Wait - want).Abs() > time.Microsecond {
			t.Errorf("refusal %d: the longest wait is %v, want %v", i, step.Wait, want)
		}
	}
}

func TestRedialPolicyRefuses(t *testing.T) {
	for field, p := range map[string]engine.RedialPolicy{
		"Start": {Start: -1}, "Spread": {Spread: -1}, "Lasting": {Lasting: -1}, "Backoff.Base": {Backoff: backoff.Schedule{Base: -1}},
	} {
		_, err := engine.NewRedialPlan(p)
		if problems, ok := err.(engine.Problems); !ok || len(problems) != 1 || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := engine.NewRedialPlan(engine.RedialPolicy{Start: -1, Spread: 5, Lasting: -1}); len(err.(engine.Problems)) != 3 {
		t.Error(err) // all at once, and 5 ns may be meant as seconds
	}
}

// The ceiling of a wait is what it is spread over: that of the backoff after a failed dial, or
// the hint.
func TestRedialCeilings(t *testing.T) {
	const s = time.Second
	hint := engine.Verdict{Kind: engine.KindRateLimited, After: 20 * s}
	r := redialPlan(t, engine.RedialPolicy{}).Redial()
	for _, x := range []struct {
		name      string
		step      engine.Step
		wait, top time.Duration // with the least draw, and the ceiling
	}{
		{"failed", r.Failed(0, engine.Verdict{}, func() uint64 { return 0 }), 0, s},
		{"with a hint", r.Failed(0, hint, func() uint64 { return 0 }), 20 * s, 20 * s},
		{"drained, with a hint", r.Lost(0, hint, 40*s, func() uint64 { return 0 }), 20 * s, 40 * s},
		{"drained, with a negative hint", r.Lost(0, engine.Verdict{After: -s}, 40*s, func() uint64 { return 0 }), 0, 40 * s},
		{"lost, with a negative hint", r.Lost(2*60*s, engine.Verdict{After: -s}, 0, func() uint64 { return 0 }), 0, 15 * s},
	} {
		if x.step.Wait != x.wait || x.step.Ceiling != x.top {
			t.Errorf("%s: %+v, want %v and a ceiling of %v", x.name, x.step, x.wait, x.top)
		}
	}
	// Decorrelated jitter goes by the wait before.
	d := redialPlan(t, engine.RedialPolicy{Backoff: backoff.Schedule{Jitter: backoff.Decorrelated}}).Redial()
	for i, want := range []time.Duration{3 * s, 9 * s, 27 * s, 60 * s, 60 * s} {
		if got := d.Failed(0, engine.Verdict{}, func() uint64 { return math.MaxUint64 }).Wait; (got - want).Abs() > time.Microsecond {
			t.Errorf("decorrelated wait %d is %v, want %v", i, got, want)
		}
	}
}

// Half the waits after a loss are below an eighth of the spread, and their mean is a quarter.
func TestRedialSpread(t *testing.T) {
	random := seed.Source(t)
	r := redialPlan(t, engine.RedialPolicy{}).Redial()
	const n = 20_000
	var sum time.Duration
	short := 0
	for i := range n {
		now := time.Duration(i+1) * time.Hour
		r.Connected(now - time.Hour)
		wait := r.Lost(now, engine.Verdict{}, 0, random).Wait
		sum += wait
		if wait < 15*time.Second/8 {
			short++
		}
	}
	if mean := sum / n; mean < 3600*time.Millisecond || mean > 3900*time.Millisecond || short < n*49/100 || short > n*51/100 {
		t.Errorf("the mean is %v, and %d of %d are below an eighth", mean, short, n)
	}
}
