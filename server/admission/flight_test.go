package admission

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

// Flights in virtual time: a server of so many workers, callers that do not wait for
// one another, and the controller with its zero Config between them, which knows
// nothing of either.

// share of what the workers can do, from r.from to the end.
func (w *world) share(end time.Duration, mean time.Duration) float64 {
	can := float64(w.workers) * float64(end-w.from) / float64(mean)
	return float64(len(w.took)) / can
}

func TestOverload(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not short: statistics on one goroutine")
	}
	const mean = 20 * ms
	for _, c := range []struct {
		workers int
		name    string
		service func(*rand.Rand) time.Duration
		least   float64
	}{
		{1, "constant", constant(mean), 0.9},
		{1, "exponential", exponential(mean), 0.85},
		{4, "constant", constant(mean), 0.95},
		{4, "exponential", exponential(mean), 0.9},
		{20, "exponential", exponential(mean), 0.93},
		{20, "log-normal", lognormal(mean, 1.5), 0.8}, // 10 s are few for a tail like that
	} {
		const end = 40 * time.Second
		for seed := range uint64(min(seed.Runs(1), 3)) {
			w := &world{c: must.Have(New(Config{})), workers: c.workers, service: c.service,
				rate: always(3 * float64(c.workers) / mean.Seconds())}
			w.from = 10 * time.Second
			if c.name == "log-normal" {
				w.from = 20 * time.Second
			}
			w.run(seed, end)
			got, wait := w.share(end, mean), percentile(w.waits, 0.99)
			last := w.c.Snapshot(end).Limit
			t.Logf("%d workers, %s: %.3f of the capacity, p99 %v (of the waits %v), limit %d", c.workers, c.name, got, percentile(w.took, 0.99), wait, last)
			if got < c.least {
				t.Errorf("%d workers, %s, seed %d: goodput is %.3f of the capacity, want %.2f", c.workers, c.name, seed, got, c.least)
			}
			if wait > DefaultMaxWait {
				t.Errorf("%d workers, %s, seed %d: p99 of the waits is %v, above the bound", c.workers, c.name, seed, wait)
			}
		}
	}
}

// A dependency takes five times as long for half a minute, and callers go on coming at
// three times what was possible before, with four attempts each. The capacity falls to a
// fifth; what there is of it must be used, then and afterwards.
func TestSlowdown(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not short: statistics on one goroutine")
	}
	for _, c := range []struct {
		name    string
		service func(*rand.Rand) time.Duration
		workers int
		obeys   bool
	}{
		{"constant", constant(20 * ms), 4, false},
		{"constant, obeying", constant(20 * ms), 4, true},
		{"exponential", exponential(20 * ms), 4, false},
		{"exponential", exponential(20 * ms), 20, true},
	} {
		w := &world{c: must.Have(New(Config{})), workers: c.workers, service: c.service, attempts: 4, obeys: c.obeys,
			patience: 500 * ms, deadline: true, rate: always(3 * 50 * float64(c.workers))}
		w.slow = func(now time.Duration) float64 {
			if now >= 20*time.Second && now < 50*time.Second {
				return 5
			}
			return 1
		}
		var good, sent, calls [4]int
		w.at(10*time.Second, func() { w.wasted, w.took = 0, nil }) // the requests that came before there was a limit
		for i, at := range []time.Duration{10, 20, 50, 80} {
			w.at(at*time.Second, func() { good[i], sent[i], calls[i] = w.good, w.sent, w.calls })
		}
		w.run(1, 81*time.Second)
		for i, part := range []struct {
			name    string
			seconds float64
			slow    float64
			least   float64
		}{{"before", 10, 1, 0.88}, {"while slow", 30, 5, 0.8}, {"after", 30, 1, 0.9}} {
			can := float64(c.workers) * 50 * part.seconds / part.slow
			got := float64(good[i+1]-good[i]) / can
			attempts := float64(sent[i+1]-sent[i]) / float64(calls[i+1]-calls[i])
			t.Logf("%d workers, %s, %s: %.3f of the capacity, %.2f attempts a call", c.workers, c.name, part.name, got, attempts)
			if got < part.least {
				t.Errorf("%d workers, %s, %s: goodput is %.3f of the capacity, want %.2f", c.workers, c.name, part.name, got, part.least)
			}
			if c.obeys && attempts > 1.1 {
				t.Errorf("%d workers, %s, %s: %.2f attempts a call by those who obey", c.workers, c.name, part.name, attempts)
			}
		}
		if total := len(w.took); w.wasted*50 > total {
			t.Errorf("%d workers, %s: work for callers that had gone was done %d times, for others %d times", c.workers, c.name, w.wasted, total)
		}
	}
}

// Without admission the same callers bring the same server down: what the tests above
// show is not the model's doing.
func TestCollapseWithout(t *testing.T) {
	w := &world{workers: 4, service: constant(20 * ms), attempts: 4, patience: 500 * ms, rate: always(600)}
	w.from = 10 * time.Second
	w.run(1, 30*time.Second)
	if got := w.share(30*time.Second, 20*ms); got > 0.05 {
		t.Errorf("goodput without admission is %.3f of the capacity", got)
	}
}

