package sim

import (
	"math"
	"slices"
	"time"
)

// A smaller world has at least that many workers, since a queue before fewer is longer under the same load (Erlang), and that many
// processes, or calls a second of each: then what a budget has in stock is little beside what it earns.
const fewWorkers, fewProcesses, busyProcess = 50, 20, 50

// Smaller returns s with an nth of the load, the processes, and the workers and queues of each host: a policy does in it what it
// does in s, but for chance. Few processes with many calls each stay. It reports false if that is not so: too little would be left, something cannot be divided, or only
// with an error of more than 2 %.
func (s Scenario) Smaller(n int) (Scenario, bool) {
	same := len(s.Topics) == 0
	divide := func(v *int, least int) {
		part := math.Round(float64(*v) / float64(n))
		if *v > 0 {
			same = same && part >= float64(least) && math.Abs(part*float64(n)/float64(*v)-1) <= 0.02
			*v = max(int(part), 1)
		}
	}
	s.Fleets, s.Services = slices.Clone(s.Fleets), slices.Clone(s.Services)
	for i := range s.Fleets {
		f := &s.Fleets[i]
		same = same && f.Arrivals.Rate > 0 && !f.Link.On
		if f.Arrivals.Rate /= float64(n); f.Arrivals.Rate < busyProcess*float64(max(f.Processes, 1)) {
			divide(&f.Processes, fewProcesses)
			same = same && f.Processes > 0
		}
	}
	for i := range s.Services {
		v := &s.Services[i]
		same = same && v.Connections.Limit == 0 && v.Heap.Size == 0 && !v.Admission.On && len(v.Calls) == 0
		divide(&v.Workers, fewWorkers)
		divide(&v.Queue.Limit, 1)
		divide(&v.Rate.Burst, 1)
		v.Rate.PerSecond /= float64(n)
		v.Congestion *= time.Duration(n)
	}
	return s, same
}
