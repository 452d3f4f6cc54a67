package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/lab/sim"
	"github.com/lullgo/lull/queue"
)

// One flight in each of the worlds of the TestAgree tests, and in some that have the rest: its figures are those of
// the file, exactly. Whoever changes them on purpose runs the lab (.ci/lab), which compares with what others computed.
func TestFiguresStayTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: simulations that are the same every time")
	}
	fault := func(f sim.Fault) sim.Scenario { return metastable(0.8, deep, f, 40*time.Second) }
	with := func(change func(*sim.Scenario)) sim.Scenario {
		s := fault(stall(2 * time.Second))
		s.Horizon = 40 * time.Second
		s.Fleets[0].Arrivals.Rate /= 4
		change(&s)
		return s
	}
	pool := func(kind sim.PoolKind) sim.Scenario {
		return with(func(s *sim.Scenario) {
			s.Fleets[0].Network = sim.Network{
				Latency: sim.Distribution{Kind: sim.LogNormal, Mean: 5 * ms, Sigma: 1},
				Pool:    sim.Pool{On: true, Kind: kind, Size: 4, RoundTrips: 2, IdleFor: time.Second},
			}
		})
	}
	zero, full := sim.Contender{}, backoff.Schedule{Base: 50 * ms}
	retried := sim.Contender{Policy: bare(4, full)}
	var out strings.Builder
	for _, c := range []struct {
		name string
		s    sim.Scenario
		c    sim.Contender
	}{
		{"M/M/4", queueing(4, 1<<20, sim.Distribution{Kind: sim.Exponential, Mean: 10 * ms}, 0.8, 30*time.Second), once},
		{"M/G/1", queueing(1, 1<<20, sim.Distribution{Kind: sim.Bimodal, Mean: 5 * ms, Slow: 0.1, SlowMean: 55 * ms}, 0.25, 30*time.Second), once},
		{"together", synchronised(194, 600), sim.Contender{Policy: bare(6, backoff.Schedule{Jitter: backoff.Equal, Base: 100 * ms})}},
		{"contention", awsScenario(50), sim.Contender{Policy: bare(1000, backoff.Schedule{Jitter: backoff.Decorrelated, Base: 5 * ms, Cap: 2 * time.Second})}},
		{"failures", brookerScenario(0.1, 100), zero},
		{"congestion", congested([]sim.RampPoint{{Factor: 0.5}, {At: 25 * time.Second, Factor: 1}, {At: 75 * time.Second, Factor: 0}}), retried},
		{"spike", spiked(), sim.Contender{Policy: bare(6, full), Options: paidBy(func() budget.Budget { return &stormBucket{tokens: 100} })}},
		{"no retry", fault(stall(10 * time.Second)), noRetry},
		{"a collapse", fault(stall(10 * time.Second)), threeRetries},
		{"10 % of calls", fault(stall(2 * time.Second)), ofArrivals},
		{"stall", fault(stall(10 * time.Second)), zero},
		{"errors", fault(sim.Fault{Kind: sim.Errors, For: 10 * time.Second, Share: 0.5}), zero},
		{"brown-out", fault(sim.Fault{Kind: sim.BrownOut, For: 10 * time.Second}), zero},
		{"slow-down", fault(sim.Fault{Kind: sim.SlowDown, For: 10 * time.Second}), zero},
		{"crash", fault(sim.Fault{Kind: sim.Crash, For: 10 * time.Second, Warmup: 5 * time.Second}), zero},
		{"pool of HTTP", pool(sim.HTTP), zero},
		{"pool of SQL", pool(sim.SQL), zero},
		{"lossy", with(func(s *sim.Scenario) { s.Fleets[0].Network.Loss = 0.02 }), zero},
		{"hosts", with(func(s *sim.Scenario) {
			s.Services[0].Hosts, s.Services[0].Workers, s.Services[0].Faults[0].Hosts = 4, 25, 1
		}), zero},
		{"admission", with(func(s *sim.Scenario) { s.Services[0].Admission.On, s.Fleets[0].Arrivals.Rate = true, 2000 }), zero},
		{"closed loop", with(func(s *sim.Scenario) {
			s.Fleets[0].Arrivals = sim.Arrivals{Kind: sim.Closed, Think: sim.Distribution{Kind: sim.Exponential, Mean: time.Second}}
		}), zero},
		{"reloads", with(func(s *sim.Scenario) {
			s.Fleets[0].Reload = sim.Reload{Share: 0.5, After: sim.Distribution{Kind: sim.Uniform, Min: time.Second, Max: 3 * time.Second}, Times: 2}
		}), zero},
		{"messages", with(func(s *sim.Scenario) {
			s.Fleets, s.Warmup = nil, 0
			s.Topics = []sim.Topic{{Name: "orders", Calls: "api", Arrivals: sim.Arrivals{Rate: 100}, Consumers: sim.Consumers{Concurrency: 20}}}
		}), sim.Contender{Policy: queue.Policy()}},
		{"hedges", with(func(s *sim.Scenario) {}), sim.Contender{Policy: lull.Policy{Hedge: hedge.Config{Attempts: 2}}}},
	} {
		r, err := sim.Run(t.Context(), c.s, c.c, sim.Options{Seed: 1, Named: []sim.Contender{neverPays}})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		n, l := r.Totals, r.Latency
		fmt.Fprintf(&out, "%s: %d calls, %d attempts, %d succeeded, mean %v, last %v, p99 %v, %v\n", c.name, n.Calls, n.Attempts, n.Succeeded, n.MeanCompletion, n.Last, l.P99, n.Reasons)
	}
	golden.File(t, "testdata/figures.txt", out.String())
}

func awsScenario(clients int) sim.Scenario {
	return sim.Scenario{
		Horizon:  5 * time.Minute,
		Services: []sim.Service{{Name: "row", Contention: true}},
		Fleets: []sim.Fleet{{
			Calls: "row", Processes: clients,
			Arrivals: sim.Arrivals{Kind: sim.AtOnce},
			Network:  sim.Network{Latency: sim.Distribution{Kind: sim.Normal, Mean: 10 * time.Millisecond, Deviation: 2 * time.Millisecond}},
		}},
	}
}

func brookerScenario(failures float64, clients int) sim.Scenario {
	return sim.Scenario{
		Horizon:  15 * time.Second,
		Services: []sim.Service{{Name: "api", Errors: failures}},
		Fleets: []sim.Fleet{{
			Calls: "api", Processes: clients,
			Arrivals: sim.Arrivals{Rate: 1000, Ramp: []sim.RampPoint{{At: 10 * time.Second, Factor: 1}, {At: 10 * time.Second, Factor: 0}}},
			Network:  sim.Network{Latency: sim.Distribution{Kind: sim.Exponential, Mean: 10 * time.Millisecond}},
		}},
	}
}

// congested is a service that is the slower the more it has in hand.
func congested(ramp []sim.RampPoint) sim.Scenario {
	return sim.Scenario{
		Horizon: 80 * time.Second, Step: time.Second,
		Services: []sim.Service{{Name: "api", Time: sim.Distribution{Mean: time.Second}, Congestion: 10 * ms}},
		Fleets: []sim.Fleet{{
			Calls: "api", AttemptTimeout: 3 * time.Second, Arrivals: sim.Arrivals{Rate: 80, Ramp: ramp},
			Network: sim.Network{Latency: sim.Distribution{Kind: sim.Exponential, Mean: 100 * ms}},
		}},
	}
}
