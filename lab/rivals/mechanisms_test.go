package rivals

import (
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
)

// retries counts those of n calls, one a millisecond from start on, all of whose
// attempts fail.
func retries(t *testing.T, p Preset, d *lull.Dependency, start time.Duration, n int, v lull.Verdict) (total int) {
	t.Helper()
	for i := range n {
		waits, _ := fail(t, p, d, start+time.Duration(i)*time.Millisecond, v, lowest, -1)
		total += len(waits)
	}
	return total
}

// 10 % of calls, rounded down: nine calls have nothing, ten have one retry. A
// call that fails is one of them, and its retries are in the window as well.
func TestRatioIsStrict(t *testing.T) {
	p := find(t, "ratio-10")
	for calls, want := range map[int]int{1: 0, 9: 0, 10: 1, 19: 1, 20: 2, 1000: 100} {
		check.Equal(t, retries(t, p, dependency(t, p), 0, calls, transient), want, "%d failing calls: retries", calls)
	}
	d := dependency(t, p)
	for range 100 {
		succeed(t, d, 0)
	}
	check.Equal(t, retries(t, p, d, 10*time.Second, 9, transient), 0, "retries earned more than 10 s ago")
}

func TestWarmupIsPerProcess(t *testing.T) {
	for name, calls := range map[string]int{"ratio-10-warmup-10": 10, "ratio-10-warmup-100": 100} {
		p := find(t, name)
		d := dependency(t, p)
		check.Equal(t, retries(t, p, d, 0, calls, transient), 3*calls, "%s: retries of the first %d calls", name, calls)
		// From then on one in ten. The warm-up's calls have earned theirs.
		check.Equal(t, retries(t, p, d, time.Second, 20, transient), 2+calls/10, "%s: retries of the next 20 calls", name)
	}
}

// Ten tokens, full at the start, one a retry, 0.1 for each success, no more than
// ten; a success gives nothing back of what its retries cost.
func TestTokenBucket(t *testing.T) {
	p := find(t, "token-bucket")
	d := dependency(t, p)
	check.Equal(t, retries(t, p, d, 0, 100, transient), 10, "retries to begin with")
	for range 9 {
		succeed(t, d, 0)
	}
	check.Equal(t, retries(t, p, d, 0, 1, transient), 0, "retries for 9 successes")
	succeed(t, d, 0)
	c, _ := d.State().Start(0, engine.Spec{})
	c.Attempt(0, nil)
	if step := c.Next(0, transient, lowest); step.Done {
		t.Fatalf("no retry for 10 successes: %v", step.Reason)
	}
	c.Attempt(0, nil)
	c.Next(0, lull.Verdict{Kind: lull.KindSuccess}, nil)
	check.Equal(t, d.Budget().Balance(0), 0, "tokens after a retry that succeeded")
	for range 1000 {
		succeed(t, d, 0)
	}
	check.Equal(t, retries(t, p, d, 0, 100, transient), 10, "retries when full")
}

// Earned by arrivals, it still pays for one retry in ten calls when all fail.
func TestTokenBucketArrivals(t *testing.T) {
	p := find(t, "token-bucket-arrivals")
	check.Equal(t, retries(t, p, dependency(t, p), 0, 1000, transient), 109, "retries of 1000 failing calls")
}

// 500 tokens: 100 retries at 5, or 50 after timeouts, at 10; in 2.1 35 at 14
// (and 10 tokens left), 100 when rate-limited, at 5.
func TestAWSQuotas(t *testing.T) {
	timeout := lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}
	rateLimited := lull.Verdict{Kind: lull.KindRateLimited, Code: "429"}
	for _, c := range []struct {
		name string
		v    lull.Verdict
		want int
	}{
		{"aws-legacy-standard", transient, 100}, {"aws-legacy-standard", timeout, 50}, {"aws-legacy-standard", rateLimited, 100},
		{"aws-go-v2", transient, 100}, {"aws-go-v2", timeout, 50},
		{"aws-standard-2.1", transient, 35}, {"aws-standard-2.1", timeout, 35}, {"aws-standard-2.1", rateLimited, 100},
		{"budget-aws-legacy", timeout, 50}, {"budget-aws-2.1", timeout, 35},
	} {
		p := find(t, c.name)
		check.Equal(t, retries(t, p, dependency(t, p), 0, 1000, c.v), c.want, "%s, %s: retries", c.name, c.v.Code)
	}
}

