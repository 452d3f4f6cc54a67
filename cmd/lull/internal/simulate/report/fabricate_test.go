package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/lab/sim"
)

// The results here look like those of a simulation. They come from a small fluid model: a
// queue before 100 workers of 100 ms, attempts that time out after a second, and clients that
// retry failures.

// A client of the fluid model.
type client struct {
	name, title string
	retries     float64 // the most for each call
	budget      float64 // retries for each success; 0: no limit
	breaker     bool
}

var clients = []client{
	{name: "lull", title: "the zero Policy", retries: 2, budget: 0.1, breaker: true},
	{name: "none", title: "a single attempt"},
	{name: "naive", title: "three retries at once", retries: 3},
	{name: "aws-standard", title: "AWS SDKs, standard mode (2.1)", retries: 2, budget: 0.07},
	{name: "resilience4j", title: "retry inside a circuit breaker, 30 s", retries: 2, breaker: true},
	{name: "envoy", title: "budget of a fifth of what is active", retries: 1, budget: 0.2},
}

const (
	fabricatedLoad     = 800.0
	fabricatedCapacity = 1000.0
)

func fabricatedScenario() sim.Scenario {
	return sim.Scenario{
		Name: "metastable-stall", Title: "A stall of five seconds that never ends",
		Teaches: "A backend at 80 % load stands still for five seconds. When it works again, retries keep its queue so long " +
			"that every attempt times out before its turn: all the work is done for callers that have gone. What started the " +
			"outage is over, what keeps it going is the clients.",
		Source:  "Bronson et al., Metastable Failures in Distributed Systems, HotOS 2021",
		Horizon: 120 * time.Second, Step: 500 * time.Millisecond, Warmup: 5 * time.Second,
		Services: []sim.Service{{
			Name: "backend", Workers: 100,
			Queue:  sim.Queue{Limit: 10000},
			Time:   sim.Distribution{Kind: sim.Exponential, Mean: 100 * time.Millisecond},
			Faults: []sim.Fault{{Kind: sim.Stall, At: 20 * time.Second, For: 5 * time.Second}},
		}},
		Fleets: []sim.Fleet{{
			Name: "web", Calls: "backend", Processes: 100,
			Arrivals:       sim.Arrivals{Rate: fabricatedLoad},
			AttemptTimeout: time.Second,
		}},
	}
}

// fly computes the result of one client.
func fly(s sim.Scenario, c client, seed uint64) sim.Result {
	random := rand.New(rand.NewPCG(seed, uint64(len(c.name))))
	noise := func(v float64) float64 { return max(0, v+random.NormFloat64()*math.Sqrt(max(v, 0))*0.7) }
	step := s.Step.Seconds()
	n := int(s.Horizon / s.Step)
	fault := s.Services[0].Faults[0]
	r := sim.Result{Contender: c.name, Seed: seed, End: s.Horizon, Series: sim.Series{Step: s.Step, Refused: map[string][]float64{}}}
	exhausted, refusedOpen, noBudget := make([]float64, n), make([]float64, n), make([]float64, n)

	queue, balance, open, failing := 0.0, 20.0, 0.0, 0.0
	var waited float64
	for i := range n {
		now := time.Duration(i) * s.Step
		stalled := now >= fault.At && now < fault.At+fault.For
		calls := noise(fabricatedLoad)
		passed := calls * (1 - open)
		retries := passed * failing * c.retries
		if c.budget > 0 {
			retries = min(retries, balance/step+c.budget*calls*(1-failing))
			balance = max(0, min(50, balance+(c.budget*calls*(1-failing)-retries)*step))
		}
		retries = noise(retries)
		served := fabricatedCapacity
		if stalled {
			served = 0
		}
		queue = min(10000, max(0, queue+(passed+retries-served)*step))
		waited = queue / fabricatedCapacity
		late := 1 / (1 + math.Exp(-12*(waited-1))) // share of attempts that time out
		if stalled {
			late = 1
		}
		failing += (late - failing) * min(1, step)
		good := max(0, 1-math.Pow(late, 1+retries/max(passed, 1)))
		if c.breaker {
			want := 0.0
			if failing > 0.5 {
				want = 0.97
			}
			open += (want - open) * 0.4
			if c.budget == 0 && open > 0.1 && now > fault.At+fault.For && now < fault.At+fault.For+30*time.Second {
				open = 0.97
			}
		}
		goodput := noise(min(passed*good, served))
		x := &r.Series
		x.Calls = append(x.Calls, calls)
		x.First = append(x.First, passed)
		x.Retries = append(x.Retries, retries)
		x.Goodput = append(x.Goodput, goodput)
		x.Good = append(x.Good, min(1, goodput/calls))
		x.Failed = append(x.Failed, max(0, calls-goodput))
		x.Wasted = append(x.Wasted, min(served, passed+retries)*late)
		x.Queue = append(x.Queue, math.Round(queue))
		x.Busy = append(x.Busy, min(100, passed/10))
		x.Open = append(x.Open, math.Round(100*open))
		lost := max(0, passed-goodput)
		switch {
		case c.budget > 0:
			noBudget[i] = lost
		default:
			exhausted[i] = lost
		}
		refusedOpen[i] = calls - passed
		p50, p99 := 0.07+waited, 0.46+1.3*waited
		if goodput < 1 {
			p50, p99 = 0, 0
		}
		x.P50 = append(x.P50, time.Duration(p50*random.Float64()*0.1*1e9+p50*1e9))
		x.P99 = append(x.P99, time.Duration(p99*random.Float64()*0.2*1e9+p99*1e9))
	}
	r.Series.Refused[engine.AttemptsExhausted.String()] = exhausted
	r.Series.Refused[engine.CircuitOpen.String()] = refusedOpen
	r.Series.Refused[engine.BudgetExhausted.String()] = noBudget
	add(&r, s, fault)
	return r
}

