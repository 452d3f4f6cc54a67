package sim_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/lab/sim"
)

// The metastable failure: 100 workers of 100 ms each (1000 a second), a FIFO
// queue longer than callers wait, and a stall. What becomes of it follows from
// two laws.
//
// Drain. While a queue of Q stands before a service of capacity mu, an attempt
// waits Q/mu. Callers that wait T get nothing unless Q < mu T. With load lambda
// and A attempts per call as long as everything fails, the queue changes by
// lambda A - mu a second. So things are normal again after (Q - mu T)/(mu - lambda A),
// Q being the queue at the end of the stall, and never if lambda A >= mu.
//
// Depth. A queue that holds no more than mu T at all cannot make everybody wait
// for more than T.
const (
	mu       = 1000.0
	patience = time.Second
	stallAt  = 20 * time.Second
)

// metastable is the scenario at a load (as a share of the capacity), with a fault
// and some time to recover from it. 100 processes share the load.
func metastable(load float64, queue sim.Queue, fault sim.Fault, after time.Duration) sim.Scenario {
	fault.At = stallAt
	return sim.Scenario{
		Horizon: stallAt + fault.For + after, Step: time.Second, Warmup: 5 * time.Second,
		Services: []sim.Service{{
			Name: "api", Workers: 100, Queue: queue,
			Time:   sim.Distribution{Kind: sim.Exponential, Mean: 100 * time.Millisecond},
			Faults: []sim.Fault{fault},
		}},
		Fleets: []sim.Fleet{{
			Calls: "api", Processes: 100, AttemptTimeout: patience,
			Arrivals: sim.Arrivals{Rate: load * mu},
		}},
	}
}

func stall(d time.Duration) sim.Fault { return sim.Fault{Kind: sim.Stall, For: d} }

var deep = sim.Queue{Limit: 10000}

// The policies: what decides is how many attempts a call makes when all fail.
var (
	jitter       = backoff.Schedule{Cap: 10 * time.Second}
	noRetry      = sim.Contender{Name: "no retry", Policy: bare(1, jitter)}
	threeRetries = sim.Contender{Name: "3 retries", Policy: bare(4, jitter)}
	threeFixed   = sim.Contender{Name: "3 retries, fixed", Policy: bare(4, backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None, Base: 100 * time.Millisecond})}
	ofArrivals   = sim.Contender{Name: "10 % of calls", Policy: func() lull.Policy {
		p := bare(4, jitter)
		p.Budget = budget.Config{Ratio: 0.1, Earn: budget.Arrivals, Window: 10 * time.Second}
		return p
	}()}
)

func recovered(rs []sim.Result) (n int, mean time.Duration) {
	for i := range rs {
		if r := rs[i].Recovery; r.Recovered {
			n++
			mean += r.Time
		}
	}
	return n, mean / time.Duration(max(n, 1))
}

