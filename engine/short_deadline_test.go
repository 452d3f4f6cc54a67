package engine_test

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
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

// A crowd is callers of one dependency with different patience, in virtual time.
type crowd struct {
	*world
	latency func() time.Duration // of a call that is answered
	hangs   bool                 // none is

	calls, refused, failed map[string]int // by who called
	openedAt               time.Duration  // when the breaker first opened; 0: never
}

func newCrowd(t *testing.T, seed uint64, p lull.Policy, latency func(r *rand.Rand) time.Duration) *crowd {
	r := rand.New(rand.NewPCG(seed, 16))
	w := &world{t: t, seed: seed, r: r, policy: p, d: newDependency(t, p)}
	return &crowd{world: w, latency: func() time.Duration { return latency(r) }, calls: map[string]int{}, refused: map[string]int{}, failed: map[string]int{}}
}

// arrive is a call of somebody who waits for so long; zero: as the policy has it.
func (c *crowd) arrive(who string, patience time.Duration) {
	c.calls[who]++
	spec := engine.Spec{}
	if patience > 0 {
		spec.Deadline = c.now + patience
	}
	call, step := c.d.State().Start(c.now, spec)
	if step.Done {
		c.refused[who]++
		c.failed[who]++
		return
	}
	c.attempt(who, &call)
}

func (c *crowd) attempt(who string, call *engine.Call) {
	step := call.Attempt(c.now, c.r.Uint64)
	switch {
	case step.Done:
		c.ended(who, step)
		return
	case step.Wait > 0:
		c.after(step.Wait, func() { c.attempt(who, call) })
		return
	}
	v, took := lull.Verdict{Kind: lull.KindSuccess}, c.latency()
	if timeout := call.Timeout(c.now); c.hangs || took > timeout {
		v, took = lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}, timeout
	}
	c.after(took, func() {
		step := call.Next(c.now, v, c.r.Uint64)
		if step.Done {
			c.ended(who, step)
			return
		}
		c.after(step.Wait, func() { c.attempt(who, call) })
	})
}

func (c *crowd) ended(who string, step engine.Step) {
	if step.Reason != engine.Success {
		c.failed[who]++
	}
	if c.openedAt == 0 && c.d.Breaker().State(c.now) == breaker.Open {
		c.openedAt = c.now
	}
}

// come has callers arrive at random from now on, so many in a second.
func (c *crowd) come(who string, perSecond float64, patience func() time.Duration) {
	gap := func() time.Duration { return time.Duration(c.r.ExpFloat64() / perSecond * float64(time.Second)) }
	var next func()
	next = func() {
		c.arrive(who, patience())
		c.after(gap(), next)
	}
	c.after(gap(), next)
}

func (c *crowd) until(end time.Duration) {
	for c.queue.Len() > 0 && c.queue[0].at <= end {
		m := heap.Pop(&c.queue).(moment)
		c.now = m.at
		m.do()
	}
	c.now = end
}

// called makes a call at now whose caller waits for given (zero: as the policy has it), and ends its
// one attempt, if that may begin, with v, after took.
func called(d *lull.Dependency, now, given, took time.Duration, v lull.Verdict) (step engine.Step, begun bool) {
	spec := engine.Spec{}
	if given > 0 {
		spec.Deadline = now + given
	}
	c, step := d.State().Start(now, spec)
	if !step.Done {
		step = c.Attempt(now, nil)
	}
	if step.Done {
		return step, false
	}
	step = c.Next(now+took, v, nil)
	c.Abandon(now + took)
	return step, true
}

