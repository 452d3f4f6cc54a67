package battery

import (
	"fmt"
	"slices"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// A Family is a kind of world: parameters, and the values that they take.
type Family struct {
	Name, Title string
	build       func(z Size, add func(name string, parts ...part))
}

const (
	s  = time.Second
	ms = time.Millisecond
)

var (
	fleetSizes  = []int{1, 100}
	longOutages = []time.Duration{60 * s, 300 * s}
)

// Families are all of them.
var Families = slices.Concat(steady, changing)

// steady are the families whose trouble is of one kind.
var steady = []Family{
	{"timeouts", "attempts of 200 ms to 10 s before a line", func(z Size, add func(string, ...part)) {
		for _, d := range []time.Duration{200 * ms, 500 * ms, 3 * s, 10 * s} {
			long := 10 * s
			if d > 5*s {
				long = 30 * s
			}
			for _, load := range []float64{0.8, 0.95} {
				for _, p := range fleetSizes {
					add(fmt.Sprintf("to%s-p%d-l%v-stall%s", span(d), p, load, digits(long)),
						api(1000*load, p), timeout(d), queue(100_000), fault(sim.Stall, long))
				}
			}
		}
	}},
	{"workers", "services of 1 to 1,000 workers", func(z Size, add func(string, ...part)) {
		for _, n := range []int{1, 10, 1000} {
			rate := 8 * float64(n)
			if n == 1 {
				rate = 5 // at 8, one call in seven would time out in peace
			}
			for _, p := range fleetSizes {
				add(fmt.Sprintf("w%d-p%d-stall10", n, p), api(rate, p), workers(n), queue(100*n), fault(sim.Stall, 10*s))
				add(fmt.Sprintf("w%d-p%d-slow10", n, p), api(rate, p), workers(n), queue(100*n), faulty(sim.Fault{Kind: sim.SlowDown, For: 10 * s, Share: 0.3}))
				if n > 1 {
					add(fmt.Sprintf("w%d-p%d-brown10", n, p), api(rate, p), workers(n), queue(100*n), faulty(sim.Fault{Kind: sim.BrownOut, For: 10 * s, Share: 0.3}))
				}
			}
		}
	}},
	{"tails", "service times with a heavy tail", func(z Size, add func(string, ...part)) {
		for _, d := range tails {
			for _, p := range fleetSizes {
				add(fmt.Sprintf("%s-p%d-stall10", d.name, p), api(800, p), takes(d.Distribution), fault(sim.Stall, 10*s))
				add(fmt.Sprintf("%s-p%d-brown20", d.name, p), api(800, p), takes(d.Distribution), faulty(sim.Fault{Kind: sim.BrownOut, For: 20 * s, Share: 0.3}))
				add(fmt.Sprintf("%s-p%d-peace", d.name, p), api(500, p), takes(d.Distribution))
			}
		}
	}},
	{"queues", "lines of 100 to a million, the last first, the expired dropped, the work of those who left cancelled", func(z Size, add func(string, ...part)) {
		for _, p := range fleetSizes {
			for _, n := range []int{100, 1100, 1_000_000} {
				add(fmt.Sprintf("q%d-p%d-stall10", n, p), api(800, p), queue(n), fault(sim.Stall, 10*s))
			}
			add(fmt.Sprintf("q1000000-p%d-stall60", p), api(800, p), queue(1_000_000), fault(sim.Stall, 60*s))
			add(fmt.Sprintf("lifo-p%d-stall10", p), api(800, p), service(func(v *sim.Service) { v.Queue.Order = sim.LIFO }), fault(sim.Stall, 10*s))
			add(fmt.Sprintf("dropexp-p%d-stall10", p), api(800, p), service(func(v *sim.Service) { v.Queue.DropExpired = true }), fault(sim.Stall, 10*s))
			add(fmt.Sprintf("cancel-p%d-stall10", p), api(800, p), cancels, fault(sim.Stall, 10*s))
		}
	}},
	{"hangs", "a dependency that hangs and leaves no line", func(z Size, add func(string, ...part)) {
		for _, long := range longOutages {
			for _, p := range fleetSizes {
				at := fmt.Sprintf("bh%s-at", digits(long))
				for _, d := range []time.Duration{1 * s, 10 * s} {
					add(fmt.Sprintf("%s%v-p%d-cancel", at, d, p), api(800, p), timeout(d), cancels, fault(sim.Stall, long))
				}
				add(fmt.Sprintf("%s10s-p%d-r50-cancel", at, p), api(50, p), timeout(10*s), cancels, fault(sim.Stall, long))
				add(fmt.Sprintf("%s10s-p%d-r5-cancel", at, p), api(5, p), timeout(10*s), cancels, fault(sim.Stall, long))
				add(fmt.Sprintf("%s3s-p%d-q100", at, p), api(800, p), timeout(3*s), queue(100), fault(sim.Stall, long))
			}
		}
	}},
	{"gateways", "a gateway that answers 504, late", func(z Size, add func(string, ...part)) {
		for _, long := range []time.Duration{30 * s, 60 * s, 300 * s} {
			for _, p := range fleetSizes {
				for _, rate := range []float64{50, 800} {
					add(fmt.Sprintf("gw%s-p%d-r%v-504in5s", digits(long), p, rate), api(rate, p), timeout(10*s),
						faulty(sim.Fault{Kind: sim.Errors, For: long, After: 5 * s}))
				}
			}
		}
	}},
	{"outages", "nothing works for a minute to five", func(z Size, add func(string, ...part)) {
		for _, long := range longOutages {
			for _, p := range fleetSizes {
				for _, k := range []sim.FaultKind{sim.Stall, sim.Crash, sim.Errors} {
					add(fmt.Sprintf("%v%s-p%d", k, digits(long), p), api(800, p), fault(k, long))
				}
				add(fmt.Sprintf("crash%s-at10s-p%d", digits(long), p), api(800, p), timeout(10*s), fault(sim.Crash, long))
			}
		}
	}},
	{"brown-outs", "a part of the workers, or of the speed, is left", func(z Size, add func(string, ...part)) {
		for _, share := range []float64{0.3, 0.6, 0.75} {
			for _, p := range fleetSizes {
				for _, long := range []time.Duration{30 * s, 120 * s} {
					add(fmt.Sprintf("brown%v-%v-p%d", 100*share, span(long), p), api(800, p), faulty(sim.Fault{Kind: sim.BrownOut, For: long, Share: share}))
				}
				add(fmt.Sprintf("slow%v-30s-p%d", 100*share, p), api(800, p), faulty(sim.Fault{Kind: sim.SlowDown, For: 30 * s, Share: share}))
			}
		}
	}},
	{"cold caches", "a restart after which work takes longer", func(z Size, add func(string, ...part)) {
		for _, p := range fleetSizes {
			for _, c := range []struct {
				cold float64
				warm time.Duration
			}{{3, 60 * s}, {20, 60 * s}, {5, 120 * s}} {
				add(fmt.Sprintf("cold%vw%s-p%d", c.cold, digits(c.warm), p), api(800, p), faulty(sim.Fault{Kind: sim.Crash, For: 5 * s, Warmup: c.warm, Cold: c.cold}))
			}
		}
	}},
	{"flapping", "up and down again and again", func(z Size, add func(string, ...part)) {
		for _, p := range fleetSizes {
			for _, f := range []struct{ long, every time.Duration }{{2 * s, 10 * s}, {5 * s, 20 * s}} {
				for _, k := range []sim.FaultKind{sim.Errors, sim.Crash, sim.Stall} {
					add(fmt.Sprintf("flap-%v%sof%s-p%d", k, digits(f.long), digits(f.every), p), api(500, p), flapping(k, f.long, f.every))
				}
			}
			add(fmt.Sprintf("twostalls-p%d", p), api(800, p), faulty(sim.Fault{Kind: sim.Stall, For: 10 * s}), again(20*s))
		}
	}},
	{"sick hosts", "one host of several hangs or fails", func(z Size, add func(string, ...part)) {
		for _, p := range fleetSizes {
			for _, n := range []int{3, 20} {
				least := 0.99
				if n == 20 {
					least = 0.999
				}
				one := func(k sim.FaultKind) part { return faulty(sim.Fault{Kind: k, For: 60 * s, Hosts: 1}) }
				for _, d := range []time.Duration{500 * ms, 3 * s} {
					add(fmt.Sprintf("sick1of%d-p%d-at%s", n, p, span(d)), api(100*float64(n), p), several(n), timeout(d), one(sim.Stall), floor(least))
				}
				add(fmt.Sprintf("sickerr1of%d-p%d", n, p), api(100*float64(n), p), several(n), timeout(500*ms), one(sim.Errors), floor(least))
				add(fmt.Sprintf("sickcrash1of%d-p%d", n, p), api(100*float64(n), p), several(n), timeout(500*ms), one(sim.Crash), floor(least))
			}
		}
	}},
	{"lost", "a share of requests is lost", func(z Size, add func(string, ...part)) {
		for _, loss := range []float64{0.001, 0.01, 0.05} {
			for _, p := range fleetSizes {
				least := 0.0
				if loss <= 0.01 && p <= 50 { // one call a second or more
					least = 0.999
				}
				add(fmt.Sprintf("peace-loss%v-r50-p%d", loss, p), api(50, p), lossy(loss), floor(least))
			}
			add(fmt.Sprintf("peace-loss%v-r800-p100", loss), api(800, 100), lossy(loss), floor(map[bool]float64{true: 0.999}[loss <= 0.01]))
		}
		add("seq-loss0.01", api(0, 1), callers(1, sim.Distribution{Mean: 10 * ms}), timeout(2*s), lossy(0.01), floor(0.999))
		for _, p := range fleetSizes {
			add(fmt.Sprintf("tight-timeout-p%d", p), api(300, p), timeout(400*ms))
		}
	}},
	{"errors", "1 to 30 % of attempts fail, at once or late", func(z Size, add func(string, ...part)) {
		for _, share := range []float64{0.01, 0.05, 0.1, 0.2, 0.3} {
			for _, p := range []int{1, 10, 100, 1000} {
				least := 0.0
				if p <= 50 { // one call a second or more
					least = peaceFloor[share]
				}
				add(fmt.Sprintf("peace-err%v-r50-p%d", share, p), api(50, p), errors(share), floor(least))
			}
			for _, p := range []int{1, 100, 1000, 10_000} {
				least := peaceFloor[share]
				if p > 800 && share > 0.01 { // less than one call a second
					least = 0
				}
				add(fmt.Sprintf("peace-err%v-r800-p%d", share, p), api(800, p), errors(share), floor(least))
			}
			add(fmt.Sprintf("peace-err%v-slow500ms-r50-p10", share), api(50, 10), errors(share), service(func(v *sim.Service) { v.ErrorTime = 500 * ms }))
			add(fmt.Sprintf("seq-err%v", share), api(0, 1), callers(1, sim.Distribution{Mean: 10 * ms}), errors(share), floor(peaceFloor[share]))
		}
		for _, share := range []float64{0.2, 0.5, 0.8} {
			for _, p := range fleetSizes {
				add(fmt.Sprintf("err%v-180s-p%d", 100*share, p), api(800, p), faulty(sim.Fault{Kind: sim.Errors, For: 180 * s, Share: share}))
				add(fmt.Sprintf("err%v-slow500ms-p%d", 100*share, p), api(800, p), faulty(sim.Fault{Kind: sim.Errors, For: 180 * s, Share: share, After: 500 * ms}))
			}
		}
		add("cli5calls-err0.2", api(0, 1000), errors(0.2), atOnce(60*s, 5))
		add("cli10calls-err0.2", api(0, 100), errors(0.2), atOnce(60*s, 10))
	}},
	{"slow successes", "successes take seconds, failures come at once", func(z Size, add func(string, ...part)) {
		for _, share := range []float64{0.1, 0.3} {
			slow := func(n int) part {
				return service(func(v *sim.Service) {
					v.Workers, v.Errors, v.Time = n, share, sim.Distribution{Mean: 5 * s}
				})
			}
			for _, p := range []int{1, 10, 100} {
				add(fmt.Sprintf("slowok5s-err%v-r10-p%d", share, p), api(10, p), slow(1000), timeout(30*s))
				add(fmt.Sprintf("slowok5s-err%v-batch100-p%d", share, p), api(0, p), slow(10_000), timeout(30*s), atOnce(30*s, 100))
				add(fmt.Sprintf("slowok5s-err%v-bursts4sper60-p%d", share, p), api(10*float64(p), p), slow(10_000), timeout(30*s), bursts(4*s, 60*s, 0, 1))
			}
		}
		model := service(func(v *sim.Service) {
			v.Workers, v.Queue.Limit, v.Errors = 1000, 1000, 0.25
			v.Time = sim.Distribution{Kind: sim.LogNormal, Mean: 8 * s, Sigma: 0.5}
		})
		add("llm", api(10, 100), model, timeout(60*s), deadline(120*s))
		add("batch-llm", api(0, 100), model, timeout(60*s), deadline(120*s), atOnce(20*s, 50))
	}},
	{"rate limits", "more calls than a rate limit lets through", func(z Size, add func(string, ...part)) {
		for _, hint := range []time.Duration{0, 2 * s, 5 * s} {
			for _, p := range fleetSizes {
				limit := service(func(v *sim.Service) {
					v.Workers, v.Rate = 1000, sim.Rate{PerSecond: 1000, Burst: 1000, RetryAfter: hint}
				})
				add(fmt.Sprintf("rl-const1.2x-hint%s-p%d", span(hint), p), api(1200, p), limit)
				add(fmt.Sprintf("rl-spike3x60-hint%s-p%d", span(hint), p), api(800, p), limit, spike(3, 60*s))
			}
		}
	}},
	{"restarts", "a restart of 8 s that says Retry-After: 10", func(z Size, add func(string, ...part)) {
		for _, p := range fleetSizes {
			for _, rate := range []float64{10, 100, 800} {
				add(fmt.Sprintf("maintenance-r%v-p%d", rate, p), api(rate, p), timeout(10*s), deadline(30*s),
					faulty(sim.Fault{Kind: sim.Errors, For: 8 * s, RetryAfter: 10 * s}), floor(0.998))
			}
		}
	}},
	{"arrivals", "spikes, bursts, days and crons", func(z Size, add func(string, ...part)) {
		for _, p := range fleetSizes {
			add(fmt.Sprintf("spike3x60-p%d", p), api(800, p), spike(3, 60*s))
			add(fmt.Sprintf("spike3x60-l.4-p%d", p), api(400, p), spike(3, 60*s))
			add(fmt.Sprintf("spike3x60-q100-p%d", p), api(800, p), queue(100), spike(3, 60*s))
			add(fmt.Sprintf("bursts2x3s-p%d", p), api(700, p), bursts(3*s, 20*s, 1, 2))
			add(fmt.Sprintf("diurnal-p%d", p), api(760, p), day)
			add(fmt.Sprintf("diurnal-p%d-stall10", p), api(760, p), day, fault(sim.Stall, 10*s))
		}
		for _, p := range []int{1000, 10_000} {
			add(fmt.Sprintf("cron60-p%d", p), api(0, p), periodic(60*s, 20*s))
			add(fmt.Sprintf("cron60-p%d-stall10", p), api(0, p), periodic(60*s, 20*s), fault(sim.Stall, 10*s))
		}
	}},
	{"reloads", "users whose call failed call again", func(z Size, add func(string, ...part)) {
		for _, p := range fleetSizes {
			add(fmt.Sprintf("reload-p%d-stall10", p), api(600, p), reload(1, 2*s, 30), fault(sim.Stall, 10*s))
			add(fmt.Sprintf("reload-p%d-brown30", p), api(800, p), reload(0.8, 5*s, 10), faulty(sim.Fault{Kind: sim.BrownOut, For: 30 * s, Share: 0.3}))
		}
	}},
	{"layers", "a service between, which retries, too", func(z Size, add func(string, ...part)) {
		for _, p := range fleetSizes {
			for _, n := range []int{200, 2000} {
				for _, one := range []bool{false, true} {
					add(fmt.Sprintf("layers2-one%d-p%d-w%d", map[bool]int{true: 1}[one], p, n), api(800, p), behind(n, one), timeout(2*s), fault(sim.Stall, 10*s))
				}
			}
		}
	}},
	{"fleets", "1 to 100,000 processes, and those of one call a minute", func(z Size, add func(string, ...part)) {
		for _, p := range []int{1, 10, 1000, 10_000, 100_000} {
			add(fmt.Sprintf("fleet-p%d-stall10", p), api(800, p), fault(sim.Stall, 10*s))
			add(fmt.Sprintf("fleet-p%d-errors60", p), api(800, p), fault(sim.Errors, 60*s))
			add(fmt.Sprintf("fleet-p%d-brown30", p), api(800, p), faulty(sim.Fault{Kind: sim.BrownOut, For: 30 * s, Share: 0.3}))
		}
		small := func(mean time.Duration) part {
			return service(func(v *sim.Service) { v.Workers, v.Queue.Limit, v.Time.Mean = 1, 1000, mean })
		}
		for _, f := range []struct {
			k    sim.FaultKind
			long time.Duration
		}{{sim.Errors, 5 * s}, {sim.Errors, 60 * s}, {sim.Stall, 20 * s}, {sim.Stall, 60 * s}} {
			add(fmt.Sprintf("low-r0.5-p1-%v%s", f.k, digits(f.long)), api(0.5, 1), small(1*s), timeout(5*s), fault(f.k, f.long), watch(4))
			add(fmt.Sprintf("low-r5-p100-%v%s", f.k, digits(f.long)), api(5, 100), small(160*ms), timeout(5*s), fault(f.k, f.long), watch(2))
			add(fmt.Sprintf("minute-p600-%v%s", f.k, digits(f.long)), api(10, 600), small(80*ms), timeout(5*s), fault(f.k, f.long))
		}
		add("minute-p600-err0.05", api(10, 600), errors(0.05))
	}},
	{"grid", "one service, which fails in four ways, for 0.2 to 30 s, at five loads, with five fleets", grid},
	{"mixed", "half of the load is others', who retry without a budget", func(z Size, add func(string, ...part)) {
		for _, p := range fleetSizes {
			add(fmt.Sprintf("mixed-p%d-stall10", p), api(400, p), others(200, "full-jitter"), fault(sim.Stall, 10*s))
		}
	}},
	{"connections", "pools of connections, which cost work to open", func(z Size, add func(string, ...part)) {
		for _, p := range fleetSizes {
			for _, kind := range []sim.PoolKind{sim.HTTP, sim.SQL} {
				pool := pooled(sim.Pool{Kind: kind, Size: 800 / p, RoundTrips: 2}, 10*ms)
				for _, k := range []sim.FaultKind{sim.Stall, sim.Crash} {
					add(fmt.Sprintf("pool-%v-p%d-%v10", kind, p, k), api(800, p), pool, fault(k, 10*s))
				}
				add(fmt.Sprintf("pool-%v-p%d-brown20", kind, p), api(800, p), pool, faulty(sim.Fault{Kind: sim.BrownOut, For: 20 * s, Share: 0.3}))
				add(fmt.Sprintf("pool-%v-p%d-blip", kind, p), api(800, p), pool, fault(sim.Crash, 200*ms))
				add(fmt.Sprintf("pool-%v-p%d-peace-err0.2", kind, p), api(800, p), pool, errors(0.2))
			}
			// A connection is dearer than a call: once they are lost, there is hardly room for all to dial anew.
			dear := []part{api(1000, p), takes(sim.Distribution{Mean: 80 * ms}), pooled(sim.Pool{Open: 1000 / p, RoundTrips: 2}, 120*ms)}
			add(fmt.Sprintf("dear-p%d-blip", p), append(dear, fault(sim.Crash, 200*ms))...)
			add(fmt.Sprintf("dear-p%d-stall10", p), append(dear, fault(sim.Stall, 10*s))...)
			narrow := pooled(sim.Pool{Size: max(120/p, 1), RoundTrips: 2}, 10*ms)
			add(fmt.Sprintf("narrow-p%d-stall10", p), api(800, p), narrow, fault(sim.Stall, 10*s))
		}
	}},
	{"heaps", "collections of garbage that take longer the more waits", func(z Size, add func(string, ...part)) {
		for _, p := range fleetSizes {
			for _, load := range []float64{0.5, 0.8} {
				add(fmt.Sprintf("gc-l%v-p%d-spike3x10", load, p), api(1000*load, p), heap, spike(3, 10*s))
				add(fmt.Sprintf("gc-l%v-p%d-stall10", load, p), api(1000*load, p), heap, fault(sim.Stall, 10*s))
			}
			add(fmt.Sprintf("gc-p%d-q500-stall10", p), api(800, p), heap, queue(500), fault(sim.Stall, 10*s))
			add(fmt.Sprintf("gc-p%d-err20-60s", p), api(600, p), heap, faulty(sim.Fault{Kind: sim.Errors, For: 60 * s, Share: 0.2}))
		}
	}},
	{"caches", "a look-aside cache that is lost, before a database that is too slow to fill it", func(z Size, add func(string, ...part)) {
		for _, p := range fleetSizes {
			for _, rate := range []float64{180, 500} {
				for _, share := range []float64{0.2, 1} {
					add(fmt.Sprintf("cache-r%v-p%d-flush%v", rate, p, 100*share), api(rate, p), cached(2500), faulty(sim.Fault{Kind: sim.Flush, For: s, Share: share}))
				}
			}
			add(fmt.Sprintf("cache-p%d-q80-flush100", p), api(500, p), cached(80), faulty(sim.Fault{Kind: sim.Flush, For: s}))
			add(fmt.Sprintf("cache-p%d-db-stall10", p), api(500, p), cached(2500), fault(sim.Stall, 10*s))
		}
	}},
	{"endpoints", "hosts that processes choose between, and leave out", func(z Size, add func(string, ...part)) {
		for _, p := range fleetSizes {
			for _, n := range []int{3, 20} {
				for _, f := range []struct {
					name string
					sim.Fault
				}{
					{"stall", sim.Fault{Kind: sim.Stall}}, {"errors", sim.Fault{Kind: sim.Errors}}, {"crash", sim.Fault{Kind: sim.Crash}},
					{"slow", sim.Fault{Kind: sim.SlowDown, Share: 0.2}},
				} {
					f.Fault.For, f.Fault.Hosts = 60*s, 1
					add(fmt.Sprintf("choose%d-p%d-%s1", n, p, f.name), api(100*float64(n), p), several(n), chosen, timeout(500*ms), faulty(f.Fault))
				}
				add(fmt.Sprintf("choose%d-p%d-stall10", n, p), api(160*float64(n), p), several(n), chosen, timeout(500*ms), fault(sim.Stall, 10*s))
			}
		}
	}},
}

// peaceFloor is the least share of calls that has to succeed at so many quick errors.
var peaceFloor = map[float64]float64{0.01: 0.999, 0.1: 0.998, 0.2: 0.985, 0.3: 0.95}

var tails = []struct {
	name string
	sim.Distribution
}{
	{"bimodal", sim.Distribution{Kind: sim.Bimodal, Mean: 50 * ms, Slow: 0.02, SlowMean: 2500 * ms}},
	{"logn1.5", sim.Distribution{Kind: sim.LogNormal, Mean: 100 * ms, Sigma: 1.5}},
	{"logn2", sim.Distribution{Kind: sim.LogNormal, Mean: 100 * ms, Sigma: 2}},
	{"pareto", pareto},
}

// pareto is Pareto's distribution with a shape of 1.5 and a mean of about 100 ms, cut at 30 s: of the times
// half are longer than 53 ms, and of those a third longer than twice as long, and so on.
var pareto = sim.Distribution{Kind: sim.Histogram, Bars: func() (bars []sim.Bar) {
	left, at := 1.0, 33*ms
	for bars = append(bars, sim.Bar{UpTo: at, Weight: 0}); at < 30*s; at *= 2 {
		more := left / 2.828427125 // 2^1.5
		bars = append(bars, sim.Bar{UpTo: 2 * at, Weight: left - more})
		left = more
	}
	return bars
}()}
