package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
)

var failed = lull.Verdict{Kind: lull.KindTransient, Code: "down"}

// attempts makes attempts that all fail, until the call ends: how many, the waits
// between them, and why it ended.
func attempts(t *testing.T, c *engine.Call, step engine.Step, v lull.Verdict, random func() uint64) (n int, waits []time.Duration, why lull.Reason) {
	t.Helper()
	now := time.Duration(0)
	for !step.Done {
		if step = c.Attempt(now, random); step.Done {
			break
		}
		n++
		if step = c.Next(now, v, random); !step.Done {
			waits = append(waits, step.Wait)
			now += step.Wait
		}
	}
	return n, waits, step.Reason
}

// A call may do the same after some attempts, in whichever process they were made.
func TestResumeContinuesTheCallOfOthers(t *testing.T) {
	for _, v := range []lull.Verdict{failed, {Kind: lull.KindRateLimited, Code: "429"}} {
		p := lull.Policy{Attempts: 6, Deadline: lull.NoTimeout, Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
			Backoff: backoff.Schedule{Base: time.Second, Cap: time.Minute}}
		whole, step := newDependency(t, p).State().Start(0, engine.Spec{})
		n, waits, why := attempts(t, &whole, step, v, nil)
		if n != 6 || len(waits) != 5 || why != engine.AttemptsExhausted {
			t.Fatalf("%v: %d attempts, waits %v, %v", v.Kind, n, waits, why)
		}
		for made := range 8 {
			c, step := newDependency(t, p).State().Resume(0, engine.Spec{}, made)
			if c.Attempts() != made {
				t.Errorf("%d attempts before the first here, want %d", c.Attempts(), made)
			}
			n, got, why := attempts(t, &c, step, v, nil)
			left := max(6-made, 1) // it was not asked for, but begun it is
			if want := waits[min(made, 5):]; n != left || fmt.Sprint(got) != fmt.Sprint(want) || why != engine.AttemptsExhausted {
				t.Errorf("%v after %d: %d attempts, waits %v, %v; want %d, %v", v.Kind, made, n, got, why, left, want)
			}
			if want := made + left; c.Attempts() != want {
				t.Errorf("%d attempts in all, want %d", c.Attempts(), want)
			}
			for i := range got {
				if w := newDependency(t, p).State().Wait(made+i+1, v, nil); w != got[i] {
					t.Errorf("Wait(%d) = %v, Next waits %v", made+i+1, w, got[i])
				}
			}
		}
	}
}

// Decorrelated jitter draws each wait from the one before, also if that was drawn in another
// process.
func TestResumeOfDecorrelatedWaits(t *testing.T) {
	for _, v := range []lull.Verdict{failed, {Kind: lull.KindRateLimited}} {
		decorrelated(t, v)
	}
}

func decorrelated(t *testing.T, failed lull.Verdict) {
	p := lull.Policy{Attempts: 10, Deadline: lull.NoTimeout, Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true}, RateLimitedBase: 5 * time.Second,
		Backoff: backoff.Schedule{Jitter: backoff.Decorrelated, Base: time.Second, Cap: time.Minute}}
	d := newDependency(t, p)
	r := rand.New(rand.NewPCG(1, 2))
	const rounds = 10_000
	var whole, parts [5]float64
	for range rounds {
		c, step := d.State().Start(0, engine.Spec{})
		_, waits, _ := attempts(t, &c, step, failed, r.Uint64)
		for i := range whole {
			whole[i] += waits[i].Seconds() / rounds
			c, step := d.State().Resume(0, engine.Spec{}, i)
			if step = c.Attempt(0, r.Uint64); step.Done {
				t.Fatal(step)
			}
			parts[i] += c.Next(0, failed, r.Uint64).Wait.Seconds() / rounds
		}
	}
	for i := range whole {
		if math.Abs(parts[i]-whole[i]) > 0.05*whole[i] {
			t.Errorf("%v: mean wait before retry %d: %.2f s resumed, %.2f s in one call", failed.Kind, i+1, parts[i], whole[i])
		}
	}
	if whole[4] < 2*whole[0] {
		t.Errorf("means %.2f do not grow: this test tells nothing", whole)
	}
}

