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
	checks "github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/seed"
)

// leastWait is how many calls may wait under a small limit.
const leastWait = 100

// crowded is a dependency under p with a limit of 4 and a large budget, which has just answered
// quickly.
func crowded(t *testing.T, p lull.Policy) *lull.Dependency {
	t.Helper()
	p.Limit.InFlight, p.Breaker.Off = 4, true
	if p.Budget.Stock == 0 {
		p.Budget.Stock = 1000
	}
	d := newDependency(t, p)
	callOf(t, d, 0, ms, success)
	return d
}

// failAtOnce makes so many calls fail with v at now, and returns those that wait, and how the others
// ended.
func failAtOnce(t *testing.T, d *lull.Dependency, calls int, now time.Duration, v lull.Verdict) (waiting []*engine.Call, ends map[lull.Reason]int) {
	t.Helper()
	ends = map[lull.Reason]int{}
	for range calls {
		c := begun(t, d, now)
		if step := c.Next(now, v, nil); step.Done {
			ends[step.Reason]++
		} else {
			waiting = append(waiting, &c)
		}
	}
	return waiting, ends
}

// Of the calls that fail at once, only so many wait. The others end at once, and the budget does
// not pay for them. When all have ended, as many may wait again.
func TestOnlySoManyCallsWait(t *testing.T) {
	hinted := lull.Verdict{Kind: lull.KindRateLimited, Code: "429", After: time.Second}
	for name, c := range map[string]struct {
		v    lull.Verdict
		paid float64
	}{
		"backoff":           {transient, leastWait},
		"free hint":         {hinted, 0},
		"answers to others": {timedOut, 0}, // the budget pays after the wait
		"caller's side":     {noFiles, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := crowded(t, lull.Policy{AttemptTimeout: time.Second})
			for i := range time.Duration(2) {
				now := 10*ms + i*3*time.Second
				before := d.Budget().Balance(now)
				waiting, ends := failAtOnce(t, d, 1000, now, c.v)
				checks.Equal(t, len(waiting), leastWait, "waiting")
				checks.Equal(t, ends[engine.TooManyWaiting], 1000-leastWait, "%v: too many waiting", ends)
				checks.Equal(t, d.State().Waiting(), leastWait, "counted")
				checks.Equal(t, before-d.Budget().Balance(now), c.paid, "tokens paid")
				for i, c := range waiting {
					later := now + 2*time.Second
					switch i % 4 {
					case 0:
						if step := c.Attempt(later, nil); step.Done || step.Wait > 0 {
							t.Fatalf("%+v after the wait", step)
						}
						checks.Equal(t, d.State().Waiting(), leastWait-i-1, "counted during attempt")
						c.Next(later, success, nil)
					case 1:
						c.Stop(later, engine.Canceled, nil)
					case 2:
						c.Abandon(later)
					case 3:
						c.Panicked(later)
					}
				}
				checks.Equal(t, d.State().Waiting(), 0, "counted after the end")
			}
		})
	}
}

// The bound grows with the limit. Without one it is far away.
func TestHowManyCallsMayWait(t *testing.T) {
	for limit, want := range map[int]int{1: 100, 10: 100, 50: 500, 2000: 20_000, 0: 10_000, bulkhead.MaxLimit: 30_000} {
		d := newDependency(t, lull.Policy{Limit: bulkhead.Config{InFlight: limit}, Budget: budget.Config{Stock: 1e6}, Breaker: breaker.Config{Off: true}})
		waiting, _ := failAtOnce(t, d, min(want+10, 30_000), 0, transient)
		checks.Equal(t, len(waiting), want, "a limit of %d: waiting", limit)
	}
}

