//go:build lab

package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/lab/sim"
)

// A service without a number of workers and one with more than it ever needs are
// the same service, whatever goes wrong with it. (The simulator has a shorter way
// for the first.)
func TestAgreeEnoughWorkers(t *testing.T) {
	at := func(kind sim.FaultKind) []sim.Fault {
		return []sim.Fault{{Kind: kind, At: 10 * time.Second, For: 3 * time.Second}}
	}
	work := sim.Distribution{Kind: sim.Exponential, Mean: 100 * ms}
	partly := at(sim.Errors)
	partly[0].Share = 0.5
	cold := at(sim.Crash)
	cold[0].Warmup = 5 * time.Second
	one := at(sim.Errors)
	one[0].Hosts = 1
	tab := newTable("service", "workers", "success", "attempts/call", "mean completion ms", "p99 ms", "rate-limited/call")
	for _, c := range []struct {
		name string
		s    sim.Service
		loss float64
	}{
		{"alone", sim.Service{Time: work}, 0},
		{"lossy network", sim.Service{Time: work}, 0.05},
		{"errors", sim.Service{Time: work, Errors: 0.2, ErrorTime: 5 * ms}, 0},
		{"rate limit, never reached", sim.Service{Rate: sim.Rate{PerSecond: 1000, Burst: 100}}, 0},
		{"rate limit", sim.Service{Rate: sim.Rate{PerSecond: 250, Burst: 10}}, 0},
		{"stall", sim.Service{Time: work, Faults: at(sim.Stall)}, 0},
		{"slow-down", sim.Service{Time: work, Faults: at(sim.SlowDown)}, 0},
		{"some errors", sim.Service{Time: work, Faults: partly}, 0},
		{"errors of one host in four", sim.Service{Time: work, Hosts: 4, Faults: one}, 0},
		{"crash", sim.Service{Time: work, Faults: at(sim.Crash)}, 0},
		{"crash with a cold cache", sim.Service{Time: work, Faults: cold}, 0},
		{"crash of long work", sim.Service{Time: sim.Distribution{Mean: 900 * ms}, Faults: at(sim.Crash)}, 0},
	} {
		policy := bare(3, backoff.Schedule{Base: 50 * ms})
		policy.RateLimitedBase = ms
		figures := []func(*sim.Result) float64{
			success, amplification,
			func(r *sim.Result) float64 { return r.Totals.MeanCompletion.Seconds() * 1000 },
			func(r *sim.Result) float64 { return r.Latency.P99.Seconds() * 1000 },
			func(r *sim.Result) float64 { return float64(r.Totals.RateLimited) / float64(r.Totals.Calls) },
		}
		var seen [2][]sample
		for k, workers := range []int{0, 1 << 20} {
			c.s.Name, c.s.Workers = "s", workers
			s := sim.Scenario{
				Horizon: 30 * time.Second, Warmup: 5 * time.Second, Services: []sim.Service{c.s},
				Fleets: []sim.Fleet{{
					Calls: "s", Processes: 10, Arrivals: sim.Arrivals{Rate: 300}, AttemptTimeout: time.Second,
					Network: sim.Network{Latency: sim.Distribution{Kind: sim.Exponential, Mean: 20 * ms}, Loss: c.loss, LossBack: c.loss},
				}},
			}
			rs := flyFrom(t, uint64(k+1)<<20, s, sim.Contender{Policy: policy}, 10)
			row := []any{c.name, workers}
			for _, f := range figures {
				seen[k] = append(seen[k], over(rs, f))
				row = append(row, seen[k][len(seen[k])-1])
			}
			tab.row(row...)
		}
		for i, a := range seen[0] {
			if b := seen[1][i]; math.Abs(a.apart(b.mean, b.stderr())) > sigmas {
				t.Errorf("%s: figure %d is %v without a number of workers, %v with enough of them", c.name, i, a, b)
			}
		}
	}
	tab.log(t)
}