// The policy's deadline began with the first attempt, in another process.
func TestResumeKnowsOnlyItsOwnDeadline(t *testing.T) {
	d := newDependency(t, lull.Policy{Attempts: 3, Deadline: time.Second, Budget: plenty, AttemptTimeout: time.Second,
		Backoff: backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None, Base: time.Minute}})
	c, _ := d.State().Resume(0, engine.Spec{}, 1)
	if got := c.Deadline(); got != math.MaxInt64 {
		t.Errorf("deadline %v without one", got)
	}
	c.Attempt(0, nil)
	if step := c.Next(0, failed, nil); step.Done || step.Wait != time.Minute {
		t.Errorf("%+v, want a wait of a minute", step)
	}
	c, _ = d.State().Resume(0, engine.Spec{Deadline: 30 * time.Second}, 1)
	c.Attempt(0, nil)
	if step := c.Next(0, failed, nil); !step.Done || step.Reason != engine.Deadline {
		t.Errorf("%+v, want the deadline to be reached", step)
	}
	for _, now := range []time.Duration{time.Second, time.Minute} {
		c, step := d.State().Resume(now, engine.Spec{Deadline: time.Second}, 1)
		if !step.Done || step.Reason != engine.Deadline || !c.Over() {
			t.Errorf("%+v at %v, after its deadline; over: %v", step, now, c.Over())
		}
	}
}

// A call that made no attempt here shows nothing of the dependency.
func TestResumeWithoutAnAttemptTeachesNothing(t *testing.T) {
	d := newDependency(t, lull.Policy{Attempts: 5, Deadline: lull.NoTimeout, Budget: plenty, Limit: bulkhead.Config{InFlight: 1},
		Breaker: breaker.Config{Consecutive: 1, ConsecutiveFor: -1}})
	busy, _ := d.State().Start(0, engine.Spec{})
	busy.Attempt(0, nil)
	c, _ := d.State().Resume(0, engine.Spec{}, 3)
	if step := c.Attempt(0, nil); step.Reason != engine.Limited {
		t.Fatalf("%+v, want it to be refused for want of room", step)
	}
	if got := d.Breaker().State(0); got != breaker.Closed {
		t.Errorf("the breaker is %v for a call that was never made", got)
	}
}

// A message that comes for the third time has arrived once.
func TestResumeIsNoArrival(t *testing.T) {
	d := newDependency(t, lull.Policy{Attempts: 1000, Deadline: lull.NoTimeout, Breaker: breaker.Config{Off: true},
		Budget: budget.Config{Ratio: 1, Earn: budget.Arrivals, Window: time.Minute}})
	paid := func(made int) int {
		n := 0
		for range 100 {
			c, step := d.State().Resume(0, engine.Spec{}, made)
			if step = c.Attempt(0, nil); step.Done {
				t.Fatal(step.Reason)
			}
			if step = c.Next(0, failed, nil); !step.Done {
				n++
				c.Abandon(0)
			}
		}
		return n
	}
	d.Budget() // it remembers from here on
	if n := paid(0); n < 90 {
		t.Errorf("a hundred arrivals that earn a retry each paid for %d", n)
	}
	if n := paid(1); n > 10 {
		t.Errorf("none arrived, and %d retries were paid for", n)
	}
}

