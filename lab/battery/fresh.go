package battery

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// Fresh draws n worlds of the families by a seed. The same seed gives the same worlds, however many are asked for.
// Odd seeds are for tests and for what is tuned. Even ones are for a judgement that nobody tuned to: no test of this
// repository flies them, and nobody should tune to one.
func Fresh(z Size, seed uint64, n int) []World {
	kinds := slices.DeleteFunc(slices.Clone(Families), func(f Family) bool { return draws[f.Name] == nil })
	first := int(seed % uint64(len(kinds)))
	var all []World
	for i := range n {
		f := kinds[(first+i)%len(kinds)]
		d := &dice{Rand: rand.New(rand.NewPCG(seed, uint64(i))), most: z.Processes}
		w := World{Family: f.Name}
		for _, p := range d.world(z, draws[f.Name]) {
			p(z, &w)
		}
		w.Name = fmt.Sprintf("%s-%d.%d-p%d-l%.2f-to%v", strings.ReplaceAll(f.Name, " ", "-"), seed, i+1, d.processes, d.load, d.timeout)
		w.finish(z)
		all = append(all, w)
	}
	return all
}

// dice are what a world is drawn with, and what has been drawn of it: a service that can do more than it gets, and
// callers that wait long enough for its answers.
type dice struct {
	*rand.Rand
	most               int // processes
	workers, processes int
	load, rate         float64 // share of what the service can do; calls/s
	mean, timeout      time.Duration
}

// world draws a service and its callers, and what befalls them.
func (d *dice) world(z Size, draw func(*dice) []part) []part {
	for ok := false; !ok; {
		d.workers, d.mean, d.load = int(d.log(2, 500)), d.span(10*ms, s), d.between(0.1, 0.9)
		d.rate = math.Ceil(d.load * float64(d.workers) / d.mean.Seconds())
		d.load = d.rate * d.mean.Seconds() / float64(d.workers)
		ok = d.load < 0.95 && d.rate >= 5 && d.rate <= min(z.Rate, 1000)
	}
	d.processes = int(d.log(1, min(float64(d.most), 60*d.rate))) // each calls once a minute or more
	d.timeout = round(time.Duration(float64(d.mean) * d.log(8, 60)))
	line := int(d.log(0.5, 30) * float64(d.workers) / d.mean.Seconds())
	parts := []part{api(d.rate, d.processes), workers(d.workers), queue(max(line, 10)), timeout(d.timeout)}
	parts = append(parts, takes([]sim.Distribution{
		{Mean: d.mean}, {Kind: sim.Exponential, Mean: d.mean}, {Kind: sim.LogNormal, Mean: d.mean, Sigma: d.between(0.3, 1.2)},
	}[d.IntN(3)]))
	if d.IntN(3) == 0 {
		parts = append(parts, cancels)
	}
	return append(parts, draw(d)...)
}

func (d *dice) between(least, most float64) float64 {
	return math.Round(100*(least+d.Float64()*(most-least))) / 100
}

// log draws a number as often below the geometric mean of the two as above.
func (d *dice) log(least, most float64) float64 {
	return least * math.Pow(most/least, d.Float64())
}

func (d *dice) span(least, most time.Duration) time.Duration {
	return round(time.Duration(d.log(float64(least), float64(most))))
}

// round leaves two digits.
func round(t time.Duration) time.Duration {
	unit := time.Duration(math.Pow(10, math.Floor(math.Log10(float64(t)))-1))
	return t.Round(unit)
}

func (d *dice) kind(of ...sim.FaultKind) sim.FaultKind { return of[d.IntN(len(of))] }

// late is after how long a late error comes, before the callers have given up.
func (d *dice) late() time.Duration {
	return round(time.Duration(float64(d.timeout) * d.between(0.3, 0.9)))
}

// sick is a fault of some of several hosts. d's workers are spread over them.
func (d *dice) sick(n, sick int, k sim.FaultKind) []part {
	return []part{hosts(n, max(d.workers/n, 1)+1), faulty(sim.Fault{Kind: k, For: d.span(20*s, 90*s), Hosts: sick})}
}

// turn is one of the faults that follow each other.
func (d *dice) turn() sim.Fault {
	f := sim.Fault{Kind: d.kind(sim.Errors, sim.Errors, sim.Stall, sim.Crash), For: d.span(5*s, 40*s)}
	if f.Kind == sim.Errors && d.IntN(2) == 0 {
		f.After = d.late()
	}
	return f
}