// add computes totals, recovery and latency from the series.
func add(r *sim.Result, s sim.Scenario, fault sim.Fault) {
	x, step := r.Series, s.Step.Seconds()
	t := &r.Totals
	var calls, succeeded, first, retries, wasted, refused float64
	for i := range x.Calls {
		calls += x.Calls[i] * step
		succeeded += min(x.Goodput[i], x.Calls[i]) * step
		first += x.First[i] * step
		retries += x.Retries[i] * step
		wasted += x.Wasted[i] * step
		refused += (x.Calls[i] - x.First[i]) * step
		if rate := x.First[i] + x.Retries[i]; rate > t.PeakRate {
			t.PeakRate, t.PeakAt = rate, time.Duration(i+1)*s.Step
		}
	}
	t.Calls, t.Succeeded, t.Refused = int64(calls), int64(succeeded), int64(refused)
	t.Attempts, t.Retries, t.Wasted = int64(first+retries), int64(retries), int64(wasted)
	t.AttemptsTimedOut = int64(wasted)
	t.Amplification = (first + retries) / first
	t.NormalRate = fabricatedLoad
	t.PeakOverNormal = t.PeakRate / t.NormalRate
	t.WorstMinute = t.Amplification * 1.05
	t.Effects = t.Succeeded

	end := fault.At + fault.For
	r.Recovery = sim.Recovery{Measured: true, From: end, Normal: 0.99}
	good := func(i int) bool { return x.Good[i] > 0.9 }
	k := len(x.Good)
	for k > 0 && good(k-1) {
		k--
	}
	for _, g := range x.Good[len(x.Good)*9/10:] {
		r.Recovery.Final += g / float64(len(x.Good)-len(x.Good)*9/10)
	}
	if k < len(x.Good) && time.Duration(k)*s.Step > end {
		r.Recovery.Recovered, r.Recovery.Time = true, time.Duration(k)*s.Step-end
	}
	if k == 0 {
		r.Recovery.Recovered = true
	}
	r.Latency = sim.Latency{Count: t.Succeeded, Mean: 150 * time.Millisecond, P50: 92 * time.Millisecond, P90: 300 * time.Millisecond,
		P99: 812 * time.Millisecond, P999: 1400 * time.Millisecond, Max: 2100 * time.Millisecond}
}

// fabricate returns a page of clients, each with some seeds.
func fabricate(clients []client, seeds int) Page {
	s := fabricatedScenario()
	p := Page{
		Scenario: s, Version: "0.3.0", Seed: 7, Seeds: seeds,
		ScenarioYAML: scenarioYAML, PoliciesYAML: policiesYAML,
		Command: "lull simulate metastable-stall --policy lull,none,naive,aws-standard,resilience4j,envoy --seed 7 --seeds 5 --report stall.html",
	}
	for _, c := range clients {
		sum := sim.Summary{Contender: sim.Contender{Name: c.name, Title: c.title}}
		for seed := range seeds {
			sum.Results = append(sum.Results, fly(s, c, p.Seed+uint64(seed)))
		}
		summarise(&sum)
		p.Summaries = append(p.Summaries, sum)
	}
	return p
}