// No wait is longer than the policy allows.
func FuzzWait(f *testing.F) {
	f.Add(1, uint8(0), int64(0), uint64(1), uint8(0), int64(0), int64(0))
	f.Add(900, uint8(1), int64(time.Second), uint64(1<<63), uint8(3), int64(time.Second), int64(time.Hour))
	f.Add(-5, uint8(1), int64(math.MaxInt64), uint64(math.MaxUint64), uint8(1), int64(time.Millisecond), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, retry int, kind uint8, after int64, bits uint64, jitter uint8, base, limit int64) {
		p := lull.Policy{Backoff: backoff.Schedule{Jitter: backoff.Jitter(jitter), Base: time.Duration(base)}, HintLimit: time.Duration(limit)}
		if p.Validate() != nil {
			t.Skip()
		}
		v := lull.Verdict{Kind: lull.KindTransient, After: min(max(time.Duration(after), 0), p.WithDefaults().HintLimit)}
		if kind%2 == 1 {
			v.Kind = lull.KindRateLimited
		}
		got := newDependency(t, p).State().Wait(retry, v, func() uint64 { bits = bits*6364136223846793005 + 1; return bits })
		if longest := p.LongestWait(max(retry, 1)); got < v.After || got > longest {
			t.Errorf("Wait(%d, %+v) = %v, allowed are %v to %v", retry, v, got, v.After, longest)
		}
	})
}

func TestMaxAttempts(t *testing.T) {
	for _, c := range []struct {
		p    lull.Policy
		want int
	}{
		{lull.Policy{}, engine.DefaultAttempts},
		{lull.Policy{Attempts: 7}, 7},
		{lull.Policy{Attempts: 100, Backoff: backoff.Schedule{Kind: backoff.Ethernet}}, 16},
	} {
		if got := c.p.MaxAttempts(); got != c.want {
			t.Errorf("%+v: %d, want %d", c.p, got, c.want)
		}
	}
}

// The rest of an answer is a success for the breaker. It earns nothing, and what its
// retry cost stays spent.
func TestTheRestIsASuccessForAllButTheBudget(t *testing.T) {
	p := lull.Policy{Budget: budget.Config{Stock: 10, Ratio: 0.5}, Timeouts: lull.TimeoutsAlways, Breaker: breaker.Config{FailureRate: 0.5}}
	s := newDependency(t, p).State()
	now := time.Hour
	balance := s.Budget().Balance(now)
	c, step := s.Resume(now, engine.Spec{Rest: true}, 1)
	if step.Done {
		t.Fatal(step.Reason)
	}
	if step = c.Next(now, failed, nil); step.Done {
		t.Fatal(step.Reason)
	}
	now += step.Wait
	if step = c.Attempt(now, nil); step.Done {
		t.Fatal(step.Reason)
	}
	step = c.Next(now, success, nil)
	if !step.Done || step.Reason != engine.Success || !c.Over() {
		t.Errorf("%+v", step)
	}
	if again := c.Next(now, success, nil); again.Reason != engine.Success {
		t.Errorf("again: %+v", again)
	}
	if calls, failures, _ := s.Breaker().Counts(now); calls != 1 || failures != 0 {
		t.Errorf("the breaker has %d calls, %d of which failed", calls, failures)
	}
	if spent := balance - s.Budget().Balance(now); spent != 1 {
		t.Errorf("it has cost %v tokens, want 1", spent)
	}
}

// Nothing is retried through an open circuit, also if the attempts before were made elsewhere: here the
// circuit opens during the wait for the rest of an answer. That shows the breaker nothing.
func TestNothingIsContinuedThroughAnOpenCircuit(t *testing.T) {
	s := newDependency(t, lull.Policy{Timeouts: lull.TimeoutsAlways}).State()
	now := time.Hour
	c, step := s.Resume(now, engine.Spec{}, 1)
	if step.Done {
		t.Fatal(step.Reason)
	}
	if step = c.Next(now, failed, nil); step.Done {
		t.Fatal(step.Reason)
	}
	s.Breaker().ForceOpen(now)
	if step = c.Attempt(now+step.Wait, nil); !step.Done || step.Reason != engine.CircuitOpen {
		t.Errorf("%+v", step)
	}
}
