package battery

import (
	"fmt"
	"math"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// A part is what one word of a world's description does to it.
type part func(z Size, w *World)

// api is what every world begins with: 100 workers of 100 ms, 1,000 requests/s; up to 10,000
// wait in line; and a fleet that gives an attempt a second.
func api(rate float64, processes int) part {
	return func(z Size, w *World) {
		w.Scenario = sim.Scenario{
			Services: []sim.Service{{
				Name: "api", Workers: 100, Queue: sim.Queue{Limit: 10_000},
				Time:      exponential(100 * time.Millisecond),
				ErrorTime: 5 * time.Millisecond,
			}},
			Fleets: []sim.Fleet{{
				Name: "clients", Calls: "api", Processes: processes,
				Arrivals:       sim.Arrivals{Rate: rate},
				AttemptTimeout: time.Second,
			}},
		}
	}
}

func service(change func(*sim.Service)) part {
	return func(z Size, w *World) { change(&w.Scenario.Services[0]) }
}

func fleet(change func(*sim.Fleet)) part {
	return func(z Size, w *World) { change(&w.Scenario.Fleets[0]) }
}

func workers(n int) part                             { return service(func(v *sim.Service) { v.Workers = n }) }
func queue(n int) part                               { return service(func(v *sim.Service) { v.Queue.Limit = n }) }
func takes(d sim.Distribution) part                  { return service(func(v *sim.Service) { v.Time = d }) }
func errors(share float64) part                      { return service(func(v *sim.Service) { v.Errors = share }) }
func cancels(z Size, w *World)                       { w.Scenario.Services[0].CancelWork = true }
func processes(n int) part                           { return fleet(func(f *sim.Fleet) { f.Processes = n }) }
func timeout(d time.Duration) part                   { return fleet(func(f *sim.Fleet) { f.AttemptTimeout = d }) }
func deadline(d time.Duration) part                  { return fleet(func(f *sim.Fleet) { f.Deadline = d }) }
func lossy(share float64) part                       { return fleet(func(f *sim.Fleet) { f.Network.Loss = share }) }
func floor(share float64) part                       { return func(z Size, w *World) { w.Floor = share } }
func fault(k sim.FaultKind, long time.Duration) part { return faulty(sim.Fault{Kind: k, For: long}) }

func within(d time.Duration) part { return func(z Size, w *World) { w.Within = d } }

// faulty adds a fault that begins when things have been well for some time: of the last service, or of the cache that the
// first has before it.
func faulty(f sim.Fault) part {
	return func(z Size, w *World) {
		v := &w.Scenario.Services[len(w.Scenario.Services)-1]
		if f.Kind == sim.Flush {
			v = &w.Scenario.Services[0]
		}
		f.At = z.Before
		v.Faults = append(v.Faults, f)
	}
}

// again repeats the last fault after that time.
func again(after time.Duration) part {
	return service(func(v *sim.Service) {
		f := v.Faults[len(v.Faults)-1]
		f.At += after
		v.Faults = append(v.Faults, f)
	})
}

// next adds a fault that begins when the last one ends.
func next(f sim.Fault) part {
	return service(func(v *sim.Service) {
		last := v.Faults[len(v.Faults)-1]
		f.At = last.At + last.For
		v.Faults = append(v.Faults, f)
	})
}

// inTurn has one fault after the other, of that length and these shares.
func inTurn(k sim.FaultKind, each time.Duration, shares ...float64) part {
	return func(z Size, w *World) {
		faulty(sim.Fault{Kind: k, For: each, Share: shares[0]})(z, w)
		for _, share := range shares[1:] {
			next(sim.Fault{Kind: k, For: each, Share: share})(z, w)
		}
	}
}

// hosts has n of them, with so many workers each.
func hosts(n, workers int) part {
	return service(func(v *sim.Service) { v.Hosts, v.Workers = n, workers })
}

// callers: each process has so many, who think before they call again.
func callers(each int, think sim.Distribution) part {
	return fleet(func(f *sim.Fleet) { f.Arrivals = sim.Arrivals{Kind: sim.Closed, Each: each, Think: think} })
}

func exponential(mean time.Duration) sim.Distribution {
	return sim.Distribution{Kind: sim.Exponential, Mean: mean}
}

// flapping has a fault of that length again and again, to the end.
func flapping(k sim.FaultKind, long, every time.Duration) part {
	return func(z Size, w *World) {
		w.Scenario.Services[0].Faults = []sim.Fault{{Kind: k, At: every, For: long, Every: every}}
		w.Scenario.Horizon, w.Stationary = z.Peace, true
	}
}

// watch watches for so many times as long before and after.
func watch(times time.Duration) part {
	return func(z Size, w *World) {
		fs := w.Scenario.Services[0].Faults
		for i := range fs {
			fs[i].At *= times
		}
		w.Scenario.Horizon = fs[0].At + fs[0].For + times*z.After
	}
}

// atOnce: each process makes that many calls within that time, and no more.
func atOnce(within time.Duration, each int) part {
	return func(z Size, w *World) {
		w.Scenario.Fleets[0].Arrivals = sim.Arrivals{Kind: sim.AtOnce, At: time.Second, Within: within, Each: each}
		w.Scenario.Horizon = within + time.Minute
	}
}

// periodic: each process calls once in every such time, all within the other.
func periodic(every, within time.Duration) part {
	return fleet(func(f *sim.Fleet) { f.Arrivals = sim.Arrivals{Kind: sim.Periodic, Every: every, Within: within} })
}

// spike: for that time there come that many times as many calls.
func spike(times float64, long time.Duration) part {
	return func(z Size, w *World) {
		from, to := z.Before, z.Before+long
		w.Scenario.Fleets[0].Arrivals.Ramp = []sim.RampPoint{{At: from, Factor: 1}, {At: from, Factor: times}, {At: to, Factor: times}, {At: to, Factor: 1}}
		w.outage(from, to)
	}
}

// bursts: the rate is low times the usual but for a burst of high times in every period, to the end.
func bursts(long, every time.Duration, low, high float64) part {
	return func(z Size, w *World) {
		w.Scenario.Horizon, w.Stationary = z.Peace, true
		ramp := &w.Scenario.Fleets[0].Arrivals.Ramp
		for at := time.Duration(0); at+every <= z.Peace; at += every {
			*ramp = append(*ramp, sim.RampPoint{At: at, Factor: low}, sim.RampPoint{At: at, Factor: high},
				sim.RampPoint{At: at + long, Factor: high}, sim.RampPoint{At: at + long, Factor: low})
		}
	}
}

// day is a day in five minutes, with a quarter more in its morning and a quarter less at night.
func day(z Size, w *World) {
	ramp := &w.Scenario.Fleets[0].Arrivals.Ramp
	for at := time.Duration(0); at <= z.Before+z.After; at += 10 * time.Second {
		*ramp = append(*ramp, sim.RampPoint{At: at, Factor: 1 + math.Sin(2*math.Pi*at.Seconds()/300)/4})
	}
}

// reload: a share of users whose call failed call again.
func reload(share float64, after time.Duration, times int) part {
	return fleet(func(f *sim.Fleet) {
		f.Reload = sim.Reload{Share: share, After: exponential(after), Times: times}
	})
}

// behind puts a service of n workers before the api, which calls it and retries as well.
func behind(n int, oneLayer bool) part {
	return func(z Size, w *World) {
		w.Scenario.Services = append([]sim.Service{{
			Name: "front", Workers: n, Queue: sim.Queue{Limit: 10_000},
			Time:  exponential(time.Millisecond),
			Calls: []sim.Hop{{Service: "api", AttemptTimeout: time.Second, OneLayer: oneLayer}},
		}}, w.Scenario.Services...)
		w.Scenario.Fleets[0].Calls = "front"
	}
}

// pooled gives each process a pool of connections, each of which costs the service that much work.
func pooled(p sim.Pool, handshake time.Duration) part {
	return func(z Size, w *World) {
		p.On = true
		w.Scenario.Fleets[0].Network.Pool = p
		w.Scenario.Fleets[0].Network.Latency = sim.Distribution{Mean: time.Millisecond}
		w.Scenario.Services[0].Connections.Handshake = sim.Distribution{Mean: handshake}
	}
}

// heap gives the service a collector of garbage, as in the scenario metastable-gc.
func heap(z Size, w *World) {
	w.Scenario.Services[0].Heap = sim.Heap{Size: 1e9, Live: 2e8, PerAttempt: 60_000, Garbage: 1e6, Pause: 150 * time.Microsecond}
}

// cached puts a service before a database of 200 calls/s, with a cache of what is there, as in the scenario
// metastable-cache. Up to n calls wait at the database.
func cached(n int) part {
	return func(z Size, w *World) {
		w.Scenario.Services = []sim.Service{{
			Name: "api", Calls: []sim.Hop{{Service: "db", AttemptTimeout: 500 * time.Millisecond, Cache: sim.Cache{Keys: 5000, For: 200 * time.Second}}},
		}, {
			Name: "db", Workers: 10, Queue: sim.Queue{Limit: n}, Time: exponential(50 * time.Millisecond),
		}}
	}
}

// several has n hosts of ten workers.
func several(n int) part {
	return service(func(v *sim.Service) {
		v.Hosts, v.Workers, v.Queue.Limit, v.Time.Mean = n, 10, 5000, 50*time.Millisecond
	})
}

// chosen: processes choose between the hosts as lullhttp does.
func chosen(z Size, w *World) { w.Scenario.Fleets[0].Network.Endpoints.On = true }

// others adds a fleet whose policy is not under comparison.
func others(rate float64, policy string) part {
	return func(z Size, w *World) {
		f := w.Scenario.Fleets[0]
		f.Name, f.Arrivals.Rate, f.Policy = "others", rate, policy
		w.Scenario.Fleets = append(w.Scenario.Fleets, f)
	}
}

// span is a time in a name: "500ms", "3s".
func span(d time.Duration) string {
	if d < time.Second && d > 0 {
		return d.String()
	}
	return digits(d) + "s"
}

func digits(d time.Duration) string { return fmt.Sprint(int(d.Seconds())) }