// The dead queue drains in 35 s without retries and in 67 s with retries for 10 %
// of the calls, at 80 % load and after a stall of 10 s; a simulator written
// independently of this one measured 37 and 68.
func TestAgreeDrainTime(t *testing.T) {
	tab := newTable("policy", "load", "queue at the end of the stall", "attempts/call while it drains", "predicted s", "measured s")
	for _, c := range []struct {
		c      sim.Contender
		load   float64
		a      float64 // attempts per call when everything fails
		by     float64 // the figures above, in s; 0: none
		within float64
	}{
		{noRetry, 0.8, 1, 35, 3}, {ofArrivals, 0.8, 1.1, 67, 3},
		{noRetry, 0.7, 1, 20, 3}, {noRetry, 0.9, 1, 80, 6}, {ofArrivals, 0.7, 1.1, 30, 3},
	} {
		rs := fly(t, metastable(c.load, deep, stall(10*time.Second), 140*time.Second), c.c, few(5))
		end := int((stallAt + 10*time.Second) / time.Second)
		queue := over(rs, func(r *sim.Result) float64 { return r.Series.Queue[end-1] })
		// What is sent while all fail, per call begun. The budget looks back over
		// 10 s, and what it paid in a burst it can pay again when that has expired;
		// so over a whole number of windows.
		a := over(rs, func(r *sim.Result) float64 {
			var attempts, calls float64
			for i := end; i < end+10; i++ {
				attempts += r.Series.First[i] + r.Series.Retries[i]
				calls += r.Series.Calls[i]
			}
			return attempts / calls
		})
		predicted := (queue.mean - mu*patience.Seconds()) / (mu - c.load*mu*c.a)
		n, _ := recovered(rs)
		took := over(rs, func(r *sim.Result) float64 { return r.Recovery.Time.Seconds() })
		tab.row(c.c.Name, c.load, queue, a, predicted, took)
		// The work that drains is random too: over d seconds it deviates by
		// sqrt(d mu) and so do the arrivals, which moves the end by that over
		// mu - lambda A. One window of a second more is lost in measuring.
		noise := math.Sqrt(predicted*mu*(1+c.load*c.a)) / (mu - c.load*mu*c.a) / math.Sqrt(float64(len(rs)))
		if n < len(rs) || math.Abs(took.mean-predicted) > 1.5+sigmas*noise {
			t.Errorf("%s at %v: %d of %d recovered, after %v s, want %.1f (standard error %.2g)", c.c.Name, c.load, n, len(rs), took, predicted, noise)
		}
		if c.by > 0 && math.Abs(took.mean-c.by) > c.within {
			t.Errorf("%s at %v: recovered after %v s, want %v", c.c.Name, c.load, took, c.by)
		}
		if math.Abs(a.mean-c.a) > 0.01 {
			t.Errorf("%s at %v: %v attempts per call while everything fails, want %v", c.c.Name, c.load, a, c.a)
		}
	}
	tab.log(t)
}

// A collapse is for good exactly if load x attempts per call at total failure is
// at least the capacity: four attempts, 0.25; 10 % of calls, 0.909.
func TestAgreeCollapseThreshold(t *testing.T) {
	tab := newTable("policy", "load", "load x attempts", "recovered", "after", "goodput at the end")
	for _, c := range []struct {
		c    sim.Contender
		load float64
		a    float64
		ends bool
		s    int // how long to wait for it: half as long again as the drain takes
	}{
		{threeRetries, 0.20, 4, true, 60}, {threeRetries, 0.30, 4, false, 120}, {threeFixed, 0.20, 4, true, 60}, {threeFixed, 0.30, 4, false, 120},
		{threeRetries, 0.80, 4, false, 60},
		{ofArrivals, 0.85, 1.1, true, 200}, {ofArrivals, 0.95, 1.1, false, 200},
		{noRetry, 0.95, 1, true, 260},
	} {
		rs := fly(t, metastable(c.load, deep, stall(10*time.Second), time.Duration(c.s)*time.Second), c.c, few(3))
		n, after := recovered(rs)
		final := over(rs, func(r *sim.Result) float64 { return r.Recovery.Final })
		tab.row(c.c.Name, c.load, c.load*c.a, fmt.Sprintf("%d of %d", n, len(rs)), after, final)
		check.Equal(t, n, map[bool]int{true: len(rs)}[c.ends], "%s at %v: recovered of %d", c.c.Name, c.load, len(rs))
		if !c.ends && final.mean != 0 {
			t.Errorf("%s at %v: collapsed for good, but %v of the calls succeed in the end", c.c.Name, c.load, final)
		}
	}
	tab.log(t)
}

