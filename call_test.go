package lull_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/budgettest"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
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
		check.Equal(t, d.Limiter().InFlight(), 0, "%v: places are still taken", why)
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
		check.Equal(t, fail(), 2, "attempts: the call that succeeded 100ms ago, after 15s, earned nothing")
		check.Equal(t, fail(), 1, "attempts with nothing earned since")
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
			check.Equal(t, log.events[0].Elapsed, want, "timed %v: elapsed", timed)
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
		check.Equal(t, closed, 4*time.Second, "closed at the time of the probe's success")

		slow := newDependency(t, lull.Policy{Breaker: breaker.Config{SlowRate: 1, SlowCall: time.Second, MinCalls: 1}})
		lull.Run(t.Context(), slow, func(context.Context) error { time.Sleep(2 * time.Second); return nil })
		check.Equal(t, slow.Breaker().State(slow.Now()), breaker.Open, "the circuit after a slow call")
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
	check.Equal(t, d.Limiter().InFlight(), 0, "places are still taken")
}

var errReset = errors.New("connection reset")

// An option of one call holds for that call. If two options contradict each other, the
// later one counts.
func TestCallOptionsOfOneCall(t *testing.T) {
	for _, c := range []struct {
		name     string
		opts     []lull.CallOption
		policy   lull.Policy
		err      error
		attempts int
		reason   lull.Reason
	}{
		{"nothing", nil, lull.Policy{}, errReset, 4, engine.AttemptsExhausted},
		{"once", []lull.CallOption{lull.Once()}, lull.Policy{}, errReset, 1, engine.AttemptsExhausted},
		{"once, hedged", []lull.CallOption{lull.Once()}, lull.Policy{Hedge: hedge.Config{Attempts: 2}}, errReset, 1, engine.AttemptsExhausted},
		{"once, never sent", []lull.CallOption{lull.Once(), lull.NotIdempotent()}, lull.Policy{}, lull.NeverSent(errReset), 1, engine.AttemptsExhausted},
		{"not idempotent", []lull.CallOption{lull.NotIdempotent()}, lull.Policy{}, errReset, 1, engine.NotIdempotent},
		{"taken back", []lull.CallOption{lull.NotIdempotent(), lull.Idempotent()}, lull.Policy{}, errReset, 4, engine.AttemptsExhausted},
		{"taken back again", []lull.CallOption{lull.Idempotent(), lull.NotIdempotent()}, lull.Policy{}, errReset, 1, engine.NotIdempotent},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.policy.Hedge.Attempts == 0 {
					c.policy.Attempts = 4
				}
				c.policy.Budget.Stock = 100
				d := must.Have(lull.NewDependency("d", c.policy, lull.WithRand(seed.Source(t))))
				n := 0
				_, err := lull.DoHedged(t.Context(), d, func(context.Context) (int, error) {
					n++
					return 0, lull.Transient(c.err)
				}, c.opts...)
				e, ok := errors.AsType[*lull.Error](err)
				if !ok || n != c.attempts || e.Reason != c.reason {
					t.Errorf("%d attempts, %v; want %d, %v", n, err, c.attempts, c.reason)
				}
			})
		})
	}
}

// A call made for a request that is a retry is not retried, except where the policy
// allows it.
func TestSpecForRetry(t *testing.T) {
	for nested, want := range map[engine.NestedRetries]lull.Reason{engine.NestedNever: engine.RetriedAbove, lull.NestedAlways: engine.Success} {
		d := must.Have(lull.NewDependency("d", lull.Policy{Nested: nested, Budget: budget.Config{Unlimited: true}}))
		next := func(c engine.Call) lull.Reason {
			c.Attempt(0, nil)
			return c.Next(1, lull.Verdict{Kind: lull.KindTransient, NeverSent: true}, nil).Reason
		}
		for _, spec := range []engine.Spec{{ForRetry: true}, {ForRetry: true, NotIdempotent: true}} {
			c, _ := d.State().Start(0, spec)
			check.Equal(t, next(c), want, "Nested %v, %+v", nested, spec)
		}
		c, _ := d.State().Start(0, engine.Spec{ForRetry: true, NotReplayable: true})
		check.Equal(t, next(c), engine.NotReplayable, "Nested %v, not replayable", nested)
		c, _ = d.State().Start(0, engine.Spec{ForRetry: true, Once: true})
		check.Equal(t, next(c), engine.AttemptsExhausted, "Nested %v, once", nested)
		c, _ = d.State().Resume(0, engine.Spec{ForRetry: true}, 1)
		check.Equal(t, next(c), want, "Nested %v, resumed", nested)
	}
}

// A permanent failure that was never sent is no answer: it does not end a row of failures.
func TestPermanentNeverSentIsNoAnswer(t *testing.T) {
	for _, never := range []bool{false, true} {
		p := lull.Policy{Attempts: 1}
		p.Breaker.Consecutive, p.Breaker.ConsecutiveFor, p.Breaker.OpenFor = 3, 2*time.Second, time.Hour
		d := must.Have(lull.NewDependency("d", p))
		call := func(now time.Duration, v lull.Verdict) lull.Reason {
			c, step := d.State().Start(now, engine.Spec{})
			if !step.Done {
				c.Attempt(now, nil)
				step = c.Next(now+1, v, nil)
			}
			return step.Reason
		}
		for n := range time.Duration(4) { // two failures, that one, and one more
			v := lull.Verdict{Kind: lull.KindTransient}
			if n == 2 {
				v = lull.Verdict{Kind: lull.KindPermanent, Code: "no", NeverSent: never}
			}
			call((n+1)*time.Second, v)
		}
		opened := call(5*time.Second, lull.Verdict{Kind: lull.KindSuccess}) == engine.CircuitOpen
		check.Equal(t, opened, never, "never sent: %v; the circuit is open", never)
	}
}

func ExampleOnce() {
	payments, _ := lull.NewDependency("payments", lull.Policy{})
	attempts := 0
	err := lull.Run(context.Background(), payments, func(context.Context) error {
		attempts++
		return lull.Transient(errors.New("connection reset"))
	}, lull.Once())
	fmt.Println(attempts, errors.Is(err, lull.ErrAttemptsExhausted))
	// Output: 1 true
}