// In a busy process that has no limit, no retry is refused because others wait, though many fail
// and the server asks for long waits.
func TestInPeaceNoRetryIsRefused(t *testing.T) {
	const rate = 1000
	r := seed.Rand(t)
	for share, hint := range map[float64]time.Duration{0.2: 0, 0.3: 20 * time.Second} {
		d := newDependency(t, lull.Policy{})
		w := &world{t: t, r: r, d: d}
		most := 0
		call := func() {
			c := begun(t, d, w.now)
			var fail func()
			fail = func() {
				if r.Float64() >= share {
					c.Next(w.now, success, r.Uint64)
					return
				}
				step := c.Next(w.now, lull.Verdict{Kind: lull.KindRateLimited, Code: "429", After: hint}, r.Uint64)
				if step.Reason == engine.TooManyWaiting {
					t.Fatalf("at %v: %v", w.now, step.Reason)
				}
				most = max(most, d.State().Waiting())
				if !step.Done {
					w.after(step.Wait, func() {
						if !c.Attempt(w.now, r.Uint64).Done {
							fail()
						}
					})
				}
			}
			fail()
		}
		w.play(1, 1<<30, func() {
			for i := range 60 * rate {
				w.after(time.Duration(i)*time.Second/rate, call)
			}
		}, nil)
		t.Logf("%v fail, %v asked for: at most %d wait", share, hint, most)
	}
}

// The layer above must not repeat what this one does not: its retries would wait, too.
func TestTooManyWaitingIsFinal(t *testing.T) {
	checks.Equal(t, engine.TooManyWaiting.GaveUp(), true, "gave up")
}

// A retry without a wait holds nothing.
func TestARetryAtOnceDoesNotWait(t *testing.T) {
	d := crowded(t, lull.Policy{Backoff: backoff.Schedule{Kind: backoff.Immediate}})
	failAtOnce(t, d, leastWait, 0, inTenSecs)
	c := begun(t, d, 0)
	if step := c.Next(0, transient, nil); step.Done || step.Wait != 0 {
		t.Errorf("%+v, want a retry at once", step)
	}
	checks.Equal(t, d.State().Waiting(), leastWait, "counted")
}

// A policy that remembers nothing counts nothing.
func TestAStatelessPolicyHasNoBound(t *testing.T) {
	d := newDependency(t, lull.Policy{Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true}, Timeouts: lull.TimeoutsAlways})
	waiting, ends := failAtOnce(t, d, 20_000, 0, transient)
	checks.Equal(t, len(waiting), 20_000, "%v: waiting", ends)
}

// A race waits as one call, and only while none of its attempts is in flight.
func TestARaceWaitsAsOneCall(t *testing.T) {
	p := hedging(3)
	p.Limit.InFlight = 4
	d := newDependency(t, p)
	call := begun(t, d, 0)
	c := engine.HedgedCall{Call: &call}
	var first, second, third engine.HedgedAttempt
	c.First(0, &first)
	if step := c.Hedge(10*ms, &second, nil); step.Done || step.Full {
		t.Fatalf("no hedge: %+v", step)
	}
	c.Ended(20*ms, &first, inTenSecs, nil)
	checks.Equal(t, d.State().Waiting(), 0, "with an attempt in flight")
	step := c.Ended(30*ms, &second, transient, nil)
	checks.Equal(t, d.State().Waiting(), 1, "for the first attempt's hint, %v", step.Wait)
	if step = c.Hedge(30*ms+step.Wait, &third, nil); step.Done || step.Full {
		t.Fatalf("no third attempt: %+v", step)
	}
	checks.Equal(t, d.State().Waiting(), 0, "with the third")
	c.Ended(20*time.Second, &third, transient, nil)
	checks.Equal(t, d.State().Waiting(), 0, "at the end")

	waiting, _ := failAtOnce(t, d, leastWait+1, 0, inTenSecs)
	checks.Equal(t, len(waiting), leastWait, "other calls wait")
	call = begun(t, d, 0)
	c = engine.HedgedCall{Call: &call}
	c.First(0, &first)
	checks.Equal(t, c.Ended(ms, &first, inTenSecs, nil).Reason, engine.TooManyWaiting, "a race beside them")
}