func summarise(s *sim.Summary) {
	estimate := func(keep func(sim.Result) bool, of func(sim.Result) float64) sim.Estimate {
		var sum, squares, n float64
		for _, r := range s.Results {
			if keep(r) {
				v := of(r)
				sum, squares, n = sum+v, squares+v*v, n+1
			}
		}
		if n == 0 {
			return sim.Estimate{}
		}
		e := sim.Estimate{Mean: sum / n}
		if n > 1 {
			e.Half = 2.776 * math.Sqrt(max(0, squares/n-e.Mean*e.Mean)/(n-1))
		}
		return e
	}
	all := func(sim.Result) bool { return true }
	s.Success = estimate(all, func(r sim.Result) float64 { return float64(r.Totals.Succeeded) / float64(r.Totals.Calls) })
	s.Amplification = estimate(all, func(r sim.Result) float64 { return r.Totals.Amplification })
	s.PeakOverNormal = estimate(all, func(r sim.Result) float64 { return r.Totals.PeakOverNormal })
	s.P99 = estimate(all, func(r sim.Result) float64 { return r.Latency.P99.Seconds() })
	s.Recovery = estimate(func(r sim.Result) bool { return r.Recovery.Recovered }, func(r sim.Result) float64 { return r.Recovery.Time.Seconds() })
	for _, r := range s.Results {
		if r.Recovery.Recovered {
			s.Recovered++
		}
	}
}

// fabricatedSweep is a sweep over load and the length of the stall.
func fabricatedSweep() *Sweep {
	s := &Sweep{
		X: Parameter{Name: "load", Values: []string{"0.2", "0.4", "0.6", "0.7", "0.8", "0.9", "0.95"}},
		Y: Parameter{Name: "stall", Values: []string{"200ms", "1s", "5s", "10s", "30s"}},
	}
	for k, c := range clients[:4] {
		g := Grid{Contender: c.name}
		for y, length := range []float64{0.2, 1, 5, 10, 30} {
			var row []Cell
			for x, load := range []float64{0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95} {
				cell := Cell{Seeds: 5, Measured: true, Recovered: 5, Success: 1 - length*load/300}
				cell.Time = time.Duration(length * load / (1 - load) * 1e9).Round(100 * time.Millisecond)
				if k == 2 && load*4 > 2.2 && length >= 1 {
					cell.Recovered, cell.Success = 0, 0.2
				}
				if k == 3 && load >= 0.9 && length >= 10 {
					cell.Recovered, cell.Success = 5-x+3, 0.7
				}
				if k == 3 && y == 4 && x == 6 {
					cell = Cell{}
				}
				row = append(row, cell)
			}
			g.Cells = append(g.Cells, row)
		}
		s.Grids = append(s.Grids, g)
	}
	return s
}

// dozen are twelve clients.
func dozen() []client {
	cs := append([]client(nil), clients...)
	for i := len(cs); i < 12; i++ {
		c := clients[i%len(clients)]
		c.name = fmt.Sprintf("%s-%d", c.name, i)
		c.budget *= 1.5
		cs = append(cs, c)
	}
	return cs
}

const scenarioYAML = `name: metastable-stall
title: A stall of five seconds that never ends
horizon: 120s
warmup: 5s
services:
  - name: backend
    workers: 100
    queue: {limit: 10000}
    time: {kind: exponential, mean: 100ms}
    faults:
      - {kind: stall, at: 20s, for: 5s}
fleets:
  - name: web
    calls: backend
    processes: 100
    arrivals: {kind: poisson, rate: 800}
    attempt-timeout: 1s
`

const policiesYAML = `policies:
  lull: {}
  none: {attempts: 1, breaker: off}
  naive: {attempts: 4, backoff: 0s, budget: off, breaker: off}
  aws-standard: {attempts: 3, budget: {ratio: 0.07}, breaker: off}
`

func full() Page {
	p := fabricate(clients, 5)
	p.Sweep = fabricatedSweep()
	return p
}
