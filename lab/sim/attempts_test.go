package sim_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

// Attempts are told of once each, with their call, and the flight is the same as without.
func TestAttempt(t *testing.T) {
	policy := bare(3, backoff.Schedule{Base: 50 * ms})
	hedged := lull.Policy{Hedge: hedge.Config{Attempts: 2, Delay: 20 * ms, Share: .5}}
	for _, c := range []struct {
		name   string
		p      lull.Policy
		change func(*sim.Service, *sim.Fleet)
	}{
		{"workers", policy, func(*sim.Service, *sim.Fleet) {}},
		{"as many workers as it takes", policy, func(v *sim.Service, f *sim.Fleet) { v.Workers, v.Queue.Limit = 0, 0 }},
		{"a network", policy, func(v *sim.Service, f *sim.Fleet) {
			f.Network = sim.Network{Latency: sim.Distribution{Mean: 5 * ms}, Loss: 0.01, LossBack: 0.01}
		}},
		{"connections", policy, func(v *sim.Service, f *sim.Fleet) { f.Network.Pool = sim.Pool{On: true, Size: 2} }},
		{"a crash", policy, func(v *sim.Service, f *sim.Fleet) { v.Faults[0].Kind = sim.Crash }},
		{"hedges", hedged, func(v *sim.Service, f *sim.Fleet) {}},
		{"hosts", policy, func(v *sim.Service, f *sim.Fleet) { v.Hosts, v.Faults[0].Hosts, f.Network.Endpoints.On = 3, 1, true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sim.Scenario{
				Horizon: 12 * time.Second,
				Services: []sim.Service{{
					Name: "api", Workers: 10, Queue: sim.Queue{Limit: 20}, Time: sim.Distribution{Kind: sim.Exponential, Mean: 20 * ms}, Errors: 0.05,
					Faults: []sim.Fault{{Kind: sim.Stall, At: 4 * time.Second, For: 2 * time.Second}},
				}},
				Fleets: []sim.Fleet{{Calls: "api", Processes: 4, AttemptTimeout: 300 * ms, Arrivals: sim.Arrivals{Rate: 200, Ramp: []sim.RampPoint{{Factor: 1}, {At: 8 * time.Second, Factor: 1}, {At: 8 * time.Second}}}}},
			}
			c.change(&s.Services[0], &s.Fleets[0])
			without := must.Have(sim.Run(t.Context(), s, sim.Contender{Policy: c.p}, sim.Options{Seed: 1}))
			numbers := map[uint64]int{}
			var failed, timeouts, canceled, seen, unserved, processes int64
			var last time.Duration
			with := must.Have(sim.Run(t.Context(), s, sim.Contender{Policy: c.p}, sim.Options{Seed: 1, Attempt: func(a sim.AttemptEnd) {
				seen++
				numbers[a.Call]++
				if c.p.Hedge.Attempts == 0 && numbers[a.Call] != a.Number {
					t.Errorf("attempt %d is told of as number %d", a.Number, numbers[a.Call])
				}
				switch a.Code {
				case "":
				case "timeout":
					timeouts++
					check.Equal(t, a.Ended-a.Began, 300*ms, "the time of a timeout")
				case "canceled":
					canceled++
				default:
					failed++
				}
				if !a.Served {
					unserved++
				}
				if a.Ended < last || a.Served != (a.Host >= 0) || a.Host >= max(s.Services[0].Hosts, 1) || a.Caller != "api" || a.Service != "api" {
					t.Errorf("after %v: %+v", last, a)
				}
				last = a.Ended
				processes |= 1 << a.Process
			}}))
			if !reflect.DeepEqual(with, without) {
				t.Errorf("the result with a watch is %+v, without %+v", with.Totals, without.Totals)
			}
			check.Equal(t, seen, with.Totals.Attempts, "attempts")
			check.Equal(t, int64(len(numbers)), with.Totals.Calls-with.Totals.Refused, "calls")
			check.Equal(t, timeouts, with.Totals.AttemptsTimedOut, "timeouts")
			check.Equal(t, failed, with.Totals.AttemptsFailed, "failures")
			check.Equal(t, canceled, with.Totals.Lost, "lost races")
			check.Equal(t, processes, 0b1111, "processes")
			if down := s.Services[0].Faults[0].Kind == sim.Crash || s.Fleets[0].Network.Loss > 0; down != (unserved > 0) {
				t.Errorf("%d attempts did not reach the service", unserved)
			}
		})
	}
}

// A service that writes a log itself does not notice that callers have gone: what waits while it stands still succeeds there, late,
// and nothing is missing.
func TestServed(t *testing.T) {
	for _, workers := range []int{0, 10} {
		s := sim.Scenario{
			Horizon: 12 * time.Second,
			Services: []sim.Service{{
				Name: "api", Workers: workers, Queue: sim.Queue{Limit: 20 * workers}, Time: sim.Distribution{Mean: 20 * ms},
				Faults: []sim.Fault{{Kind: sim.Stall, At: 4 * time.Second, For: 2 * time.Second}},
			}},
			Fleets: []sim.Fleet{{Calls: "api", AttemptTimeout: 300 * ms, Arrivals: sim.Arrivals{Rate: 50, Ramp: []sim.RampPoint{{Factor: 1}, {At: 8 * time.Second, Factor: 1}, {At: 8 * time.Second}}}}},
		}
		c := sim.Contender{Policy: bare(1, backoff.Schedule{})}
		without := must.Have(sim.Run(t.Context(), s, c, sim.Options{Seed: 1}))
		served, late := int64(0), 0
		with := must.Have(sim.Run(t.Context(), s, c, sim.Options{Seed: 1, Served: func(e sim.ServedEnd) {
			served++
			took := e.Ended - e.Came
			if e.Code != "" || e.Service != "api" || took < 20*ms {
				t.Errorf("%+v", e)
			}
			if took > 300*ms {
				late++
				check.Equal(t, e.Ended >= 6*time.Second, true, "it ended after the stall")
			}
		}}))
		if !reflect.DeepEqual(with, without) {
			t.Errorf("the result with a watch is %+v, without %+v", with.Totals, without.Totals)
		}
		check.Equal(t, served, with.Totals.Attempts, "attempts that were served, with %d workers", workers)
		if int64(late) < with.Totals.AttemptsTimedOut || late < 80 {
			t.Errorf("%d were late, and %d timed out", late, with.Totals.AttemptsTimedOut)
		}
	}
}
