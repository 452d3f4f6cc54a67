package lull_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/budgettest"
)

var transient = lull.Verdict{Kind: lull.KindTransient, Code: "503"}

// waiting returns a call that waits for its second attempt, at time 0.
func waiting(t *testing.T, d *lull.Dependency, spec engine.Spec) engine.Call {
	t.Helper()
	c, step := d.State().Start(0, spec)
	if step.Done || c.Attempt(0, nil).Done {
		t.Fatalf("refused: %v", step.Reason)
	}
	if step := c.Next(0, transient, nil); step.Done {
		t.Fatalf("no second attempt: %v", step.Reason)
	}
	return c
}

func TestACallStaysEndedForItsReason(t *testing.T) {
	d := newDependency(t, lull.Policy{Budget: plenty})
	for _, c := range []struct{ why, want lull.Reason }{
		{engine.Deadline, engine.Deadline},
		{engine.Canceled, engine.Canceled},
		{engine.Success, engine.Canceled}, // whatever the driver reports, it did not succeed
	} {
		call := waiting(t, d, engine.Spec{})
		for name, step := range map[string]engine.Step{
			"Stop":    call.Stop(0, c.why, nil),
			"Next":    call.Next(0, lull.Verdict{Kind: lull.KindSuccess}, nil),
			"Attempt": call.Attempt(0, nil),
		} {
			if !step.Done || step.Reason != c.want {
				t.Errorf("stopped for %v: %s says %+v", c.why, name, step)
			}
		}
	}
}

// Room that is given at the moment in which the caller gives up is used or released.
func TestAPlaceGivenTooLate(t *testing.T) {
	for why, begins := range map[lull.Reason]bool{engine.Limited: true, engine.Canceled: false, engine.Deadline: false} {
		d := newDependency(t, lull.Policy{Limit: bulkhead.Config{InFlight: 1, MaxWait: time.Second}})
		first, _ := d.State().Start(0, engine.Spec{})
		first.Attempt(0, nil)
		c, _ := d.State().Start(0, engine.Spec{})
		admitted := false
		place := &bulkhead.Waiter{Admit: func() { admitted = true }}
		if step := c.Attempt(0, nil); !step.Full {
			t.Fatalf("there is room: %+v", step)
		}
		if step := c.JoinQueue(0, place, nil); !step.Full || step.Wait != time.Second {
			t.Fatalf("in line: %+v", step)
		}
		first.Next(0, lull.Verdict{Kind: lull.KindSuccess}, nil)
		if !admitted {
			t.Fatal("the place was not handed over")
		}
		step := c.LeaveQueue(time.Second, place, why, nil)
		if begun := !step.Done; begun != begins || begun != (c.Attempts() == 1) || step.Done && step.Reason != why {
			t.Errorf("%v: %+v after %d attempts", why, step, c.Attempts())
		}
		c.Abandon(time.Second)
		if n := d.Limiter().InFlight(); n != 0 {
			t.Errorf("%v: %d places are still taken", why, n)
		}
	}
}

// A budget of concurrent retries is notified when each of them has ended.
func TestRetriesAreSettled(t *testing.T) {
	one := &budgettest.Budget{AtMost: 1}
	d := newDependency(t, lull.Policy{Attempts: 5, Backoff: backoff.Schedule{Kind: backoff.Constant}}, lull.WithBudget(func() budget.Budget { return one }))
	for call := range 3 {
		c := waiting(t, d, engine.Spec{})
		if other, _ := d.State().Start(0, engine.Spec{}); !other.Attempt(0, nil).Done && !other.Next(0, transient, nil).Done {
			t.Errorf("call %d: two retries at a time", call)
		}
		for range 3 { // one retry after the other
			c.Attempt(0, nil)
			if step := c.Next(0, transient, nil); step.Done {
				t.Errorf("call %d: %v after %d attempts", call, step.Reason, c.Attempts())
			}
		}
		c.Stop(0, engine.Canceled, nil)
	}
}

