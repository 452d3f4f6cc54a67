package lullotel

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/throttle"
)

// Each kind of time that a caller is held, and calls that hold nobody.
func TestHeldTime(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		e              lull.Event
		attempts, wait float64
	}{
		"at once":                   {lull.Event{Attempt: 1, EndedAttempt: 1, Elapsed: 2 * s}, 2, 0},
		"not timed":                 {lull.Event{Attempt: 1, EndedAttempt: 1}, 0, 0},
		"after a wait":              {lull.Event{Attempt: 2, EndedAttempt: 2, Elapsed: 5 * s, Waited: 3 * s}, 2, 3},
		"given up in a wait":        {lull.Event{Attempt: 1, Reason: engine.Canceled, Elapsed: 5 * s, Waited: 4 * s}, 1, 4},
		"refused":                   {lull.Event{Reason: engine.CircuitOpen}, 0, 0},
		"refused after it had wait": {lull.Event{Reason: engine.Limited, Elapsed: 5 * s}, 0, 5},
		"no end of a call":          {lull.Event{Kind: event.RetryScheduled, Attempt: 1, EndedAttempt: 1, Elapsed: s}, 0, 0},
	} {
		r := newRig(t)
		c.e.Dependency, c.e.Operation = "d", "o"
		r.Observe(t.Context(), c.e)
		all := r.collect(t)
		t.Log(name)
		all.want(t, c.attempts, "retry.held", "dependency", "d", "operation", "o", "in", "attempt")
		all.want(t, c.wait, "retry.held", "dependency", "d", "operation", "o", "in", "wait")
		all.wantSeries(t, 2, "retry.held")
	}
}

// A call that waits for room and then fails is held in a wait.
func TestRoomIsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := steady()
		p.Limit = bulkhead.Config{InFlight: 1, MaxWait: 3 * time.Second}
		d := dependencyOn(t, r, "d", p)
		d.Limiter().TryAcquire()
		lull.Run(t.Context(), d, nil)
		r.collect(t).want(t, 3, "retry.held", "in", "wait")
	})
}

// The longest of the hints counts, whatever came of the call.
func TestCooldownOfHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		hint := func(d time.Duration, e lull.Event) {
			e.Dependency, e.Attempt, e.EndedAttempt = "d", 1, 1
			e.Verdict = lull.Verdict{Kind: lull.KindRateLimited, Code: "429", After: d}
			r.Observe(t.Context(), e)
		}
		left := func(want float64) {
			t.Helper()
			r.collect(t).want(t, want, "retry.cooldown", "dependency", "d", "cause", "hint")
		}
		hint(0, lull.Event{Reason: engine.Permanent})
		r.collect(t).wantSeries(t, 0, "retry.cooldown")
		hint(5*time.Second, lull.Event{Kind: event.RetryScheduled})
		left(5)
		time.Sleep(time.Second)
		hint(time.Second, lull.Event{Kind: event.AttemptFailed})
		left(4)
		hint(time.Hour, lull.Event{Reason: engine.HintTooLong})
		left(3600)
		time.Sleep(2 * time.Hour)
		left(0)
		hint(1<<63-1, lull.Event{Reason: engine.HintTooLong})
		if n := r.collect(t).value("retry.cooldown"); n < 1e9 {
			t.Errorf("the longest hint is %v s", n)
		}
	})
}

func TestCooldownOfCircuitAndThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := lull.Policy{Attempts: 1, Breaker: breaker.Config{Consecutive: 1, ConsecutiveFor: -1, OpenFor: 8 * time.Second}}
		p.Throttle = throttle.Config{Mode: throttle.Cubic}
		d := dependencyOn(t, r, "d", p)
		adaptive := steady()
		adaptive.Throttle.Mode = throttle.Adaptive
		r.Watch(d, dependencyOn(t, r, "without", adaptive))
		all := r.collect(t)
		all.wantSeries(t, 2, "retry.cooldown") // a closed circuit, and a throttle that holds nothing back
		all.want(t, 0, "retry.cooldown")

		lull.Run(t.Context(), d, func(context.Context) error { return errDown })
		for range 3 {
			d.Throttle().Start(d.Now(), nil)
			d.Throttle().Done(d.Now(), throttle.RateLimited)
		}
		for range 50 {
			d.Throttle().Start(d.Now(), nil)
		}
		now := d.Now()
		circuit, wait := d.Breaker().RetryAt(now)-now, d.Throttle().State(now).Wait
		if circuit <= 0 || wait <= 0 {
			t.Fatalf("the circuit is open for %v, an attempt waits for %v: nothing is tested", circuit, wait)
		}
		all = r.collect(t)
		all.want(t, circuit.Seconds(), "retry.cooldown", "dependency", "d", "cause", "circuit")
		all.want(t, wait.Seconds(), "retry.cooldown", "dependency", "d", "cause", "throttle")

		d.Breaker().ForceOpen(d.Now()) // nobody knows for how long
		r.collect(t).wantSeries(t, 1, "retry.cooldown")
		d.Breaker().Auto(d.Now())
		r.collect(t).want(t, 0, "retry.cooldown", "cause", "circuit")
	})
}

// The stock is that of the budget in force. What has none has no series.
func TestStockOfABudget(t *testing.T) {
	r := newRig(t)
	p := steady()
	p.Budget = budget.Config{Stock: 7}
	d := dependencyOn(t, r, "d", p)
	window := steady()
	window.Budget = budget.Config{Window: time.Minute}
	r.Watch(d, dependencyOn(t, r, "window", window), dependencyOn(t, r, "unlimited", steady()))
	r.collect(t).want(t, 7, "retry.budget.stock")
	r.collect(t).wantSeries(t, 1, "retry.budget.stock")
	p.Budget.Stock = 3
	must.Succeed(d.Update(p))
	all := r.collect(t)
	all.want(t, 3, "retry.budget.stock", "dependency", "d")
	all.want(t, 3, "retry.budget.tokens", "dependency", "d")
}
