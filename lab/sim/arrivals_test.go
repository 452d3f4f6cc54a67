package sim

import (
	"math"
	"slices"
	"testing"
	"time"
)

// arrivals are the times of the first n calls, up to the given time.
func arrivals(a Arrivals, processes int, until time.Duration, n int) (times []time.Duration) {
	s := stream{origin: &origin{processes: processes}, arrivals: &a, key: 42, ramp: a.Ramp}
	s.findFirst()
	for len(times) < n && s.at <= until && s.at != never {
		times = append(times, s.at)
		s.made++
		s.findNext(s.at)
	}
	return times
}

// mass is the integral of the factor of a ramp over [from, to], by small steps.
func mass(ramp []RampPoint, from, to float64) (sum float64) {
	at := func(x float64) float64 {
		last := ramp[0].Factor
		for i, p := range ramp {
			if x < p.At.Seconds() {
				if i > 0 {
					q := ramp[i-1]
					return q.Factor + (p.Factor-q.Factor)*(x-q.At.Seconds())/(p.At-q.At).Seconds()
				}
				return last
			}
			last = p.Factor
		}
		return last
	}
	const steps = 100000
	for i := range steps {
		sum += at(from+(float64(i)+0.5)*(to-from)/steps) * (to - from) / steps
	}
	return sum
}

// The number of calls in any second is the integral of the rate. It is exact if
// arrivals are constant. Else its standard deviation is the root of the integral.
func TestArrivalsFollowTheirRate(t *testing.T) {
	sec := time.Second
	const rate = 10000
	for name, ramp := range map[string][]RampPoint{
		"level":               {{0, 1}},
		"up":                  {{0, 0}, {10 * sec, 2}},
		"down to nothing":     {{0, 2}, {7 * sec, 0}},
		"spike":               {{3 * sec, 1}, {3 * sec, 4}, {5 * sec, 4}, {5 * sec, 1}},
		"nothing in between":  {{2 * sec, 1}, {2 * sec, 0}, {4 * sec, 0}, {4 * sec, 3}},
		"triangle":            {{2500 * millisecond, 0.5}, {4 * sec, 5}, {6500 * millisecond, 0.25}},
		"nothing at first":    {{5 * sec, 0}, {5 * sec, 1}},
		"one point":           {{5 * sec, 2}},
		"three at one moment": {{5 * sec, 1}, {5 * sec, 7}, {5 * sec, 2}, {6 * sec, 0}},
	} {
		for _, kind := range []ArrivalKind{Constant, Poisson} {
			times := arrivals(Arrivals{Kind: kind, Rate: rate, Ramp: ramp}, 1, 10*sec-1, math.MaxInt)
			if !slices.IsSorted(times) {
				t.Errorf("%v, %s: not in order", kind, name)
			}
			for second := range 10 {
				got := 0
				for _, at := range times {
					if at/sec == time.Duration(second) {
						got++
					}
				}
				expect := rate * mass(ramp, float64(second), float64(second+1))
				off := 2.0
				if kind == Poisson {
					off += 5 * math.Sqrt(expect)
				}
				if math.Abs(float64(got)-expect) > off {
					t.Errorf("%v, %s: %d calls in second %d, want %.0f ± %.0f", kind, name, got, second, expect, off)
				}
			}
		}
	}
}

// Times are whole nanoseconds; what is cut off may not add up.
func TestHighRatesAreExact(t *testing.T) {
	for _, rate := range []float64{3, 7e5, 7e7, 3e9, 1e10} {
		n := 20000
		for _, kind := range []ArrivalKind{Constant, Poisson} {
			times := arrivals(Arrivals{Kind: kind, Rate: rate}, 1, never, n)
			expect, off := float64(n)/rate, 2e-9
			if kind == Poisson {
				off += 5 * expect / math.Sqrt(float64(n))
			}
			if got := times[n-1].Seconds(); math.Abs(got-expect) > off {
				t.Errorf("%v: %d calls at %v a second take %vs, want %vs", kind, n, rate, got, expect)
			}
		}
	}
}

func TestConstantAndPoissonBeginAt(t *testing.T) {
	got := arrivals(Arrivals{Kind: Constant, Rate: 4, At: time.Second}, 1, 2*time.Second, 10)
	wantTimes(t, "calls", got, 1250*millisecond, 1500*millisecond, 1750*millisecond, 2*time.Second)
	if got := arrivals(Arrivals{Rate: 1e6, At: time.Second}, 1, 2*time.Second, 1); got[0] < time.Second {
		t.Errorf("the first at %v", got[0])
	}
	// The gaps are exponential: as long as their standard deviation, on average.
	times := arrivals(Arrivals{Rate: 1000}, 1, never, 100000)
	var sum, square float64
	for i := range times[1:] {
		x := (times[i+1] - times[i]).Seconds()
		sum, square = sum+x, square+x*x
	}
	n := float64(len(times) - 1)
	if cv := math.Sqrt(square/n-(sum/n)*(sum/n)) / (sum / n); math.Abs(cv-1) > 0.02 {
		t.Errorf("gaps vary by %v of their mean, want 1", cv)
	}
}

