package battery

import (
	"fmt"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// changing are the families whose trouble changes while it lasts, or is seen by callers of other kinds.
var changing = []Family{
	{"drifts", "answers that take longer and longer, to the timeout and beyond", func(z Size, add func(string, ...part)) {
		for _, p := range fleetSizes {
			for _, least := range []float64{0.25, 0.1} {
				drift := inTurn(sim.SlowDown, 15*s, 0.8, (1+least)/2, (0.3+least)/2, least, (0.3+least)/2, (1+least)/2, 0.8)
				add(fmt.Sprintf("drift%v-p%d", 100*least, p), api(200, p), workers(0), queue(0), takes(sim.Distribution{Kind: sim.LogNormal, Mean: 120 * ms, Sigma: 0.3}), drift)
				add(fmt.Sprintf("drift%v-p%d-line", 100*least, p), api(500, p), drift)
			}
		}
	}},
	{"turns", "quick errors, then slow ones or a hang, or the other way round", func(z Size, add func(string, ...part)) {
		quick, slow := sim.Fault{Kind: sim.Errors, For: 20 * s}, sim.Fault{Kind: sim.Errors, For: 40 * s, After: 4 * s}
		hang := sim.Fault{Kind: sim.Stall, For: 40 * s}
		for _, p := range fleetSizes {
			for _, turn := range []struct {
				name          string
				first, second sim.Fault
			}{{"quick-slow", quick, slow}, {"slow-quick", slow, quick}, {"quick-hang", quick, hang}, {"hang-quick", hang, quick}} {
				add(fmt.Sprintf("turn-%s-p%d", turn.name, p), api(200, p), timeout(10*s), cancels, faulty(turn.first), next(turn.second))
			}
		}
	}},
	{"ramps", "a share of errors that rises and falls", func(z Size, add func(string, ...part)) {
		for _, p := range fleetSizes {
			for _, most := range []float64{0.3, 0.6, 0.9} {
				add(fmt.Sprintf("ramp%v-p%d", 100*most, p), api(200, p), inTurn(sim.Errors, 20*s, most/6, most/3, 2*most/3, most, 2*most/3, most/3, most/6))
			}
		}
	}},
	{"jobs", "every process calls every ten seconds, all at the same time", func(z Size, add func(string, ...part)) {
		for _, p := range []int{20, 200, 1000} {
			jobs := periodic(10*s, 300*ms)
			for _, share := range []float64{0.05, 0.2} {
				add(fmt.Sprintf("jobs-p%d-err%v", p, share), api(0, p), workers(0), queue(0), timeout(2*s), jobs, errors(share))
			}
			add(fmt.Sprintf("jobs-p%d-stall25", p), api(0, p), timeout(2*s), jobs, fault(sim.Stall, 25*s))
		}
	}},
	{"black holes", "half of the hosts do not answer", func(z Size, add func(string, ...part)) {
		for _, p := range []int{1, 100, 1000, 10_000} {
			for _, n := range []int{2, 20} {
				add(fmt.Sprintf("hole%dof%d-p%d", n/2, n, p), api(200, p), hosts(n, 50), cancels, faulty(sim.Fault{Kind: sim.Stall, For: 60 * s, Hosts: n / 2}))
			}
		}
	}},
	{"one process", "hangs without a line, seen by one process", func(z Size, add func(string, ...part)) {
		for _, long := range []time.Duration{5 * s, 30 * s} {
			for _, rate := range []float64{1, 10, 100} {
				for _, d := range []time.Duration{1 * s, 10 * s} {
					add(fmt.Sprintf("alone-r%v-to%s-hang%s", rate, span(d), digits(long)), api(rate, 1), workers(0), queue(0), cancels, timeout(d), fault(sim.Stall, long))
				}
			}
		}
	}},
	{"blips", "a sequence of short stalls or crashes", func(z Size, add func(string, ...part)) {
		for _, p := range fleetSizes {
			for _, long := range []time.Duration{500 * ms, 2 * s} {
				for _, k := range []sim.FaultKind{sim.Stall, sim.Crash} {
					add(fmt.Sprintf("blips-%v%s-p%d", k, span(long), p), api(700, p), fault(k, long), again(6*s), again(6*s), again(6*s), again(6*s))
				}
			}
		}
	}},
	{"rare calls", "one sick host of twenty, and processes that seldom call", func(z Size, add func(string, ...part)) {
		for _, p := range []int{1000, 10_000} {
			for _, k := range []sim.FaultKind{sim.Stall, sim.Errors} {
				add(fmt.Sprintf("rare-p%d-%v1of20", p, k), api(float64(p)/50, p), hosts(20, 50), cancels, faulty(sim.Fault{Kind: k, For: 60 * s, Hosts: 1}))
			}
		}
	}},
	{"callers", "pools of callers, each of which waits for its answer before it calls again", func(z Size, add func(string, ...part)) {
		for _, pool := range []struct {
			processes, each int
			think           time.Duration
		}{{1, 60, 10 * ms}, {1, 4, 500 * ms}, {100, 20, 3 * s}} {
			of := []part{api(0, pool.processes), callers(pool.each, exponential(pool.think))}
			name := fmt.Sprintf("callers%dx%d", pool.processes, pool.each)
			add(name+"-err0.2", append(of, errors(0.2))...)
			add(name+"-loss0.05", append(of, lossy(0.05))...)
			add(name+"-stall10", append(of, fault(sim.Stall, 10*s))...)
			add(name+"-late30", append(of, faulty(sim.Fault{Kind: sim.Errors, For: 30 * s, After: 800 * ms}))...)
		}
	}},
}
