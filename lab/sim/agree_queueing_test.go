package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// Queueing theory. Every run begins with an empty service and is warmed up;
// independent seeds give independent means, whose spread gives the standard
// error. (One long run would not: what one call waits, the next one waits too.)

const ms = time.Millisecond

// queueing is Poisson arrivals at a service with so many workers, at a load
// relative to its capacity, in so many service times.
func queueing(workers, limit int, work sim.Distribution, load float64, horizon time.Duration) sim.Scenario {
	return sim.Scenario{
		Horizon: horizon, Step: 50 * ms, Window: time.Second, Warmup: horizon / 10,
		Services: []sim.Service{{Name: "s", Workers: workers, Queue: sim.Queue{Limit: limit}, Time: work}},
		Fleets:   []sim.Fleet{{Calls: "s", Processes: 10, Arrivals: sim.Arrivals{Rate: load * float64(workers) / work.Mean.Seconds()}}},
	}
}

var once = sim.Contender{Name: "once", Policy: bare(1, atOnce)}

// erlangB is the share of calls that c servers lose when a load of a arrives and
// none may wait.
func erlangB(c int, a float64) float64 {
	b := 1.0
	for k := 1; k <= c; k++ {
		b = a * b / (float64(k) + a*b)
	}
	return b
}

// erlangC is the share of calls that wait for one of c servers.
func erlangC(c int, a float64) float64 {
	b := erlangB(c, a)
	rho := a / float64(c)
	return b / (1 - rho + rho*b)
}

func TestAgreeMeanWait(t *testing.T) {
	const work = 10 * ms
	exp, fixed := sim.Distribution{Kind: sim.Exponential, Mean: work}, sim.Distribution{Mean: work}
	// A log-normal and two kinds of work in one, for what mean and variance alone
	// decide (Pollaczek-Khinchine).
	const sigma = 1.0
	logNormal := sim.Distribution{Kind: sim.LogNormal, Mean: work, Sigma: sigma}
	tab := newTable("queue", "workers", "load", "mean wait ms", "theory", "z", "in line, mean", "theory", "busy", "theory")
	for _, c := range []struct {
		name    string
		workers int
		work    sim.Distribution
		load    float64
		square  float64 // coefficient of variation of the work, squared; for one worker
	}{
		{"M/M/1", 1, exp, 0.3, 1}, {"M/M/1", 1, exp, 0.6, 1}, {"M/M/1", 1, exp, 0.8, 1},
		{"M/D/1", 1, fixed, 0.5, 0}, {"M/D/1", 1, fixed, 0.8, 0},
		{"M/G/1 lognormal", 1, logNormal, 0.5, math.Exp(sigma*sigma) - 1},
		{"M/M/4", 4, exp, 0.5, 1}, {"M/M/4", 4, exp, 0.8, 1},
		{"M/M/100", 100, exp, 0.9, 1},
	} {
		// So many calls that the mean wait is known to about 2 %.
		horizon := time.Duration(25_000 / (c.load * float64(c.workers) / work.Seconds()) * float64(time.Second))
		if c.workers == 100 {
			horizon *= 2
		}
		rs := fly(t, queueing(c.workers, 1<<20, c.work, c.load, horizon), once, some(10))
		// The work's own mean is taken as known, not as it happened to be.
		wait := over(rs, func(r *sim.Result) float64 { return (r.Totals.MeanCompletion - work).Seconds() * 1000 })
		a := c.load * float64(c.workers)
		theory := erlangC(c.workers, a) * work.Seconds() * 1000 / (float64(c.workers) - a)
		if c.workers == 1 {
			theory = c.load / (1 - c.load) * (1 + c.square) / 2 * work.Seconds() * 1000
		}
		z := wait.apart(theory, 0)
		// Little: how many stand in line is the rate of arrivals times the wait, and
		// how many are worked on is that times the work, whatever the distributions.
		line := over(rs, func(r *sim.Result) float64 { return mean(r.Series.Queue, 10) })
		busy := over(rs, func(r *sim.Result) float64 { return mean(r.Series.Busy, 10) })
		rate := a / work.Seconds()
		tab.row(c.name, c.workers, c.load, wait, theory, z, line, rate*theory/1000, busy, a)
		if math.Abs(z) > sigmas {
			t.Errorf("%s at %v: mean wait %v ms, want %.4g", c.name, c.load, wait, theory)
		}
		if math.Abs(line.apart(rate*theory/1000, 0)) > sigmas {
			t.Errorf("%s at %v: %v in line, want %.4g", c.name, c.load, line, rate*theory/1000)
		}
		if math.Abs(busy.apart(a, 0)) > sigmas {
			t.Errorf("%s at %v: %v busy, want %.4g", c.name, c.load, busy, a)
		}
	}
	tab.log(t)
}

