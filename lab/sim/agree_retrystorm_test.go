package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/lab/sim"
)

// DogukanKat/retrystorm (Java, 2026) simulates 10 workers of 10 ms with a queue of
// 100 and callers that wait 50 ms; 600 calls a second, and 2500 from 20 to 30 s.
// It asks what the goodput is from 30 to 60 s under six policies. The two that
// have a state are written anew here; as there, one instance serves all callers.

// stormBucket is its token bucket: 100, full at the start, 1 a retry, 0.1 back for
// each success.
type stormBucket struct {
	idle
	tokens float64
}

func (b *stormBucket) Done(_ time.Duration, success bool, _ budget.Receipt, _ int) {
	if success {
		b.tokens = min(b.tokens+0.1, 100)
	}
}

func (b *stormBucket) Withdraw(time.Duration, budget.Class, func() uint64) budget.Grant {
	if b.tokens < 1-1e-9 {
		return budget.Grant{}
	}
	b.tokens--
	return budget.Grant{OK: true}
}

// stormBreaker is its circuit breaker, which stops retries only: open for 2 s once
// half of the last 50 attempts have failed, then one retry decides.
type stormBreaker struct {
	idle
	last                 [50]bool // failed
	n, failed            int
	open, halfOpen       bool
	since                time.Duration
	probing, probeFailed bool
}

func (b *stormBreaker) record(failed bool) {
	i := b.n % len(b.last)
	if b.n >= len(b.last) && b.last[i] {
		b.failed--
	}
	b.last[i] = failed
	if failed {
		b.failed++
	}
	b.n++
}

func (b *stormBreaker) Failed(time.Duration) {
	b.record(true)
	b.probeFailed = b.probeFailed || b.halfOpen
}

func (b *stormBreaker) Done(_ time.Duration, success bool, _ budget.Receipt, _ int) {
	if !success {
		return
	}
	b.record(false)
	if b.halfOpen {
		*b = stormBreaker{}
	}
}

func (b *stormBreaker) Withdraw(now time.Duration, _ budget.Class, _ func() uint64) budget.Grant {
	if b.open && now-b.since >= 2*time.Second {
		b.open, b.halfOpen, b.probing, b.probeFailed = false, true, false, false
	}
	switch {
	case b.halfOpen && b.probeFailed:
		b.open, b.halfOpen, b.since = true, false, now
		return budget.Grant{}
	case b.open:
		return budget.Grant{}
	case b.halfOpen:
		ok := !b.probing
		b.probing = true
		return budget.Grant{OK: ok}
	case b.n >= len(b.last) && 2*b.failed >= len(b.last):
		b.open, b.since = true, now
		return budget.Grant{}
	}
	return budget.Grant{OK: true}
}

func spiked() sim.Scenario {
	spike := 2500.0 / 600
	return sim.Scenario{
		Horizon: time.Minute, Step: time.Second,
		Services: []sim.Service{{Name: "api", Workers: 10, Queue: sim.Queue{Limit: 100}, Time: sim.Distribution{Kind: sim.Exponential, Mean: 10 * ms}}},
		Fleets: []sim.Fleet{{Calls: "api", AttemptTimeout: 50 * ms, Arrivals: sim.Arrivals{Rate: 600, Ramp: []sim.RampPoint{
			{At: 20 * time.Second, Factor: 1}, {At: 20 * time.Second, Factor: spike}, {At: 30 * time.Second, Factor: spike}, {At: 30 * time.Second, Factor: 1},
		}}}},
	}
}

func TestAgreeRetrystorm(t *testing.T) {
	s := spiked()
	seeds := few(5)
	fixed := backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None, Base: 25 * ms}
	tab := newTable("policy", "goodput 0-20 s", "20-30 s", "30-60 s", "there")
	for _, c := range []struct {
		c        sim.Contender
		from, to float64 // of five seeds there
	}{
		{sim.Contender{Name: "no retry", Policy: bare(1, fixed)}, 590, 594},
		{sim.Contender{Name: "fixed", Policy: bare(6, fixed)}, 0, 0},
		{sim.Contender{Name: "exponential", Policy: bare(6, backoff.Schedule{Jitter: backoff.None, Base: 25 * ms, Cap: time.Second})}, 0, 0},
		{sim.Contender{Name: "full jitter", Policy: bare(6, backoff.Schedule{Base: 25 * ms, Cap: time.Second})}, 0, 0},
		{sim.Contender{Name: "token bucket", Policy: bare(6, fixed), Options: paidBy(func() budget.Budget { return &stormBucket{tokens: 100} })}, 594, 604},
		{sim.Contender{Name: "breaker", Policy: bare(6, fixed), Options: paidBy(func() budget.Budget { return &stormBreaker{} })}, 593, 602},
	} {
		rs := fly(t, s, c.c, seeds)
		goodput := func(from, to int) sample {
			return over(rs, func(r *sim.Result) float64 {
				sum := 0.0
				for _, x := range r.Series.Goodput[from:to] {
					sum += x / float64(to-from)
				}
				return sum
			})
		}
		got := goodput(30, 60)
		tab.row(c.c.Name, goodput(0, 20), goodput(20, 30), got, []float64{c.from, c.to})
		if c.to == 0 {
			if got.mean > 0 {
				t.Errorf("%s: goodput of %v after the spike, want none", c.c.Name, got)
			}
			continue
		}
		// 30 s of Poisson arrivals deviate by sqrt(600/30) a second, in our runs and
		// in five there.
		if deviates := math.Sqrt(600.0 / 30 * (1/float64(seeds) + 1.0/5)); math.Abs(got.mean-(c.from+c.to)/2) > sigmas*deviates {
			t.Errorf("%s: goodput of %v after the spike, want %v to %v", c.c.Name, got, c.from, c.to)
		}
	}
	tab.log(t)
}