// draws are how worlds of the families are drawn. Families that are not here have no parameters to draw.
var draws = map[string]func(*dice) []part{
	"queues": func(d *dice) []part { return []part{fault(sim.Stall, d.span(3*s, 60*s))} },
	"hangs":  func(d *dice) []part { return []part{cancels, fault(sim.Stall, d.span(20*s, 200*s))} },
	"gateways": func(d *dice) []part {
		return []part{faulty(sim.Fault{Kind: sim.Errors, For: d.span(20*s, 200*s), After: d.late()})}
	},
	"outages": func(d *dice) []part { return []part{fault(d.kind(sim.Crash, sim.Errors), d.span(5*s, 200*s))} },
	"brown-outs": func(d *dice) []part {
		return []part{faulty(sim.Fault{Kind: d.kind(sim.BrownOut, sim.SlowDown), For: d.span(10*s, 100*s), Share: d.between(0.1, 0.8)})}
	},
	"cold caches": func(d *dice) []part {
		return []part{faulty(sim.Fault{Kind: sim.Crash, For: d.span(2*s, 20*s), Warmup: d.span(20*s, 100*s), Cold: d.between(2, 20)})}
	},
	"flapping": func(d *dice) []part {
		long := d.span(s, 5*s)
		return []part{flapping(d.kind(sim.Errors, sim.Crash, sim.Stall), long, round(time.Duration(float64(long)*d.between(3, 8))))}
	},
	"sick hosts": func(d *dice) []part { return d.sick(3+d.IntN(30), 1, d.kind(sim.Stall, sim.Errors, sim.Crash)) },
	"lost":       func(d *dice) []part { return []part{lossy(d.log(0.001, 0.1))} },
	"errors":     func(d *dice) []part { return []part{errors(d.between(0.01, 0.4))} },
	"slow successes": func(d *dice) []part {
		return []part{errors(d.between(0.05, 0.4)), service(func(v *sim.Service) { v.ErrorTime = time.Millisecond })}
	},
	"rate limits": func(d *dice) []part {
		limit := sim.Rate{PerSecond: math.Ceil(d.rate * d.between(1.1, 1.8)), RetryAfter: []time.Duration{0, 2 * s, 5 * s}[d.IntN(3)]}
		return []part{service(func(v *sim.Service) { v.Rate = limit }), spike(d.between(1.5, 5), d.span(10*s, 60*s))}
	},
	"restarts": func(d *dice) []part {
		return []part{faulty(sim.Fault{Kind: sim.Errors, For: d.span(2*s, 30*s), RetryAfter: time.Duration(1+d.IntN(15)) * s})}
	},
	"arrivals": func(d *dice) []part { return []part{spike(d.between(1.5, 4), d.span(5*s, 60*s))} },
	"reloads": func(d *dice) []part {
		return []part{reload(d.between(0.3, 1), d.span(s, 10*s), 3+d.IntN(20)), fault(d.kind(sim.Stall, sim.Errors, sim.Crash), d.span(5*s, 40*s))}
	},
	"layers": func(d *dice) []part {
		return []part{behind(4*d.workers, d.IntN(2) == 0), timeout(4 * d.timeout), fault(sim.Stall, d.span(5*s, 30*s))}
	},
	"mixed": func(d *dice) []part {
		return []part{fleet(func(f *sim.Fleet) { f.Arrivals.Rate /= 2 }), others(d.rate/2, "full-jitter"), fault(d.kind(sim.Stall, sim.Errors), d.span(5*s, 40*s))}
	},
	"connections": func(d *dice) []part {
		pool := sim.Pool{Kind: []sim.PoolKind{sim.HTTP, sim.SQL}[d.IntN(2)], Size: 2 + 4*d.workers/d.processes, RoundTrips: 2}
		return []part{pooled(pool, d.mean/20), fault(d.kind(sim.Stall, sim.Crash), d.span(200*ms, 30*s))}
	},
	"endpoints": func(d *dice) []part {
		return append(d.sick(3+d.IntN(20), 1, d.kind(sim.Stall, sim.Errors, sim.Crash)), chosen)
	},
	"drifts": func(d *dice) []part {
		least := d.between(0.05, 0.5)
		drift := inTurn(sim.SlowDown, d.span(8*s, 20*s), 0.8, (1+least)/2, (0.3+least)/2, least, (0.3+least)/2, (1+least)/2, 0.8)
		if d.IntN(2) == 0 {
			return []part{drift}
		}
		return []part{workers(0), queue(0), drift}
	},
	"turns": func(d *dice) []part { return []part{faulty(d.turn()), next(d.turn())} },
	"ramps": func(d *dice) []part {
		most := d.between(0.2, 0.95)
		return []part{inTurn(sim.Errors, d.span(8*s, 25*s), most/6, most/3, 2*most/3, most, 2*most/3, most/3, most/6)}
	},
	"jobs": func(d *dice) []part {
		every := d.span(5*s, 60*s)
		d.processes = min(max(int(d.rate*every.Seconds()), 1), d.most)
		within := every / time.Duration(2+d.IntN(20))
		return []part{workers(0), queue(0), processes(d.processes), periodic(every, within), errors(d.between(0, 0.3)), fault(d.kind(sim.Errors, sim.Stall), d.span(5*s, 60*s))}
	},
	"black holes": func(d *dice) []part {
		n := 2 * (1 + d.IntN(20))
		return append(d.sick(n, n/2, sim.Stall), cancels)
	},
	"one process": func(d *dice) []part {
		d.processes = 1
		return []part{processes(1), workers(0), queue(0), cancels, fault(sim.Stall, d.span(3*s, 90*s))}
	},
	"blips": func(d *dice) []part {
		long := d.span(200*ms, 3*s)
		parts := []part{fault(d.kind(sim.Stall, sim.Crash, sim.Errors), long)}
		for range 2 + d.IntN(6) {
			parts = append(parts, again(long+d.span(2*s, 10*s)))
		}
		return parts
	},
	"callers": func(d *dice) []part {
		all := d.between(1, 6) * float64(d.workers) // callers: more than can be served at once
		each := max(int(all)/d.processes, 1)
		d.processes = max(int(all)/each, 1)
		think := time.Duration(float64(d.mean) * max(all/float64(d.workers)/d.load-1, 0.1)) // as busy as the load, if nobody waits
		return []part{processes(d.processes), callers(each, exponential(think)), errors(d.between(0, 0.2)),
			fault(d.kind(sim.Stall, sim.Errors, sim.Crash), d.span(3*s, 40*s))}
	},
}