// mean is that of a series but for its first tenths: the warm-up.
func mean(xs []float64, part int) float64 {
	xs = xs[len(xs)/part:]
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// The waits of M/M/1 are known whole: a call takes longer than t, wait and work
// together, with the probability exp(-(1-load) t/work).
func TestAgreeLatencyDistribution(t *testing.T) {
	const work, load = 10 * ms, 0.7
	rs := fly(t, queueing(1, 1<<20, sim.Distribution{Kind: sim.Exponential, Mean: work}, load, 600*time.Second), once, some(8))
	tab := newTable("quantile", "here ms", "theory", "z")
	for _, c := range []struct {
		q  float64
		of func(l *sim.Latency) time.Duration
	}{
		{0.5, func(l *sim.Latency) time.Duration { return l.P50 }},
		{0.9, func(l *sim.Latency) time.Duration { return l.P90 }},
		{0.99, func(l *sim.Latency) time.Duration { return l.P99 }},
	} {
		got := over(rs, func(r *sim.Result) float64 { return c.of(&r.Latency).Seconds() * 1000 })
		theory := -math.Log(1-c.q) * work.Seconds() * 1000 / (1 - load)
		// A quantile of the histogram is up to 0.8 % too high.
		z := got.apart(theory*1.004, theory*0.004)
		tab.row(c.q, got, theory, z)
		if math.Abs(z) > sigmas {
			t.Errorf("quantile %v is %v ms, want %.4g", c.q, got, theory)
		}
	}
	tab.log(t)
}

// Calls that find all workers busy and no queue are lost, and how many are
// depends on the mean of the work only (Erlang; Sevastyanov).
func TestAgreeLoss(t *testing.T) {
	const work = 10 * ms
	tab := newTable("workers", "load", "work", "lost", "Erlang B", "z")
	for _, c := range []struct {
		workers int
		load    float64
		work    sim.Distribution
	}{
		{1, 0.5, sim.Distribution{Kind: sim.Exponential, Mean: work}},
		{5, 0.8, sim.Distribution{Kind: sim.Exponential, Mean: work}},
		{5, 1.5, sim.Distribution{Kind: sim.Exponential, Mean: work}},
		{5, 0.8, sim.Distribution{Mean: work}},
		{5, 0.8, sim.Distribution{Kind: sim.Bimodal, Mean: 5 * ms, Slow: 0.1, SlowMean: 55 * ms}},
		{50, 0.9, sim.Distribution{Kind: sim.Exponential, Mean: work}},
	} {
		s := queueing(c.workers, 0, sim.Distribution{Kind: c.work.Kind, Mean: work}, c.load, time.Duration(20_000/(c.load*float64(c.workers)/work.Seconds())*float64(time.Second)))
		s.Services[0].Time = c.work
		rs := fly(t, s, once, some(8))
		lost := over(rs, func(r *sim.Result) float64 { return float64(r.Totals.QueueFull) / float64(r.Totals.Calls) })
		theory := erlangB(c.workers, c.load*float64(c.workers))
		z := lost.apart(theory, 0)
		tab.row(c.workers, c.load, c.work.Kind, lost, theory, z)
		if math.Abs(z) > sigmas || math.Abs(lost.mean-theory) > 0.05*theory {
			t.Errorf("%d workers at %v, %v work: %v lost, want %.4g", c.workers, c.load, c.work.Kind, lost, theory)
		}
	}
	tab.log(t)
}

// Poisson arrivals: as much variance as mean, in steps of any width, and nothing
// of one step in the next. Constant ones have no variance.
func TestAgreeArrivals(t *testing.T) {
	s := sim.Scenario{
		Horizon: 1000 * time.Second, Step: 100 * ms,
		Services: []sim.Service{{Name: "s"}},
		Fleets:   []sim.Fleet{{Calls: "s", Processes: 100, Arrivals: sim.Arrivals{Rate: 200}}},
	}
	tab := newTable("arrivals", "mean in a step", "variance/mean", "correlation of neighbours")
	for _, c := range []struct {
		kind     sim.ArrivalKind
		variance float64
	}{{sim.Poisson, 1}, {sim.Constant, 0}} {
		s.Fleets[0].Arrivals.Kind = c.kind
		calls := fly(t, s, once, 1)[0].Series.Calls
		n := float64(len(calls))
		m, v, next := 0.0, 0.0, 0.0
		for _, x := range calls {
			m += x / 10 / n
		}
		for i, x := range calls {
			d := x/10 - m
			v += d * d / n
			if i > 0 {
				next += d * (calls[i-1]/10 - m) / n
			}
		}
		correlation := 0.0
		if c.variance > 0 {
			correlation = next / v
		}
		tab.row(c.kind, m, v/m, correlation)
		// Of n steps the mean deviates by sqrt(20/n), the quotient by sqrt(2/n), the
		// correlation by sqrt(1/n). Constant arrivals may lose one at an edge.
		if math.Abs(m-20) > sigmas*math.Sqrt(c.variance*20/n)+0.001 {
			t.Errorf("%v: %v arrivals in a step, want 20", c.kind, m)
		}
		if math.Abs(v/m-c.variance) > sigmas*math.Sqrt(2/n)*c.variance+0.01 {
			t.Errorf("%v: variance over mean is %v, want %v", c.kind, v/m, c.variance)
		}
		if math.Abs(correlation) > sigmas/math.Sqrt(n) {
			t.Errorf("%v: neighbouring steps correlate by %v", c.kind, correlation)
		}
	}
	tab.log(t)
}

// A closed loop: N callers, each thinks, calls, and thinks again. With
// exponential times its throughput is that of N machines and c repairmen.
func TestAgreeClosedLoop(t *testing.T) {
	const think, work = 100 * ms, 10 * ms
	tab := newTable("callers", "workers", "calls/s", "machine repairman", "z", "response ms", "theory", "z")
	for _, c := range []struct{ callers, each, workers int }{{5, 1, 1}, {11, 1, 1}, {10, 3, 1}, {60, 1, 4}} {
		n := c.callers * c.each
		s := sim.Scenario{
			Horizon: 330 * time.Second, Step: time.Second, Warmup: 30 * time.Second,
			Services: []sim.Service{{Name: "s", Workers: c.workers, Queue: sim.Queue{Limit: n}, Time: sim.Distribution{Kind: sim.Exponential, Mean: work}}},
			Fleets: []sim.Fleet{{Calls: "s", Processes: c.callers, Arrivals: sim.Arrivals{
				Kind: sim.Closed, Each: c.each, Think: sim.Distribution{Kind: sim.Exponential, Mean: think},
			}}},
		}
		rs := fly(t, s, once, some(8))
		rate := over(rs, func(r *sim.Result) float64 { return float64(r.Totals.Succeeded) / 300 })
		response := over(rs, func(r *sim.Result) float64 { return r.Totals.MeanCompletion.Seconds() * 1000 })
		// p(k), the probability of k at the service: p(k+1)/p(k) is the rate at
		// which they come over the rate at which they go.
		p, sum, busy := 1.0, 1.0, 0.0
		for k := 1; k <= n; k++ {
			p *= float64(n-k+1) / think.Seconds() / (float64(min(k, c.workers)) / work.Seconds())
			sum += p
			busy += p * float64(min(k, c.workers))
		}
		theory := busy / sum / work.Seconds()
		responds := 1000 * (float64(n)/theory - think.Seconds()) // Little, around the loop
		z, zr := rate.apart(theory, 0), response.apart(responds, 0)
		tab.row(n, c.workers, rate, theory, z, response, responds, zr)
		if math.Abs(z) > sigmas || math.Abs(zr) > sigmas || math.Abs(rate.mean/theory-1) > 0.02 {
			t.Errorf("%d callers, %d workers: %v calls/s, want %.5g; response %v ms, want %.4g", n, c.workers, rate, theory, response, responds)
		}
	}
	tab.log(t)
}