// Bursts of a twentieth of a second, at ten times the capacity, under a load of two
// fifths: nobody need be refused for long, and nearly all who come back get in.
func TestBursts(t *testing.T) {
	w := &world{c: must.Have(New(Config{})), workers: 4, service: constant(20 * ms), attempts: 4, obeys: true, patience: 500 * ms, deadline: true}
	w.rate = func(now time.Duration) float64 {
		if now%(2*time.Second) < 50*ms {
			return 2000
		}
		return 80
	}
	w.from = 10 * time.Second
	w.run(1, 60*time.Second)
	got := float64(w.good) / float64(w.calls)
	t.Logf("%.3f of %d calls succeed, %.2f attempts each, p99 %v", got, w.calls, float64(w.sent)/float64(w.calls), percentile(w.took, 0.99))
	if got < 0.9 {
		t.Errorf("%.3f of the calls succeed", got)
	}
	if attempts := float64(w.sent) / float64(w.calls); attempts > 1.6 {
		t.Errorf("%.2f attempts a call", attempts)
	}
}

// A server that fails what it has no worker for, in half the time, looks faster the more is sent
// to it, if failures count.
func TestFastFailures(t *testing.T) {
	w := &world{c: limited(must.Have(New(Config{})), 8), workers: 4, service: constant(20 * ms), broken: 10 * ms, rate: always(600)}
	w.from = 20 * time.Second
	w.run(1, 60*time.Second)
	got := w.share(60*time.Second, 20*ms)
	limit := w.c.Snapshot(w.now).Limit
	t.Logf("%.3f of the capacity, limit %d", got, limit)
	if got < 0.9 || limit > 7 {
		t.Errorf("goodput is %.3f of the capacity, with a limit of %d", got, limit)
	}
}

// Under three times the capacity, one third of it each of three priorities: the first
// is served as far as its own fluctuations allow at four fifths of the capacity, the last
// is not.
func TestPrioritiesUnderOverload(t *testing.T) {
	w := &world{c: must.Have(New(Config{})), workers: 4, service: exponential(20 * ms), rate: always(480)}
	w.priority = func(r *rand.Rand) Priority { return Sheddable + Priority(r.IntN(3)) }
	w.from = 10 * time.Second
	w.run(1, 40*time.Second)
	part := func(p Priority) float64 {
		x := w.byPriority[p.index()]
		return float64(x.good) / float64(x.calls)
	}
	t.Logf("critical %.3f, sheddable-plus %.3f, sheddable %.3f", part(Critical), part(SheddablePlus), part(Sheddable))
	if part(Critical) < 0.85 || part(SheddablePlus) > 0.4 || part(Sheddable) > 0.1 {
		t.Errorf("critical %.3f, sheddable-plus %.3f, sheddable %.3f", part(Critical), part(SheddablePlus), part(Sheddable))
	}
}

// When a limit that is half as high again achieves nothing, the old one returns.
func TestTriesAreTakenBack(t *testing.T) {
	w := &world{c: must.Have(New(Config{})), workers: 20, service: constant(20 * ms), rate: always(3000)}
	w.run(1, time.Minute)
	steps := slices.Compact(w.limits[len(w.limits)/2:])
	tries := 0
	for i := 1; i+1 < len(steps); i++ {
		if steps[i]*10 >= steps[i-1]*14 {
			tries++
			if steps[i+1] != steps[i-1] {
				t.Errorf("limits %d", steps[i-1:i+2])
			}
		}
	}
	if tries == 0 {
		t.Errorf("nothing was tried: limits %d", steps)
	}
}

// A limit that is thirty times too high is halved until it fits: with the 128 requests
// that it begins with inside, the server takes 640 ms for each.
func TestTooHigh(t *testing.T) {
	w := &world{c: limited(must.Have(New(Config{})), 128), workers: 4, service: exponential(20 * ms), rate: always(600)}
	var fits time.Duration
	for at := time.Duration(0); at < time.Minute; at += 100 * ms {
		w.at(at, func() {
			if fits == 0 && w.c.knee.limit <= 8 {
				fits = at
			}
		})
	}
	w.run(1, time.Minute)
	t.Logf("the limit fits after %v", fits)
	if fits == 0 || fits > 40*time.Second {
		t.Errorf("the limit fits after %v", fits)
	}
}

// A server that can bear the load is left alone, at a tenth of its capacity as at nine
// tenths: from a few seconds after its start on hardly anything is refused. The limit does not change, and
// nothing is compared, while fewer are in flight.
func TestNoOverloadNoRefusals(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not short: statistics on one goroutine")
	}
	for _, load := range []float64{0.1, 0.2, 0.5, 0.8, 0.9} {
		for seed := range uint64(min(seed.Runs(1), 3)) {
			w := &world{c: must.Have(New(Config{})), workers: 100, service: exponential(100 * ms), rate: always(1000 * load)}
			w.from = 10 * time.Second
			w.run(1+seed, 2*time.Minute)
			if share := float64(w.good) / float64(w.calls); share < 0.995 { // some are not over at the end
				t.Errorf("load %v, seed %d: %.4f of %d calls succeed, limit %d", load, seed, share, w.calls, w.c.Snapshot(w.now).Limit)
			}
			if least := slices.Min(w.limits); load <= 0.2 && least < 8 {
				t.Errorf("load %v, seed %d: the limit fell to %d", load, seed, least)
			}
		}
	}
}