func always(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

var breakers = map[string]lull.Policy{
	"zero policy":     {},
	"FailureRate 0.5": {Breaker: breaker.Config{FailureRate: 0.5}},
	"FailureRate 0.2": {Breaker: breaker.Config{FailureRate: 0.2}},
}

// Rule 16: callers whose deadlines are shorter than an answer takes open no circuit for others,
// however many they are.
func TestRule16AForgedDeadlineFailsNobodyElse(t *testing.T) {
	latencies := map[string]func(*rand.Rand) time.Duration{
		"20 ms":                  func(*rand.Rand) time.Duration { return 20 * ms },
		"15 to 25 ms":            func(r *rand.Rand) time.Duration { return 15*ms + time.Duration(r.Int64N(int64(10*ms))) },
		"exponential, from 8 ms": func(r *rand.Rand) time.Duration { return 8*ms + time.Duration(r.ExpFloat64()*float64(12*ms)) },
	}
	seeds := seed.Runs(1)
	for name, p := range breakers {
		for how, latency := range latencies {
			for _, share := range []float64{0.01, 0.1, 0.5, 0.97} {
				for seed := range uint64(seeds) {
					c := newCrowd(t, seed, p, latency)
					c.arrive("forged", 5*ms)
					c.arrive("honest", 0) // until somebody has been answered nothing is known
					c.until(time.Second)
					c.come("honest", 200*(1-share), always(0))
					c.come("forged", 200*share, func() time.Duration { return ms + time.Duration(c.r.Int64N(int64(6*ms))) })
					c.until(30 * time.Second)
					if c.failed["honest"] > 0 {
						t.Errorf("%s, %s, %g %% forged, seed %d: %d of %d honest calls failed, %d of them refused", name, how, 100*share, seed, c.failed["honest"], c.calls["honest"], c.refused["honest"])
					}
				}
			}
		}
	}
}

// Rule 16: a short deadline explains timeouts only. A failure before the deadline counts against
// the dependency.
func TestRule16AFailureBeforeAShortDeadlineCounts(t *testing.T) {
	for code, want := range map[string]breaker.CircuitState{engine.CodeTimeout: breaker.Closed, "503": breaker.Open} {
		d := newDependency(t, engine.Policy{Attempts: 1, Breaker: breaker.Config{Consecutive: 3, ConsecutiveFor: -1}})
		for i := range 100 {
			called(d, time.Duration(i)*time.Second, time.Minute, 20*ms, success)
		}
		now := 100 * time.Second
		for range 3 {
			called(d, now, 5*ms, 5*ms, lull.Verdict{Kind: lull.KindTransient, Code: code})
			now += time.Second
		}
		if got := d.Breaker().State(now - time.Second); got != want {
			t.Errorf("after three failures of code %s before a short deadline the circuit is %v, want %v", code, got, want)
		}
	}
}

// Rule 16: a caller that gives less than a success takes shows no queue in which the attempts of others wait.
func TestRule16AShortDeadlineShowsNoQueue(t *testing.T) {
	for _, c := range []struct {
		given time.Duration // by the other caller
		want  lull.Reason
	}{{5 * ms, engine.Success}, {2 * time.Second, engine.Unanswered}} {
		d := newDependency(t, engine.Policy{AttemptTimeout: time.Second})
		now := time.Duration(0)
		for range 100 {
			now += 50 * ms
			called(d, now, time.Minute, 20*ms, success)
		}
		mine := begun(t, d, now+ms)
		timeout := lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}
		step := mine.Next(now+ms+time.Second, timeout, nil)
		if step.Done {
			t.Fatal(step.Reason)
		}
		called(d, now+10*ms, c.given, min(c.given, time.Second), timeout)
		if step = mine.Attempt(now+ms+time.Second+step.Wait, nil); step.Reason != c.want {
			t.Errorf("beside a caller that gave %v: %v, want %v", c.given, step.Reason, c.want)
		}
	}
}

// Rule 16: retries at the time that the server asked for stay free if those that failed were given less than a success takes.
func TestRule16AShortDeadlineDoesNotSpoilHints(t *testing.T) {
	for _, c := range []struct {
		left time.Duration // for the retry
		free bool
	}{{5 * ms, true}, {2 * time.Second, false}} {
		d := newDependency(t, engine.Policy{AttemptTimeout: time.Second, Breaker: breaker.Config{Off: true}})
		now := time.Duration(0)
		for range 100 {
			now += 50 * ms
			called(d, now, time.Minute, 20*ms, success)
		}
		hint := lull.Verdict{Kind: lull.KindRateLimited, Code: "429", After: 10 * ms}
		hinted := func(left time.Duration) (spent float64) {
			now += 50 * ms
			before := d.Budget().Balance(now)
			call, _ := d.State().Start(now, engine.Spec{Deadline: now + 11*ms + left})
			call.Attempt(now, nil)
			step := call.Next(now+ms, hint, func() uint64 { return 0 })
			spent = before - d.Budget().Balance(now+ms)
			if step.Done || call.Attempt(now+ms+step.Wait, nil).Done {
				t.Fatal(step.Reason)
			}
			call.Next(now+11*ms+min(left, time.Second), lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}, nil)
			call.Abandon(now + 11*ms + left)
			now += left
			return spent
		}
		for range 10 {
			hinted(c.left)
		}
		if spent := hinted(time.Minute); (spent == 0) != c.free {
			t.Errorf("after retries that were given %v a retry at the time of a hint costs %g", c.left, spent)
		}
	}
}

