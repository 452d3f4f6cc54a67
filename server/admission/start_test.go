package admission

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

const unbounded = math.MaxInt

// services are the times of handlers that a start is tried with.
func services(mean time.Duration) map[string]func(*rand.Rand) time.Duration {
	return map[string]func(*rand.Rand) time.Duration{
		"constant": constant(mean), "exponential": exponential(mean), "lognormal": lognormal(mean, 1),
		"half cached": func(r *rand.Rand) time.Duration {
			if r.IntN(2) == 0 {
				return ms
			}
			return time.Duration(2 * r.ExpFloat64() * float64(mean))
		},
	}
}

// A server that works on any number of requests at once has no overload, however long its
// handlers take. Nothing is refused, from the first second on.
func TestIdleServerRefusesNothing(t *testing.T) {
	t.Parallel()
	for _, mean := range []time.Duration{ms, 10 * ms, 300 * ms, time.Second, 10 * time.Second} {
		for name, service := range services(mean) {
			for _, rate := range []float64{60, 300} {
				w := &world{c: must.Have(New(Config{})), workers: unbounded, service: service, rate: always(rate)}
				w.run(1, 60*time.Second)
				if n := refused(w); n > 0 {
					t.Errorf("handlers of %v (%s), %v/s: %d of %d refused", mean, name, rate, n, w.calls)
				}
			}
		}
	}
}

func refused(w *world) (n uint64) {
	s := w.c.Snapshot(w.now)
	for r := range RefusalReason(reasons) {
		n += s.Refused(r)
	}
	return n
}

// A thousand at once are no evidence of overload either.
func TestBurstAtTheStart(t *testing.T) {
	for _, mean := range []time.Duration{ms, 300 * ms, 10 * time.Second} {
		w := &world{c: must.Have(New(Config{})), workers: unbounded, service: constant(mean), rate: always(60)}
		w.at(0, func() {
			for range 1000 {
				w.send(&call{})
			}
		})
		w.run(1, 30*time.Second)
		if n := refused(w); n > 0 {
			t.Errorf("handlers of %v: %d refused", mean, n)
		}
	}
}

// A dependency that takes five times as long holds more requests. Nothing queues.
func TestSlowDependencyIsNoOverload(t *testing.T) {
	t.Parallel()
	for _, mean := range []time.Duration{10 * ms, 100 * ms, 500 * ms} {
		for name, service := range services(mean) {
			for _, rate := range []float64{60, 300} {
				for n := range uint64(seed.Runs(3)) {
					w := &world{c: must.Have(New(Config{})), workers: unbounded, service: service, rate: always(rate)}
					w.slow = func(now time.Duration) float64 {
						if now >= 20*time.Second {
							return 5
						}
						return 1
					}
					w.run(n, 50*time.Second)
					if got := refused(w); got > 0 {
						t.Errorf("handlers of %v (%s), %v/s, seed %d: %d of %d refused", mean, name, rate, n, got, w.calls)
					}
				}
			}
		}
	}
}

// An overload from the first second on, in worlds drawn by seed: after ten seconds, or a hundred times
// of a request, the goodput is near the capacity, and times are bounded. Callers wait for ten times of a
// request, half a second at least, and do not send that.
func TestColdStartUnderOverload(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not short: statistics on one goroutine")
	}
	for n := range uint64(seed.Runs(5)) {
		rng := rand.New(rand.NewPCG(n, 3))
		workers := 16 << rng.IntN(5)
		mean := time.Duration(10<<rng.IntN(6)) * ms
		load := 1.3 + 2.7*rng.Float64()
		cached := max(0, rng.Float64()-0.5)
		kinds := services(mean)
		names := slices.Sorted(maps.Keys(kinds))
		name := names[rng.IntN(len(names))]
		can := float64(workers) / mean.Seconds()
		from := max(10*time.Second, 100*mean)
		w := &world{c: must.Have(New(Config{})), workers: workers, service: kinds[name], cached: cached,
			rate: always(load * can / (1 - cached)), patience: max(10*mean, 500*ms)}
		w.from = from
		w.run(n, from+20*time.Second)
		got := float64(w.good) / 20 / (can / (1 - cached))
		p99 := percentile(w.took, 0.99)
		t.Logf("seed %d, %d workers of %v (%s), %.2f cached, load %.1f: %.3f of the capacity, p99 %v, limit %d",
			n, workers, mean, name, cached, load, got, p99, w.c.Snapshot(w.now).Limit)
		if got < 0.8 {
			t.Errorf("seed %d: goodput is %.3f of the capacity", n, got)
		}
	}
}