// A success counts in the budget's window from its end, not from the beginning of its call, even
// if another call has read the clock since.
func TestALongCallEarnsWhenItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{
			Attempts: 2, AttemptTimeout: time.Minute, Deadline: time.Minute,
			Budget: budget.Config{Ratio: 1, Window: 10 * time.Second}, Breaker: breaker.Config{Off: true},
			Backoff: backoff.Schedule{Kind: backoff.Constant},
		})
		fail := func() (attempts int) {
			lull.Run(t.Context(), d, func(context.Context) error {
				attempts++
				time.Sleep(200 * time.Millisecond)
				return lull.Transient(errBlip)
			})
			return attempts
		}
		if n := fail(); n != 2 { // what a new budget has
			t.Fatalf("%d attempts", n)
		}
		go lull.Run(t.Context(), d, func(context.Context) error { time.Sleep(15 * time.Second); return nil })
		time.Sleep(15*time.Second - 100*time.Millisecond)
		if n := fail(); n != 2 {
			t.Errorf("%d attempts: the call that succeeded 100ms ago, after 15s, earned nothing", n)
		}
		if n := fail(); n != 1 {
			t.Errorf("%d attempts with nothing earned since", n)
		}
	})
}

func TestElapsedIsMeasuredWithTiming(t *testing.T) {
	for _, timed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var log eventLog
			opts := []lull.Option{lull.WithObserver(&log)}
			want := time.Duration(0)
			if timed {
				opts, want = append(opts, lull.WithTiming()), time.Second
			}
			d := newDependency(t, lull.Policy{}, opts...)
			lull.Run(t.Context(), d, func(context.Context) error { time.Sleep(time.Second); return nil })
			if got := log.events[0].Elapsed; got != want {
				t.Errorf("timed %v: elapsed %v, want %v", timed, got, want)
			}
		})
	}
}

// The breaker gets the true time at which a success ended.
func TestTheBreakerLearnsWhenASuccessEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log eventLog
		d := newDependency(t, lull.Policy{Attempts: 1, Breaker: breaker.Config{Consecutive: 1, ConsecutiveFor: -1, OpenFor: time.Second, OpenJitter: -1}}, lull.WithObserver(&log))
		lull.Run(t.Context(), d, func(context.Context) error { return lull.Transient(errBlip) })
		time.Sleep(time.Second)
		lull.Run(t.Context(), d, func(context.Context) error { time.Sleep(3 * time.Second); return nil })
		var closed time.Duration
		for _, e := range log.events {
			if e.Circuit != nil && e.Circuit.To == breaker.Closed {
				closed = e.Circuit.At
			}
		}
		if closed != 4*time.Second {
			t.Errorf("closed at %v; the probe succeeded at 4s", closed)
		}

		slow := newDependency(t, lull.Policy{Breaker: breaker.Config{SlowRate: 1, SlowCall: time.Second, MinCalls: 1}})
		lull.Run(t.Context(), slow, func(context.Context) error { time.Sleep(2 * time.Second); return nil })
		if s := slow.Breaker().State(slow.Now()); s != breaker.Open {
			t.Errorf("after a slow call the circuit is %v", s)
		}
	})
}

// If a driver ends a call that waits for room, and the call gets room afterwards, that is
// released.
func TestAPlaceGivenToACallThatHasEnded(t *testing.T) {
	d := newDependency(t, lull.Policy{Limit: bulkhead.Config{InFlight: 1, MaxWait: time.Second}})
	first, _ := d.State().Start(0, engine.Spec{})
	first.Attempt(0, nil)
	c, _ := d.State().Start(0, engine.Spec{})
	c.Attempt(0, nil)
	if step := c.JoinQueue(0, &bulkhead.Waiter{}, nil); !step.Full {
		t.Fatalf("in line: %+v", step)
	}
	c.Stop(0, engine.Canceled, nil)
	first.Next(0, lull.Verdict{Kind: lull.KindSuccess}, nil) // hands its place to c
	if step := c.Admitted(0, nil); !step.Done || step.Reason != engine.Canceled || c.Attempts() != 0 {
		t.Errorf("a call that has ended begins an attempt: %+v", step)
	}
	if n := d.Limiter().InFlight(); n != 0 {
		t.Errorf("%d places are still taken", n)
	}
}
