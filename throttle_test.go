package lull_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/throttle"
)

// once makes a call of one attempt that ends with v. It returns why the call ended
// and how long the throttle held it back.
func once(d *lull.Dependency, now time.Duration, v lull.Verdict) (why lull.Reason, heldBack time.Duration) {
	c, step := d.State().Start(now, engine.Spec{})
	if step.Done {
		return step.Reason, 0
	}
	for {
		step = c.Attempt(now, middle)
		if step.Done {
			return step.Reason, heldBack
		}
		if step.Wait == 0 {
			break
		}
		heldBack += step.Wait
		now += step.Wait
	}
	return c.Next(now, v, middle).Reason, heldBack
}

var rateLimited = lull.Verdict{Kind: lull.KindRateLimited, Code: "429"}

func singly(mode throttle.Mode) lull.Policy {
	return lull.Policy{Attempts: 1, Breaker: breaker.Config{Off: true}, Throttle: throttle.Config{Mode: mode}}
}

// Attempts are held back, first ones too, if the dependency refuses them for load, and not if it
// answers.
func TestAdaptiveThrottleHoldsFirstAttemptsBack(t *testing.T) {
	for _, c := range []struct {
		verdict lull.Verdict
		held    bool
	}{
		{lull.Verdict{Kind: lull.KindSuccess}, false},
		{lull.Verdict{}, false},
		{lull.Verdict{Kind: lull.KindPermanent, Code: "404"}, false},
		{lull.Verdict{Kind: engine.KindCanceled}, false},
		{rateLimited, true},
		{lull.Verdict{Kind: lull.KindOverloaded, Code: "503"}, true},
		{lull.Verdict{Kind: lull.KindTransient, Code: "503"}, true},
	} {
		d := newDependency(t, singly(throttle.Adaptive))
		held := 0
		for i := range 1000 {
			if why, _ := once(d, time.Duration(i)*10*time.Millisecond, c.verdict); why == engine.Throttled {
				held++
			}
		}
		if c.held && held < 800 || !c.held && held > 0 {
			t.Errorf("after %+v: %d of 1000 were held back", c.verdict, held)
		}
	}
}

func TestThrottledCallsHaveTheirReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, singly(throttle.Adaptive), lull.WithRand(middle))
		sent := 0
		var err error
		for range 100 {
			err = lull.Run(t.Context(), d, func(context.Context) error {
				sent++
				return lull.RetryAfter(errBlip, 0)
			})
		}
		if !errors.Is(err, lull.ErrThrottled) || sent == 100 {
			t.Errorf("%d of 100 were sent, the last ended with: %v", sent, err)
		}
		var e *lull.Error
		if !errors.As(err, &e) || e.Attempts != 0 {
			t.Errorf("a call that was held back says: %+v", e)
		}
	})
}

// After a rate-limited answer attempts come at a rate, first ones too. Only attempts that are
// sent use a place.
func TestCubicThrottleDelaysAttempts(t *testing.T) {
	d := newDependency(t, singly(throttle.Cubic))
	now := time.Duration(0)
	for range 50 { // ten a second
		once(d, now, lull.Verdict{Kind: lull.KindSuccess})
		now += 100 * time.Millisecond
	}
	if _, wait := once(d, now, rateLimited); wait != 0 {
		t.Fatalf("held back for %v before the first rate-limited answer", wait)
	}
	// A caller that gives up, or has no time for the wait, leaves the place to the next.
	_, first := once(d.Clone("untouched"), now, rateLimited)
	check.Equal(t, first, 0, "a clone is held back for")
	for range 100 { // what the bucket holds
		if _, wait := once(d, now, rateLimited); wait > 0 {
			break
		}
	}
	var waits []time.Duration
	for range 3 {
		c, _ := d.State().Start(now, engine.Spec{})
		step := c.Attempt(now, middle)
		if step.Wait <= 0 {
			t.Fatalf("not held back after a rate-limited answer: %+v", step)
		}
		waits = append(waits, step.Wait)
		if stop := c.Stop(now, engine.Canceled, middle); !stop.Done {
			t.Fatal("a call that was stopped goes on")
		}
	}
	if waits[1] != waits[0] || waits[2] != waits[0] {
		t.Errorf("waits of callers who each gave up: %v; want the same", waits)
	}
	c, _ := d.State().Start(now, engine.Spec{Deadline: now + waits[0]})
	if step := c.Attempt(now, middle); !step.Done || step.Reason != engine.Deadline {
		t.Errorf("the wait ends at the deadline: %+v", step)
	}
	one, _ := d.State().Start(now, engine.Spec{})
	two, _ := d.State().Start(now, engine.Spec{})
	if first, second := one.Attempt(now, middle).Wait, two.Attempt(now, middle).Wait; first != waits[0] || second <= first {
		t.Errorf("two are held back for %v and %v; want %v, and longer", first, second, waits[0])
	}
}