// Calls that wait under an old policy count under the new one, too.
func TestCallsThatWaitCountAfterAnUpdate(t *testing.T) {
	p := lull.Policy{Budget: budget.Config{Stock: 1000}, Breaker: breaker.Config{Off: true}, Limit: bulkhead.Config{InFlight: 4}}
	d := newDependency(t, p)
	old, _ := failAtOnce(t, d, 60, 0, transient)
	for _, limit := range []int{3, 20, 4} {
		p.Limit.InFlight = limit
		if err := d.Update(p); err != nil {
			t.Fatal(err)
		}
		checks.Equal(t, d.State().Waiting(), 60, "after the update to %d", limit)
	}
	young, ends := failAtOnce(t, d, 60, 0, transient)
	checks.Equal(t, len(young), leastWait-60, "%v: waiting of the young", ends)
	for _, c := range append(old, young...) {
		c.Abandon(0)
	}
	checks.Equal(t, d.State().Waiting(), 0, "counted after the end")
}

// A message does not wait in its consumer's memory. So nothing changes for it when many calls do.
func TestMessagesDoNotWaitHere(t *testing.T) {
	for _, v := range []lull.Verdict{transient, timedOut} {
		var alone engine.Redelivery
		for _, beside := range []int{0, leastWait} {
			d := crowded(t, lull.Policy{AttemptTimeout: time.Second})
			failAtOnce(t, d, beside, 10*ms, inTenSecs)
			of := engine.Delivery{Attempt: 1, RetryLeft: engine.Never, KeepLeft: engine.Never}
			of.MaxDelay = engine.Never
			c, _ := d.State().ResumeDelivery(10*ms, engine.Spec{}, of)
			c.Attempt(10*ms, nil)
			r := c.Handled(10*ms, engine.Handled{Verdict: v}, of, nil, nil)
			if beside == 0 {
				alone = r
			}
			checks.Equal(t, r, alone, "after %s, beside %d calls", v.Code, beside)
			checks.Equal(t, d.State().Waiting(), beside, "counted after %s", v.Code)
		}
	}
}

// A driver that reports the end of an attempt which never began makes no call count twice.
func TestACallWaitsOnce(t *testing.T) {
	d := crowded(t, lull.Policy{})
	c := begun(t, d, 0)
	for range 3 {
		c.Next(0, transient, nil)
		checks.Equal(t, d.State().Waiting(), 1, "counted")
	}
	c.Abandon(0)
	checks.Equal(t, d.State().Waiting(), 0, "counted after the end")
}

// Whatever calls do at random, exactly those that wait are counted, and never too many.
func TestTheCountOfCallsThatWaitIsExact(t *testing.T) {
	base, refused := seed.Fresh(t), 0
	for i := range uint64(20) {
		r := rand.New(rand.NewPCG(base, i))
		d := crowded(t, lull.Policy{AttemptTimeout: time.Second, Budget: budget.Config{Stock: []float64{10, 1000}[i%2]}})
		w := &world{t: t, r: r, d: d}
		waiting := 0
		arrive := func() {
			c, step := d.State().Start(w.now, engine.Spec{})
			if step.Done || c.Attempt(w.now, r.Uint64).Done {
				return
			}
			v, panics := w.verdict()
			if panics {
				c.Panicked(w.now)
				return
			}
			before := d.Budget().Balance(w.now)
			if step = c.Next(w.now, v, r.Uint64); step.Done {
				if step.Reason == engine.TooManyWaiting {
					refused++
					checks.Equal(t, waiting, leastWait, "waiting when one was refused")
					checks.Equal(t, d.Budget().Balance(w.now), before, "balance when one was refused")
				}
				return
			}
			counts := step.Wait > 0
			if counts {
				waiting++
			}
			w.after(step.Wait*10, func() {
				if counts {
					waiting--
				}
				if r.IntN(2) == 0 {
					c.Attempt(w.now, r.Uint64)
				}
				c.Abandon(w.now)
			})
		}
		w.down = true
		w.play(3000, 1<<30, arrive, func() {
			if got := d.State().Waiting(); got != waiting || got > leastWait {
				w.fatalf("%d are counted, %d wait", got, waiting)
			}
		})
		checks.Equal(t, d.State().Waiting(), 0, "counted after the end")
	}
	if refused == 0 {
		t.Error("none was refused")
	}
}
