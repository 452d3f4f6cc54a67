package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// One call at a time meets a fault of half a second that begins at 1.05 s, on a
// service that takes 100 ms. How long it takes can be worked out by hand.
func TestFaultsDelayWork(t *testing.T) {
	fault := Fault{At: 1050 * millisecond, For: 500 * millisecond}
	for _, c := range []struct {
		kind    FaultKind
		share   float64
		workers int // -1: both none and one
		at      time.Duration
		want    time.Duration
	}{
		{Stall, 0, -1, 900 * millisecond, 100 * millisecond}, // over before
		{Stall, 0, -1, 950 * millisecond, 100 * millisecond}, // in the same moment
		{Stall, 0, -1, 1000 * millisecond, 600 * millisecond},
		{Stall, 0, -1, 1050 * millisecond, 600 * millisecond},
		{Stall, 0, -1, 1100 * millisecond, 550 * millisecond},
		{Stall, 0, -1, 1550 * millisecond, 100 * millisecond},
		{SlowDown, 0.5, -1, 900 * millisecond, 100 * millisecond},
		{SlowDown, 0.5, -1, 1000 * millisecond, 150 * millisecond}, // half of it done before
		{SlowDown, 0.5, -1, 1100 * millisecond, 200 * millisecond},
		{SlowDown, 0.5, -1, 1400 * millisecond, 175 * millisecond}, // 75 ms done by the end
		{SlowDown, 0.5, -1, 1550 * millisecond, 100 * millisecond},
		{SlowDown, 0, -1, 1050 * millisecond, 550 * millisecond},   // a tenth of the speed: half done in 500 ms
		{BrownOut, 0.25, 0, 1100 * millisecond, 400 * millisecond}, // no number of workers: their speed
		{BrownOut, 0.25, 8, 1100 * millisecond, 100 * millisecond},
		{Errors, 0.001, 0, 1000 * millisecond, 100 * millisecond}, // work in hand continues
	} {
		workers := []int{c.workers}
		if c.workers < 0 {
			workers = []int{0, 1}
		}
		for _, n := range workers {
			f := fault
			f.Kind, f.Share = c.kind, c.share
			r := play(t, Scenario{
				Horizon:  3 * time.Second,
				Services: []Service{{Name: "api", Workers: n, Time: fixed(100 * millisecond), Faults: []Fault{f}}},
				Fleets:   callsAt(c.at),
			}, once())
			want(t, fmt.Sprintf("%v of %v, %d workers, call at %v", c.kind, c.share, n, c.at), r.Latency.Max, c.want)
			want(t, "successes", r.Totals.Succeeded, 1)
		}
	}
}

// Ten calls come at once, and each worker that is left takes one at a time.
func TestBrownOutLeavesAShareOfTheWorkers(t *testing.T) {
	play := func(share float64, length time.Duration) Result {
		return play(t, Scenario{
			Horizon: 5 * time.Second, Step: millisecond,
			Services: []Service{{
				Name: "api", Workers: 10, Queue: Queue{Limit: 10}, Time: fixed(100 * millisecond),
				Faults: []Fault{{Kind: BrownOut, At: 500 * millisecond, For: length, Share: share}},
			}},
			Fleets: []Fleet{{Calls: "api", Arrivals: Arrivals{Kind: AtOnce, At: time.Second, Each: 10}}},
		}, once())
	}
	r := play(0.4, 3*time.Second)
	a, b, c := 1100*millisecond, 1200*millisecond, 1300*millisecond
	wantTimes(t, "four workers: done", moments(r.Series, r.Series.Goodput), a, a, a, a, b, b, b, b, c, c)
	r = play(0, 3*time.Second)
	want(t, "a tenth is one: last", r.Totals.Last, 2*time.Second)
	// Two workers until 1.15 s, then ten: those who wait begin in that moment.
	r = play(0.2, 650*millisecond)
	d := 1250 * millisecond
	wantTimes(t, "two workers, then ten: done", moments(r.Series, r.Series.Goodput), a, a, b, b, d, d, d, d, d, d)
}