// Collapse needs a queue longer than callers wait, and an outage about as long.
func TestAgreeQueueAndTimeout(t *testing.T) {
	tab := newTable("queue", "fault", "recovered", "after", "attempts/call at the end")
	const seeds = 5
	all, none := [2]int{seeds, seeds}, [2]int{0, 0}
	for _, c := range []struct {
		name  string
		queue sim.Queue
		fault sim.Fault
		want  [2]int // how many recover, from and to
		soon  bool   // at once: within a few seconds
	}{
		{"500", sim.Queue{Limit: 500}, stall(10 * time.Second), all, true},
		{"900", sim.Queue{Limit: 900}, stall(10 * time.Second), [2]int{1, seeds}, false},
		{"1100", sim.Queue{Limit: 1100}, stall(10 * time.Second), none, false},
		{"10000 LIFO", sim.Queue{Limit: 10000, Order: sim.LIFO}, stall(10 * time.Second), all, true},
		{"10000 drop expired", sim.Queue{Limit: 10000, DropExpired: true}, stall(10 * time.Second), all, true},
		{"10000", deep, stall(500 * time.Millisecond), all, true},
		{"10000", deep, stall(1500 * time.Millisecond), none, false},
		{"10000", deep, stall(10 * time.Second), none, false},
		{"10000", deep, sim.Fault{Kind: sim.BrownOut, For: 10 * time.Second}, none, false},
		{"10000", deep, sim.Fault{Kind: sim.SlowDown, For: 10 * time.Second}, none, false},
		{"10000", deep, sim.Fault{Kind: sim.Errors, For: 10 * time.Second}, all, true},
	} {
		n := few(seeds)
		rs := fly(t, metastable(0.8, c.queue, c.fault, 40*time.Second), threeRetries, n)
		got, after := recovered(rs)
		tab.row(c.name, fmt.Sprint(c.fault.Kind, " ", c.fault.For), fmt.Sprintf("%d of %d", got, n), after, over(rs, lastAmplification))
		if got < c.want[0]*n/seeds || got > c.want[1] || c.soon && after > 5*time.Second {
			t.Errorf("queue %s, %v of %v: %d of %d recovered after %v, want %v of %d", c.name, c.fault.Kind, c.fault.For, got, n, after, c.want, seeds)
		}
	}
	// Without retries a short stall is over soon.
	for _, d := range []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond} {
		rs := fly(t, metastable(0.8, deep, stall(d), 40*time.Second), noRetry, few(seeds))
		got, after := recovered(rs)
		tab.row("10000, no retry", fmt.Sprint("stall ", d), fmt.Sprintf("%d of %d", got, len(rs)), after, over(rs, lastAmplification))
		if got < len(rs) || after > 4*time.Second {
			t.Errorf("no retry, stall of %v: %d of %d recovered after %v", d, got, len(rs), after)
		}
	}
	tab.log(t)
}

// lastAmplification is the attempts per call begun in the last 10 s.
func lastAmplification(r *sim.Result) float64 {
	var attempts, calls float64
	for i := len(r.Series.Calls) - 10; i < len(r.Series.Calls); i++ {
		attempts += r.Series.First[i] + r.Series.Retries[i]
		calls += r.Series.Calls[i]
	}
	return attempts / calls
}

// A spike of arrivals collapses it as a stall does.
func TestAgreeSpike(t *testing.T) {
	s := metastable(0.8, deep, stall(time.Second), 100*time.Second)
	s.Services[0].Faults = nil
	at, end := stallAt, stallAt+10*time.Second
	s.Fleets[0].Arrivals.Ramp = []sim.RampPoint{{At: at, Factor: 1}, {At: at, Factor: 2.5 / 0.8}, {At: end, Factor: 2.5 / 0.8}, {At: end, Factor: 1}}
	for _, c := range []struct {
		c    sim.Contender
		ends bool
	}{{noRetry, true}, {threeRetries, false}} {
		rs := fly(t, s, c.c, few(3))
		n, after := recovered(rs)
		t.Logf("%s: %d of %d recovered after %v", c.c.Name, n, len(rs), after)
		check.Equal(t, n, map[bool]int{true: len(rs)}[c.ends], "%s: recovered of %d", c.c.Name, len(rs))
	}
}
