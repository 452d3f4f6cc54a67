package lull_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
)

// A first attempt that succeeds ends a row of failures, by way of the short path of Do.
func TestAFirstAttemptThatSucceedsReachesTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{Attempts: 1, Breaker: breaker.Config{Consecutive: 3, ConsecutiveFor: -1, OpenFor: time.Minute}})
		for range 5 {
			for range 2 {
				if n := tries(d); n != 1 {
					t.Fatalf("%d attempts, want 1", n)
				}
			}
			if err := lull.Run(t.Context(), d, succeed); err != nil {
				t.Fatal(err)
			}
		}
		if s := d.Breaker().State(d.Now()); s != breaker.Closed {
			t.Errorf("two failures between successes, and the breaker is %v", s)
		}
	})
}

// A call that begins at its deadline, or later, is refused.
func TestACallThatBeginsAtItsDeadline(t *testing.T) {
	d := newDependency(t, lull.Policy{})
	for now, want := range map[time.Duration]bool{4 * time.Second: false, 5*time.Second - 1: false, 5 * time.Second: true, 6 * time.Second: true} {
		c, step := d.Start(now, lull.Spec{Deadline: 5 * time.Second})
		if step.Done != want || step.Done && step.Reason != lull.DeadlineReached {
			t.Errorf("begun at %v with a deadline of 5 s: %+v, want refused: %v", now, step, want)
		}
		if !step.Done {
			c.Abandon(now)
		}
	}
}

// What a hint is spread by ends with the time that is left, to the nanosecond: a hint that
// can be waited for is, and with it none of the jitter that cannot.
func TestTheSpreadOfAHintEndsBeforeTheDeadline(t *testing.T) {
	const hint = 10 * time.Second
	for left, want := range map[time.Duration]time.Duration{
		hint - 1:         -1, // cannot be waited for
		hint:             -1,
		hint + 1:         hint,
		hint + 2:         hint + 1,
		12 * time.Second: 12*time.Second - 1,
		time.Minute:      15 * time.Second, // half as long again is all
	} {
		d := newDependency(t, lull.Policy{Budget: plenty, Deadline: left, AttemptTimeout: left, HintLimit: hint})
		c := begun(t, d, 0)
		step := c.Next(0, lull.Verdict{Kind: lull.KindThrottled, Code: "429", After: hint}, func() uint64 { return math.MaxUint64 })
		switch {
		case want < 0 && (!step.Done || step.Reason != lull.DeadlineReached):
			t.Errorf("%v left: %+v, want the end of the call", left, step)
		case want >= 0 && (step.Done || step.Wait != want):
			t.Errorf("%v left: waits %v (%+v), want %v", left, step.Wait, step, want)
		}
	}
}

// A process whose calls succeed far apart remembers nothing. One whose calls are closer
// together than its budget's QuietGap earns more than the stock.
func TestSuccessesAreRememberedWhereTheyEarn(t *testing.T) {
	template := newDependency(t, lull.Policy{Backoff: backoff.Schedule{Kind: backoff.Constant}})
	quiet := budget.Config{}.QuietGap()
	for _, c := range []struct {
		gap  time.Duration
		want bool
	}{{10 * quiet, false}, {quiet, false}, {quiet - time.Millisecond, true}, {quiet / 10, true}} {
		fleet, next := template.Clones(2), 0 // AllocsPerRun makes a run that it does not count
		var d *lull.Dependency
		const calls = 100
		var now time.Duration
		var call lull.Call
		run := func() {
			d, now, next = &fleet[next], time.Hour, next+1
			for range calls {
				d.StartIn(&call, now, lull.Spec{})
				call.Attempt(now, nil)
				call.Next(now, lull.Verdict{Kind: lull.KindSuccess}, nil)
				now += c.gap
			}
		}
		if allocs := testing.AllocsPerRun(1, run); allocs > 0 && !c.want {
			t.Errorf("calls %v apart: %v allocations, want none", c.gap, allocs)
		}
		if balance := d.Budget().Balance(now); (balance > budget.DefaultStock) != c.want {
			t.Errorf("calls %v apart: a balance of %v, want more than the stock: %v", c.gap, balance, c.want)
		}
	}
}