// A crash at 1.05 s, for a second, loses what is in hand and what waits, refuses
// what comes, and everything is as before when it is over.
func TestCrash(t *testing.T) {
	for _, workers := range []int{0, 1, 2} {
		s := Scenario{
			Horizon: 5 * time.Second, Step: millisecond,
			Services: []Service{{
				Name: "api", Workers: workers, Queue: Queue{Limit: 10 * min(workers, 1)}, Time: fixed(100 * millisecond),
				Faults: []Fault{{Kind: Crash, At: 1050 * millisecond, For: time.Second}},
			}},
			Fleets: callsAt(1000*millisecond, 1000*millisecond, 1000*millisecond, 1500*millisecond, 2100*millisecond),
		}
		w, r := playWorld(t, s, Contender{Policy: once()}, Options{})
		lost := 1050 * millisecond
		wantTimes(t, "failed", moments(r.Series, r.Series.Failed), lost, lost, lost, 1500*millisecond)
		wantTimes(t, "done", moments(r.Series, r.Series.Goodput), 2200*millisecond)
		want(t, "jobs left", w.jobs.inUse(), 0)
		want(t, "busy", w.services[0].hosts[0].busy, 0)

		// What is lost in hand may have been carried out, what is refused was not.
		for i := range s.Fleets {
			s.Fleets[i].NotIdempotent = true
		}
		r = play(t, s, retrying(3, time.Second))
		want(t, "unsafe to repeat", r.reason(engine.NotIdempotent), 3)
		want(t, "succeeded, one at the second attempt", r.Totals.Succeeded, 2)
		wantTimes(t, "retries", moments(r.Series, r.Series.Retries), 2500*millisecond)
		want(t, "effects", r.Totals.Effects, 2)
	}
}

// After a crash from 1 to 2 s the cache is cold for 10 s: work takes five times
// as long at 2 s, three times at 7 s, and as long as ever from 12 s on.
func TestCrashLeavesAColdCache(t *testing.T) {
	for _, c := range []struct {
		cold float64
		at   time.Duration
		want time.Duration
	}{
		{5, 2 * time.Second, 500 * millisecond},
		{5, 7 * time.Second, 300 * millisecond},
		{5, 12 * time.Second, 100 * millisecond},
		{0, 2 * time.Second, time.Second},
		{1, 2 * time.Second, 100 * millisecond},
	} {
		for _, workers := range []int{0, 1} {
			r := play(t, Scenario{
				Horizon: 20 * time.Second,
				Services: []Service{{
					Name: "api", Workers: workers, Time: fixed(100 * millisecond),
					Faults: []Fault{{Kind: Crash, At: time.Second, For: time.Second, Warmup: 10 * time.Second, Cold: c.cold}},
				}},
				Fleets: callsAt(c.at),
			}, once())
			want(t, fmt.Sprintf("cold %v, at %v", c.cold, c.at), r.Latency.Max, c.want)
		}
	}
}

func errorsFrom(f Fault, workers int) Scenario {
	f.Kind, f.At, f.For = Errors, time.Second, 10*time.Second
	return Scenario{
		Horizon: 20 * time.Second, Step: millisecond,
		Services: []Service{{Name: "api", Workers: workers, Time: fixed(100 * millisecond), ErrorTime: 20 * millisecond, Faults: []Fault{f}}},
		Fleets:   callsAt(1500 * millisecond),
	}
}

func TestErrorsSayWhen(t *testing.T) {
	for _, workers := range []int{0, 1} {
		r := play(t, errorsFrom(Fault{}, workers), once())
		want(t, "said after ErrorTime", r.Totals.Last, 1520*millisecond)
		want(t, "turned away", r.Totals.Errors, 1)
		want(t, "attempts failed", r.Totals.AttemptsFailed, 1)
		r = play(t, errorsFrom(Fault{After: 70 * millisecond}, workers), once())
		want(t, "said after After", r.Totals.Last, 1570*millisecond)

		// A hint is waited for, and up to half as long again.
		r = play(t, errorsFrom(Fault{RetryAfter: 2 * time.Second}, workers), retrying(2, millisecond))
		at := moments(r.Series, r.Series.Retries)
		if len(at) != 1 || at[0] < 3520*millisecond || at[0] > 4520*millisecond {
			t.Errorf("retries at %v, want one 2 to 3 s after 1.52 s", at)
		}
		r = play(t, errorsFrom(Fault{DontRetry: true}, workers), retrying(3, millisecond))
		want(t, "told not to retry", r.reason(engine.Overloaded), 1)
		want(t, "attempts", r.Totals.Attempts, 1)
	}
}

// A 503 that names a wait is a rate limit, as in lullhttp.
func TestHintsAreReadAsByLullhttp(t *testing.T) {
	kinds := map[engine.VerdictKind]int{}
	s := errorsFrom(Fault{RetryAfter: time.Second}, 1)
	s.Services[0].Rate = Rate{PerSecond: 1, RetryAfter: time.Second}
	s.Services[0].Queue.RetryAfter = time.Second
	s.Services[0].Faults = append(s.Services[0].Faults, Fault{Kind: Errors, At: time.Second, For: 1, DontRetry: true, RetryAfter: time.Second})
	build(t, s, Contender{Policy: once(), Verdict: func(v lull.Verdict) lull.Verdict {
		if v.After > 0 {
			kinds[v.Kind]++
		}
		return v
	}}, Options{})
	// The fault and the queue give the same verdict.
	if len(kinds) != 2 || kinds[lull.KindRateLimited] != 2 || kinds[lull.KindOverloaded] != 1 {
		t.Errorf("verdicts with a hint: %v", kinds)
	}
}