// Rule 16: a dependency that hangs opens the circuit no later if all its callers have deadlines
// shorter than AttemptTimeout, whatever was known before.
func TestRule16AHangIsNoticedThoughAllDeadlinesAreShort(t *testing.T) {
	within := map[string]time.Duration{"zero policy": 2 * time.Second, "FailureRate 0.5": 5 * time.Second, "FailureRate 0.2": 2 * time.Second}
	seeds := seed.Runs(1)
	for name, p := range breakers {
		for _, c := range []struct {
			what     string
			before   time.Duration // all is well
			patience func(r *rand.Rand) time.Duration
			forged   float64 // calls a second with 5 ms
		}{
			{"nothing is known", 0, func(*rand.Rand) time.Duration { return 100 * ms }, 0},
			{"nobody was late", time.Minute, func(*rand.Rand) time.Duration { return 100 * ms }, 0},
			{"deadlines of all lengths", time.Minute, func(r *rand.Rand) time.Duration { return ms + time.Duration(r.Int64N(int64(500*ms))) }, 0},
			{"some too short", time.Minute, func(*rand.Rand) time.Duration { return 100 * ms }, 20},
			{"a second", time.Minute, func(*rand.Rand) time.Duration { return time.Second }, 20},
		} {
			for seed := range uint64(seeds) {
				w := newCrowd(t, seed, p, func(r *rand.Rand) time.Duration { return 5*ms + time.Duration(r.ExpFloat64()*float64(10*ms)) })
				longest := time.Duration(0)
				w.come("all", 50, func() time.Duration {
					d := c.patience(w.r)
					longest = max(longest, d)
					return d
				})
				if c.forged > 0 {
					w.come("forged", c.forged, always(5*ms))
				}
				w.until(c.before)
				if w.openedAt != 0 {
					t.Errorf("%s, %s, seed %d: open at %v, before anything was wrong", name, c.what, seed, w.openedAt)
					continue
				}
				for again := range 3 { // what a hang has shown does not hide the next
					w.hangs, w.openedAt = true, 0
					began := w.now
					w.until(began + 30*time.Second)
					if took := w.openedAt - began; w.openedAt == 0 || took > within[name]+longest+1250*ms+500*ms {
						t.Errorf("%s, %s, hang %d, seed %d: the breaker opened at %v, %v into it", name, c.what, again+1, seed, w.openedAt, took)
					}
					w.hangs = false
					w.until(w.now + time.Minute)
					if s := w.d.Breaker().State(w.now); s != breaker.Closed {
						t.Errorf("%s, %s, seed %d: a minute after hang %d the breaker is %v", name, c.what, seed, again+1, s)
					}
				}
			}
		}
	}
}

// A probe that was given too little time does not open the breaker again, and the next call may
// be a probe.
func TestRule16AForgedProbeOpensNothing(t *testing.T) {
	for name, p := range breakers {
		d := newDependency(t, p)
		called(d, time.Second, 5*ms, 5*ms, timedOut)
		called(d, time.Second+10*ms, 0, 20*ms, success) // now it is known that 5 ms is too short
		d.Breaker().ForceOpen(2 * time.Second)
		d.Breaker().Auto(2 * time.Second)
		for i := range 10 {
			now := 3*time.Second + time.Duration(i)*10*ms
			if _, begun := called(d, now, 5*ms, 5*ms, timedOut); !begun {
				t.Fatalf("%s: probe %d was refused", name, i)
			}
			if s := d.Breaker().State(now + 5*ms); s != breaker.HalfOpen {
				t.Fatalf("%s: after a probe that was given 5 ms the breaker is %v", name, s)
			}
		}
		if step, _ := called(d, 4*time.Second, 0, 20*ms, success); step.Reason != engine.Success || d.Breaker().State(5*time.Second) != breaker.Closed {
			t.Errorf("%s: an honest probe: %v, and the breaker is %v", name, step.Reason, d.Breaker().State(5*time.Second))
		}
	}
}

