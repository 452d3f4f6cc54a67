package rivals

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// Measured with failsafe-go v0.9.8 itself: 200 callers, everything fails after a
// millisecond, waits of 50 ms, a budget of 20 %: 3.98 to 4.00 attempts a call,
// and 4.00 without a budget.
func TestFailsafeBudgetBoundsNothing(t *testing.T) {
	p := find(t, "failsafe-go-50ms")
	d := dependency(t, p)
	type caller struct {
		call engine.Call
		next int // the millisecond of the next attempt
	}
	callers := make([]caller, 200)
	for i := range callers {
		callers[i].next = i % 50 // they do not begin in step
	}
	calls, attempts := 0, 0
	for at := range 4000 {
		now := time.Duration(at) * time.Millisecond
		for i := range callers {
			c := &callers[i]
			if c.next != at {
				continue
			}
			if c.call.Attempts() == 0 {
				c.call, _ = d.State().Start(now, engine.Spec{})
			}
			c.call.Attempt(now, nil)
			step := c.call.Next(now+time.Millisecond, transient, nil)
			c.next = at + 1 + int(step.Wait/time.Millisecond)
			if step.Done {
				calls++
				attempts += c.call.Attempts()
				c.call = engine.Call{}
			}
		}
	}
	if got := float64(attempts) / float64(calls); got < 3.98 || got > 4.00 {
		t.Errorf("%.3f attempts a call, want 3.98 to 4.00", got)
	}
}

// Without waits it is the formula: of n calls that fail together, the first three
// are retried, and then as many as find no more than a fifth of all that runs to
// be retries: 5 of 20 + 5, so six.
func TestFailsafeBudgetWithoutWaits(t *testing.T) {
	p := find(t, "failsafe-go")
	for n, want := range map[int]int{1: 1, 3: 3, 4: 3, 10: 3, 12: 4, 20: 6, 100: 26} {
		d := dependency(t, p)
		calls := make([]engine.Call, n)
		for i := range calls {
			calls[i], _ = d.State().Start(0, engine.Spec{})
			calls[i].Attempt(0, nil)
		}
		got := 0
		for i := range calls {
			if !calls[i].Next(0, transient, nil).Done {
				calls[i].Attempt(0, nil)
				got++
			}
		}
		check.Equal(t, got, want, "retried of %d calls that fail together", n)
	}
}

// Against the formula, counted anew each time.
func TestRunningModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for _, cfg := range []Running{{Ratio: 0.2, Min: 3}, {Ratio: 0.2, Min: 3, Delay: 50}, {Ratio: 0, Min: 1, Delay: 10}, {Ratio: 1, Delay: 5}, {Ratio: 0.5}} {
		b := &running{cfg: cfg}
		type retry struct {
			from time.Duration
			r    budget.Receipt
		}
		var out []retry
		calls, now := 0, time.Duration(0)
		for range 5000 {
			now += time.Duration(rnd.IntN(10))
			running := 0
			for _, o := range out {
				if o.from <= now {
					running++
				}
			}
			switch rnd.IntN(5) {
			case 0:
				b.Start(now)
				calls++
			case 1:
				if calls > 0 {
					b.Done(now, rnd.IntN(2) == 0, 0, 0)
					calls--
				}
			case 2, 3:
				want := running < cfg.Min || float64(running) <= cfg.Ratio*float64(calls+running)
				g := b.Withdraw(now, budget.Transient, nil)
				if g.OK != want {
					t.Fatalf("%+v: %d calls, %d running: %v", cfg, calls, running, g.OK)
				}
				if g.OK {
					out = append(out, retry{now + cfg.Delay, g.Receipt})
				}
			case 4:
				if len(out) > 0 {
					i := rnd.IntN(len(out)) // also one that still waits
					b.Release(now, out[i].r)
					out = append(out[:i], out[i+1:]...)
				}
			}
		}
	}
}

// Many goroutines, for the race detector; in the end nothing is left.
func TestBudgetsConcurrently(t *testing.T) {
	r := &running{cfg: Running{Ratio: 0.2, Min: 3, Delay: 10}}
	k := must.Have(budget.NewBucket(budget.Config{Stock: 5, Ratio: 0.5}))
	w := newWarmup(10, k)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				now := time.Duration(i)
				for _, b := range []budget.Budget{r, w} {
					b.Start(now)
					b.Failed(now)
					grant := b.Withdraw(now, budget.Transient, nil)
					if grant.OK {
						b.Release(now+time.Duration(g), grant.Receipt)
					}
					if n := b.Balance(now); n < 0 {
						t.Errorf("a balance of %v", n)
					}
					b.Done(now, i%2 == 0, grant.Receipt, 1)
				}
			}
		})
	}
	wg.Wait()
	r.advance(time.Hour)
	if r.calls != 0 || r.retries != 0 || len(r.waiting) != 0 {
		t.Errorf("%d calls, %d retries, %d waiting are left", r.calls, r.retries, len(r.waiting))
	}
	if n := k.Tokens(); n < 0 || n > 5 {
		t.Errorf("%v tokens in a bucket of 5", n)
	}
}