func TestSomeErrorsAndSomeHosts(t *testing.T) {
	const calls = 10000
	for name, c := range map[string]struct {
		f    Fault
		want float64
	}{
		"a share":               {Fault{Kind: Errors, Share: 0.3}, 0.3},
		"one host of four":      {Fault{Kind: Errors, Hosts: 1}, 0.25},
		"three hosts of four":   {Fault{Kind: Crash, Hosts: 3}, 0.75},
		"half of all, of three": {Fault{Kind: Errors, Hosts: 3, Share: 0.5}, 0.375},
		"all":                   {Fault{Kind: Errors}, 1},
	} {
		for _, workers := range []int{0, calls} {
			c.f.At, c.f.For = time.Second, time.Second
			r := play(t, Scenario{
				Horizon:  3 * time.Second,
				Services: []Service{{Name: "api", Hosts: 4, Workers: workers, Time: fixed(millisecond), Faults: []Fault{c.f}}},
				Fleets:   []Fleet{{Calls: "api", Arrivals: Arrivals{Kind: AtOnce, At: 1500 * millisecond, Each: calls}}},
			}, once())
			wantShare(t, name, r.Totals.AttemptsFailed, calls, c.want)
		}
	}
	r := play(t, Scenario{
		Horizon:  time.Second,
		Services: []Service{{Name: "api", Errors: 0.1, ErrorTime: millisecond}},
		Fleets:   []Fleet{{Calls: "api", Arrivals: Arrivals{Kind: AtOnce, Each: calls}}},
	}, once())
	wantShare(t, "at all times", r.Totals.Errors, calls, 0.1)
}

// Errors for 100 ms at 1, 1.5, 2, 2.5 and 3 s, and a call every 10 ms until 3.05 s:
// four times ten, and five, fail.
func TestFaultsRepeat(t *testing.T) {
	s := Scenario{
		Horizon: 3050 * millisecond,
		Services: []Service{{
			Name:   "api",
			Faults: []Fault{{Kind: Errors, At: time.Second, For: 100 * millisecond, Every: 500 * millisecond}},
		}},
		Fleets: []Fleet{{Calls: "api", Arrivals: Arrivals{Kind: Constant, Rate: 100}}},
	}
	want(t, "errors", play(t, s, once()).Totals.Errors, 45)
	// A repetition that is beyond all time is none.
	s.Services[0].Faults[0].Every = never
	want(t, "errors", play(t, s, once()).Totals.Errors, 10)
}

// Faults at once: the workers are the fewest, the speeds multiply, and a stall is
// a stall.
func TestFaultsOverlap(t *testing.T) {
	sec := func(n int) time.Duration { return time.Duration(n) * time.Second }
	def := Service{Name: "api", Workers: 10, Hosts: 3, Faults: []Fault{
		{Kind: SlowDown, At: sec(1), For: sec(4), Share: 0.5},
		{Kind: SlowDown, At: sec(2), For: sec(4), Share: 0.5},
		{Kind: BrownOut, At: sec(1), For: sec(2), Share: 0.5},
		{Kind: BrownOut, At: sec(2), For: sec(2), Share: 0.3},
		{Kind: Stall, At: sec(3), For: sec(1), Hosts: 1},
		{Kind: Crash, At: sec(8), For: sec(1), Every: sec(3), Warmup: sec(4), Hosts: 2},
	}}
	lines := timelines{def: &def, horizon: sec(20), known: map[int]timeline{}}
	one, two, three := lines.of(0), lines.of(1), lines.of(2)
	for _, c := range []struct {
		at      int
		speed   float64
		workers int
	}{{0, 1, 10}, {1, 0.5, 5}, {2, 0.25, 3}, {3, 0, 3}, {4, 0.25, 10}, {5, 0.5, 10}, {6, 1, 10}, {8, 1, 10}} {
		x := one.now(sec(c.at))
		if x.speed != c.speed || x.workers != c.workers {
			t.Errorf("at %ds: speed %v, %d workers, want %v, %d", c.at, x.speed, x.workers, c.speed, c.workers)
		}
	}
	want(t, "the second host's speed", two.now(sec(3)).speed, 0.25)
	for at, down := range map[int]bool{7: false, 8: true, 9: false, 11: true, 12: false, 14: true} {
		want(t, fmt.Sprintf("down at %ds", at), two.now(sec(at)).down, down)
		want(t, fmt.Sprintf("third host down at %ds", at), three.now(sec(at)).down, false)
	}
	x := two.now(sec(13))
	want(t, "cold since", x.coldFrom, sec(12))
	want(t, "back in time", two.now(sec(1)).workers, 5)
}