func TestAtOnce(t *testing.T) {
	got := arrivals(Arrivals{Kind: AtOnce, At: time.Second, Each: 2}, 3, never, 100)
	s := time.Second
	wantTimes(t, "calls", got, s, s, s, s, s, s)
	const n = 10000
	times := arrivals(Arrivals{Kind: AtOnce, At: s, Within: 2 * s}, n, never, 2*n)
	want(t, "calls", len(times), n)
	wantUniform(t, "within", times, s, 3*s)
	// Each process makes its own: with room for one call in each, the second fails.
	p := once()
	p.Limit.InFlight = 1
	r := play(t, Scenario{
		Horizon: s, Services: []Service{{Name: "api", Time: fixed(millisecond)}},
		Fleets: []Fleet{{Calls: "api", Processes: 3, Arrivals: Arrivals{Kind: AtOnce, Each: 2}}},
	}, p)
	want(t, "calls under a limit", r.Totals.Succeeded, 3)
}

// wantUniform is the test of Kolmogorov and Smirnov, which chance fails once in a
// thousand times.
func wantUniform(t *testing.T, what string, times []time.Duration, from, to time.Duration) {
	t.Helper()
	times = slices.Sorted(slices.Values(times))
	n, most := float64(len(times)), 0.0
	for i, at := range times {
		u := float64(at-from) / float64(to-from)
		most = max(most, u-float64(i)/n, float64(i+1)/n-u)
	}
	if most*math.Sqrt(n) > 1.95 {
		t.Errorf("%s: not uniform between %v and %v: off by %v for %v", what, from, to, most, n)
	}
}

func TestPeriodic(t *testing.T) {
	const n = 5000
	every := 10 * time.Second
	for _, within := range []time.Duration{0, 2 * time.Second} {
		a := Arrivals{Kind: Periodic, At: time.Second, Every: every, Within: within}
		times := arrivals(a, n, never, 3*n)
		if within == 0 {
			within = every
		}
		wantUniform(t, "phases", times[:n], time.Second, time.Second+within)
		for i := range n {
			if times[n+i] != times[i]+every || times[2*n+i] != times[i]+2*every {
				t.Fatalf("process %d calls at %v, %v, %v: not every %v", i, times[i], times[n+i], times[2*n+i], every)
			}
		}
	}
}

// Six callers pause for 100 ms and call for 50 ms: they begin at 100, 250, 400,
// 550, 700 and 850 ms.
func TestClosedLoop(t *testing.T) {
	s := Scenario{
		Horizon: 990 * millisecond, Step: millisecond,
		Services: []Service{{Name: "api", Time: fixed(50 * millisecond)}},
		Fleets:   []Fleet{{Calls: "api", Processes: 3, Arrivals: Arrivals{Kind: Closed, Each: 2, Think: fixed(100 * millisecond)}}},
	}
	r := play(t, s, once())
	want(t, "calls", r.Totals.Calls, 36)
	want(t, "succeeded", r.Totals.Succeeded, 36)
	s.Fleets[0].Arrivals.At = 500 * millisecond
	r = play(t, s, once())
	want(t, "calls", r.Totals.Calls, 18)
	want(t, "unfinished", r.Totals.Unfinished, 0)
	// They go on after a failure, too; and while time stands still for a service
	// that takes none and a pause that is none, time passes.
	s.Services[0] = Service{Name: "api", Errors: 1}
	s.Fleets[0].Arrivals = Arrivals{Kind: Closed, Think: Distribution{Kind: LogNormal, Mean: time.Microsecond, Sigma: 10}}
	s.Horizon, s.Step = 20*time.Microsecond, 0
	if r = play(t, s, once()); r.Totals.Events > 100_000 {
		t.Errorf("%d events in 20,000 ns", r.Totals.Events)
	}
}

func TestReload(t *testing.T) {
	s := Scenario{
		Horizon: 10 * time.Second, Step: millisecond,
		Services: []Service{{Name: "api", Errors: 1, Faults: []Fault{{Kind: Crash, At: 3500 * millisecond, For: time.Second}}}},
		Fleets:   callsAt(time.Second),
	}
	s.Fleets[0].Reload = Reload{Share: 1, After: fixed(time.Second), Times: 3}
	r := play(t, s, once())
	sec := time.Second
	wantTimes(t, "calls", moments(r.Series, r.Series.Calls), sec, 2*sec, 3*sec, 4*sec)
	want(t, "reloads", r.Totals.Reloads, 3)
	want(t, "refused in the crash", r.Totals.Errors, 3)
	s.Services[0].Errors = 0
	want(t, "nobody comes back who got it", play(t, s, once()).Totals.Calls, 1)

	const n = 20000
	s.Services[0].Errors = 1
	s.Fleets[0].Processes, s.Fleets[0].Reload = n, Reload{Share: 0.5, After: fixed(millisecond), Times: 2}
	wantShare(t, "half of them, and half of those", play(t, s, once()).Totals.Reloads, n, 0.75)
	// A caller of a closed loop comes back as often, and then continues.
	s.Fleets[0] = Fleet{Calls: "api", Arrivals: Arrivals{Kind: Closed, Think: fixed(time.Second)}, Reload: Reload{Share: 1, After: fixed(100 * millisecond), Times: 2}}
	s.Horizon, s.Services[0].Faults = 2500*millisecond, nil
	r = play(t, s, once())
	wantTimes(t, "calls", moments(r.Series, r.Series.Calls), 1000*millisecond, 1100*millisecond, 1200*millisecond, 2200*millisecond, 2300*millisecond, 2400*millisecond)
}