// A retry is held back as well, beyond its own wait, and a caller who goes away
// meanwhile does not wait.
func TestDoWaitsForTheThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, singly(throttle.Cubic))
		refuse := func(context.Context) error { return lull.RetryAfter(errBlip, 0) }
		start := time.Now()
		for range 100 {
			lull.Run(t.Context(), d, refuse)
		}
		// The rate falls to one attempt in two seconds.
		if took := time.Since(start); took < 100*time.Second || took > 200*time.Second {
			t.Errorf("100 calls that were refused took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		start = time.Now()
		sent := false
		err := lull.Run(ctx, d, func(context.Context) error { sent = true; return nil })
		if sent || !errors.Is(err, lull.ErrDeadline) || time.Since(start) != 0 {
			t.Errorf("after %v: %v (sent: %v); want to hear of the deadline at once", time.Since(start), err, sent)
		}
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, stop)
		start = time.Now()
		if err := lull.Run(ctx, d, succeed); !errors.Is(err, context.Canceled) || time.Since(start) != time.Millisecond {
			t.Errorf("after %v: %v; want the caller's cancellation after 1ms", time.Since(start), err)
		}
	})
}

// A rate-limited answer does not open the breaker, in plain and in hedged calls. A failure after
// it counts.
func TestRateLimitIsNoFailureToTheBreaker(t *testing.T) {
	rateLimited := lull.Verdict{Kind: lull.KindRateLimited, Code: "429"}
	failed := lull.Verdict{Kind: lull.KindTransient, Code: "503"}
	for _, hedging := range []hedge.Config{{}, {Attempts: 2}} {
		for _, c := range []struct {
			name  string
			ends  []lull.Verdict // of the attempts of each call
			opens bool
		}{
			{"rate-limited", []lull.Verdict{rateLimited, rateLimited}, false},
			{"failed", []lull.Verdict{failed, failed}, true},
			{"rate-limited, then failed", []lull.Verdict{rateLimited, failed}, true},
			{"failed, then rate-limited", []lull.Verdict{failed, rateLimited}, false},
		} {
			p := lull.Policy{Attempts: 2, Budget: plenty, Breaker: breaker.Config{Consecutive: 3, ConsecutiveFor: -1}, Hedge: hedging}
			if hedging.Attempts > 0 {
				p.Attempts = 0
			}
			d := newDependency(t, p)
			now := time.Duration(0)
			for range 5 {
				call, step := d.State().Start(now, engine.Spec{})
				if step.Done {
					break
				}
				if hedging.Attempts == 0 {
					for _, v := range c.ends {
						call.Attempt(now, nil)
						now += call.Next(now, v, nil).Wait
					}
					continue
				}
				h := engine.HedgedCall{Call: &call}
				h.Attempt(now, nil)
				var racer engine.HedgedAttempt
				h.First(now, &racer)
				for i, v := range c.ends {
					if i > 0 {
						h.Hedge(now, &racer, nil)
					}
					now += h.Ended(now, &racer, v, nil).Wait
				}
			}
			check.Equal(t, d.Breaker().State(now) != breaker.Closed, c.opens, "%s, hedging %v: open", c.name, hedging.Attempts > 0)
		}
	}
}