// The throttle, and budgets that failures drain, do not count such attempts either. A short last
// attempt does not hide an earlier failure.
func TestRule16AForgedDeadlineSpendsNoBudget(t *testing.T) {
	learn := func(d *lull.Dependency) {
		called(d, time.Second, 0, 20*ms, success)
		called(d, time.Second+20*ms, 5*ms, 5*ms, timedOut)
	}
	pays := must(budget.NewGRPCThrottle(budget.GRPCConfig{MaxTokens: 10, TokenRatio: 0.5}))
	d := newDependency(t, lull.Policy{Throttle: throttle.Config{Mode: throttle.Adaptive}}, lull.WithBudget(func() budget.Budget { return pays }))
	learn(d)
	before := pays.Balance(2 * time.Second)
	for i := range 1000 {
		if step, begun := called(d, 2*time.Second+time.Duration(i)*10*ms, 5*ms, 5*ms, timedOut); !begun {
			t.Fatalf("call %d: %v", i, step.Reason)
		}
	}
	if after := pays.Balance(15 * time.Second); after != before {
		t.Errorf("a budget that failures drain went from %v to %v", before, after)
	}
	d = newDependency(t, lull.Policy{Attempts: 2, Budget: plenty, Breaker: breaker.Config{Consecutive: 1, ConsecutiveFor: -1}})
	learn(d)
	c, _ := d.State().Start(2*time.Second, engine.Spec{Deadline: 2*time.Second + 105*ms})
	c.Attempt(2*time.Second, nil)
	c.Next(2*time.Second, transient, nil)
	c.Attempt(2*time.Second+100*ms, nil)
	c.Next(2*time.Second+105*ms, lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}, nil)
	if s := d.Breaker().State(2*time.Second + 105*ms); s != breaker.Open {
		t.Errorf("a call that met a 503 first, and then its deadline, left the breaker %v", s)
	}
}

// The rule also holds in Do, which reads the clock rarely, in a hedged call, and for successes
// under an earlier policy.
func TestRule16ForgedDeadlinesInDo(t *testing.T) {
	for name, p := range breakers {
		for _, kind := range []string{"plain", "hedged", "limited", "updated"} {
			t.Run(name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					switch kind {
					case "hedged":
						p.Hedge = hedge.Config{Attempts: 2}
					case "limited":
						p.Limit = bulkhead.Config{InFlight: 10}
					}
					d := newDependency(t, p)
					call := func(within time.Duration) error {
						ctx, cancel := context.WithTimeout(context.Background(), within)
						defer cancel()
						_, err := lull.DoHedged(ctx, d, func(ctx context.Context) (int, error) {
							select {
							case <-time.After(20 * ms):
								return 0, nil
							case <-ctx.Done():
								return 0, ctx.Err()
							}
						})
						return err
					}
					if err := call(time.Hour); err != nil {
						t.Fatal(err)
					}
					if kind == "updated" {
						p.HintLimit = 3 * time.Second
						if err := d.Update(p); err != nil {
							t.Fatal(err)
						}
					}
					for range 1000 {
						call(5 * ms)
					}
					if err := call(time.Hour); err != nil {
						t.Errorf("after 5 s of deadlines of 5 ms: %v", err)
					}
				})
			})
		}
	}
}

// A success after the deadline, whose caller ignored it, does not show that so much time is
// enough.
func TestRule16ASuccessThatWasLateIsNotInTime(t *testing.T) {
	d := newDependency(t, lull.Policy{})
	called(d, time.Second, 0, 20*ms, success)
	called(d, 2*time.Second, 5*ms, 5*ms, timedOut)
	now := 3 * time.Second
	for range 20 {
		called(d, now, 5*ms, 20*ms, success)
		now += 20 * ms
	}
	for range 1000 {
		called(d, now, 5*ms, 5*ms, timedOut)
		now += 5 * ms
	}
	if step, _ := called(d, now, 0, 20*ms, success); step.Reason != engine.Success {
		t.Errorf("a call without a deadline: %v", step.Reason)
	}
}

// A stream that was silent for hours is no measure of how long an answer takes. One that was
// answered soon is.
func TestRule16ASilentStreamIsNoLatency(t *testing.T) {
	for took, opens := range map[time.Duration]bool{time.Hour: true, 20 * ms: true, 200 * ms: false} {
		d := newDependency(t, lull.Policy{})
		now := time.Second
		for range 50 {
			c, _ := d.State().Start(now, engine.Spec{Stream: true})
			c.Attempt(now, nil)
			now += took
			c.Next(now, lull.Verdict{Kind: lull.KindSuccess}, nil)
		}
		opened := false
		for end := now + 10*time.Second; now < end && !opened; now += 100 * ms {
			_, begun := called(d, now, 100*ms, 100*ms, timedOut)
			opened = !begun
		}
		if opened != opens {
			t.Errorf("streams are answered after %v: deadlines of 100 ms opened the circuit: %t, want %t", took, opened, opens)
		}
	}
}
