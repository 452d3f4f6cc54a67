package lull_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
)

// Rule 1: in a total outage after normal traffic, attempts ≤ (1 + ratio) × calls
// (+ the floor where one is set), at any backoff, for any number of processes.
// The breaker is off: the budget alone must hold the bound.
func TestRule01AttemptsInATotalOutage(t *testing.T) {
	zero := backoff.Schedule{Kind: backoff.Constant}
	short := backoff.Schedule{Kind: backoff.Constant, Base: 50 * time.Millisecond}
	for _, c := range []struct {
		name      string
		processes int
		callers   int // in each process
		backoff   backoff.Schedule
		budget    budget.Config
		floor     float64 // retries allowed beyond the ratio
	}{
		{"zero backoff, 1 caller", 1, 1, zero, budget.Config{}, 0},
		{"zero backoff, 200 callers", 1, 200, zero, budget.Config{}, 0},
		{"50 ms backoff, 200 callers", 1, 200, short, budget.Config{}, 0},
		{"50 ms backoff, 100 processes of 2 callers", 100, 2, short, budget.Config{}, 0},
		{"50 ms backoff, 200 callers, earned by arrivals", 1, 200, short, budget.Config{Earn: budget.Arrivals}, 0},
		{"zero backoff, 200 callers, a floor of 1/s", 1, 200, zero, budget.Config{Floor: 1}, 40},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls, attempts atomic.Int64
				down := make(chan struct{})
				op := func(context.Context) error {
					attempts.Add(1)
					time.Sleep(time.Millisecond)
					select {
					case <-down:
						return lull.Transient(errBlip)
					default:
						return nil
					}
				}
				template := newDependency(t, lull.Policy{Attempts: 4, Backoff: c.backoff, Budget: c.budget, Breaker: breaker.Config{Off: true}})
				ctx, stop := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for range c.processes {
					d := template.Clone("process")
					for i := range c.callers {
						wg.Go(func() {
							time.Sleep(time.Duration(i) * time.Millisecond / 2)
							for ctx.Err() == nil {
								calls.Add(1)
								lull.Run(context.Background(), d, op)
								time.Sleep(100 * time.Millisecond) // about ten calls a second
							}
						})
					}
				}
				time.Sleep(10 * time.Second)
				peace := calls.Load()
				if got := attempts.Load(); got > peace {
					t.Errorf("%d attempts for %d calls in peace", got, peace)
				}
				close(down)
				time.Sleep(30 * time.Second)
				stop()
				wg.Wait()
				all, made := float64(calls.Load()), float64(attempts.Load())
				n, a := all-float64(peace), made-float64(peace)
				t.Logf("%d calls in peace; in the outage %.0f calls made %.0f attempts: %.4f for each", peace, n, a, a/n)
				if made > 1.1*all+c.floor {
					t.Errorf("%.0f attempts for %.0f calls, more than 1.1 × calls + %.0f", made, all, c.floor)
				}
				// What arrivals earned in peace is spent in the outage, over what they
				// earn there; what successes earned is all there is.
				if a > 1.1*n+c.floor && c.budget.Earn == budget.Successes {
					t.Errorf("in the outage alone %.0f attempts for %.0f calls, more than 1.1 × calls + %.0f", a, n, c.floor)
				}
				if a <= n {
					t.Errorf("no retries at all: the budget of the calls in peace was not spent")
				}
			})
		})
	}
}

// A thousand processes whose only call fails keep to the ratio in expectation,
// without a floor and without knowing of each other.
func TestRule01AThousandProcessesOfOneCall(t *testing.T) {
	template := newDependency(t, lull.Policy{Attempts: 4, Backoff: backoff.Schedule{Kind: backoff.Constant}, Deadline: lull.NoTimeout, AttemptTimeout: lull.NoTimeout})
	const fleets, processes = 100, 1000
	attempts := 0
	for range fleets * processes {
		lull.Run(context.Background(), template.Clone("process"), func(context.Context) error { attempts++; return lull.Transient(errBlip) })
	}
	// 100,000 draws of one in ten: the standard deviation is 95.
	calls := fleets * processes
	t.Logf("%d processes made %d attempts in one call each: %.4f", calls, attempts, float64(attempts)/float64(calls))
	if retries := attempts - calls; retries < 9500 || retries > 10500 {
		t.Errorf("%d retries for %d calls, want one in ten", retries, calls)
	}
}

// Rule 3, in the engine: a hint is obeyed with jitter upward only; one longer
// than the policy's limit ends the call with the hint in the error.
func TestRule03HintsAreObeyedOrEndTheCall(t *testing.T) {
	d := newDependency(t, lull.Policy{Attempts: 2, Budget: plenty, Deadline: time.Hour, HintLimit: 10 * time.Second})
	ask := func(v lull.Verdict, luck uint64) lull.Step {
		c, _ := d.Start(0, lull.Spec{})
		c.Attempt(0, nil)
		defer c.Abandon(0)
		return c.Next(0, v, func() uint64 { return luck })
	}
	for _, hint := range []time.Duration{time.Millisecond, time.Second, 10 * time.Second} {
		v := lull.Verdict{Kind: lull.KindThrottled, After: hint}
		soonest, latest := ask(v, 0), ask(v, 1<<64-1)
		if soonest.Done || soonest.Wait != hint {
			t.Errorf("hint %v: the shortest wait is %v", hint, soonest.Wait)
		}
		if latest.Wait <= hint+hint/4 {
			t.Errorf("hint %v: the longest wait is %v; clients that were told the same come back together", hint, latest.Wait)
		}
	}
	v := lull.Verdict{Kind: lull.KindThrottled, After: 10*time.Second + 1}
	if step := ask(v, 0); !step.Done || step.Reason != lull.HintTooLong {
		t.Errorf("a hint beyond the limit: %+v", step)
	}
	err := lull.Run(t.Context(), d, func(context.Context) error { return lull.RetryAfter(errBlip, time.Minute) })
	if e := new(lull.Error); !asError(err, &e) || e.Verdict.After != time.Minute {
		t.Errorf("the hint is not in the error: %v", err)
	}
}

// Throttled failures wait longer than blips.
func TestThrottlingWaitsLonger(t *testing.T) {
	d := newDependency(t, lull.Policy{Budget: plenty})
	longest := func(k lull.Kind) time.Duration {
		c, _ := d.Start(0, lull.Spec{})
		defer c.Abandon(0)
		c.Attempt(0, nil)
		return c.Next(0, lull.Verdict{Kind: k}, func() uint64 { return 1<<64 - 1 }).Wait
	}
	if blip, throttled := longest(lull.KindTransient), longest(lull.KindThrottled); blip != 100*time.Millisecond || throttled != time.Second {
		t.Errorf("longest first wait: %v after a blip, %v when throttled; want 100ms and 1s", blip, throttled)
	}
}