// A reserve of ten a second for ten seconds, whatever earns; then one in five. gRPC's throttle has
// half of its tokens to give.
func TestFloors(t *testing.T) {
	for name, want := range map[string]int{"budget-finagle": 100 + 200, "finagle": 100 + 200, "linkerd": 100, "grpc": 3, "grpc-throttling-100": 37} {
		p := find(t, name)
		check.Equal(t, retries(t, p, dependency(t, p), 0, 1000, transient), want, "%s: retries of 1000 failing calls", name)
		d := dependency(t, p)
		retries(t, p, d, 0, 1000, transient)
		for range 100 {
			succeed(t, d, time.Second)
		}
		if got := retries(t, p, d, time.Second, 100, transient); name == "linkerd" && got != 20 {
			t.Errorf("%s: %d retries for 100 successes, want 20", name, got)
		}
	}
}

// Half of at least 20 calls within 10 s; open for the same time each time.
func TestBreakersOpenForAFixedTime(t *testing.T) {
	for name, open := range map[string]time.Duration{
		"breaker-5s": 5 * time.Second, "breaker-30s": 30 * time.Second, "budget10+breaker5s": 5 * time.Second,
	} {
		p := find(t, name)
		d := dependency(t, p)
		now := time.Duration(0)
		for range 10 {
			succeed(t, d, now)
		}
		now += 9 * time.Second
		for i := range 10 {
			if s := d.Breaker().State(now); s != breaker.Closed {
				t.Fatalf("%s: %v after %d calls", name, s, 10+i)
			}
			fail(t, p, d, now, transient, lowest, -1)
		}
		for opening := range 3 {
			if s := d.Breaker().State(now); s != breaker.Open {
				t.Fatalf("%s: %v when half of 20 calls, or the probe, have failed", name, s)
			}
			if _, why := fail(t, p, d, now+open-1, transient, highest, -1); why != engine.CircuitOpen {
				t.Errorf("%s: opening %d: %v before %v", name, opening, why, open)
			}
			now += open
			probe, step := d.State().Start(now, engine.Spec{})
			if step.Done {
				t.Fatalf("%s: opening %d: %v after %v", name, opening, step.Reason, open)
			}
			probe.Attempt(now, nil)
			probe.Next(now, transient, highest)
		}
	}
}

// The measure of them all remembers nothing.
func TestNoneHasNoMemory(t *testing.T) {
	d := dependency(t, find(t, "none"))
	if fail(t, find(t, "none"), d, 0, transient, nil, -1); d.Budget() != nil || d.Breaker() != nil || d.Limiter() != nil {
		t.Errorf("it has a budget %v, a breaker %v, a limiter %v", d.Budget(), d.Breaker(), d.Limiter())
	}
}

// A rate needs its number of calls in its window: a process with few calls is never cut off,
// however long nothing succeeds. Failures in a row are no rule of these clients.
func TestARateCutsNoQuietProcessOff(t *testing.T) {
	for _, name := range []string{"breaker-5s", "breaker-30s", "budget10+breaker5s", "dotnet-standard", "resilience4j-breaker"} {
		p := find(t, name)
		d := dependency(t, p)
		for now := time.Duration(0); now < 30*time.Second; now += 550 * time.Millisecond {
			fail(t, p, d, now, transient, lowest, -1)
			if got := d.Breaker().State(now); got != breaker.Closed {
				t.Fatalf("%s: %v after %v", name, got, now)
			}
		}
	}
}
