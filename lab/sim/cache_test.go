package sim

import (
	"math"
	"testing"
	"time"
)

// cached is a service that asks a database for what its cache does not have.
func cached(c Cache, rate float64) Scenario {
	return Scenario{
		Horizon: time.Minute, Step: time.Second,
		Services: []Service{
			{Name: "web", Workers: 1000, Calls: []Hop{{Service: "db", Policy: "none", Cache: c}}},
			{Name: "db", Time: fixed(10 * millisecond)},
		},
		Fleets: []Fleet{{Calls: "web", Arrivals: Arrivals{Rate: rate}}},
	}
}

func TestWarmCacheHasEverything(t *testing.T) {
	r := play(t, cached(Cache{Keys: 100}, 100), once())
	want(t, "misses", r.Totals.Misses, 0)
	want(t, "hits", r.Totals.Hits, r.Totals.Calls)
	want(t, "the database does nothing", r.Latency.Max, 0)
}

// Each of 100 keys is asked for once until it is there, and by those who ask meanwhile.
func TestHitRatioHasToBeEarned(t *testing.T) {
	s := cached(Cache{Keys: 100}, 50)
	s.Services[0].Faults = []Fault{{Kind: Flush, At: 20 * time.Second, For: 5 * time.Second}}
	r := play(t, s, once())
	// 5 s at 50 a second find nothing, and then 100 keys have to come back.
	if got, want := r.Totals.Misses, int64(5*50+100); math.Abs(float64(got-want)) > 50 {
		t.Errorf("%d misses, want about %d", got, want)
	}
	cold := s.Services[0].Calls[0].Cache
	cold.Cold = true
	s = cached(cold, 50)
	r = play(t, s, once())
	if got := r.Totals.Misses; got < 100 || got > 110 {
		t.Errorf("a cold cache of 100 keys: %d misses", got)
	}
}

// With a time to live T and a rate of r for each key, a miss begins a period of T, after which the
// next request is a miss: the hit ratio is rT / (1 + rT).
func TestTimeToLive(t *testing.T) {
	s := cached(Cache{Keys: 50, For: 4 * time.Second}, 50)
	s.Horizon, s.Warmup = 20*time.Minute, time.Minute
	s.Services[1].Time = fixed(0)
	r := play(t, s, once())
	ratio := float64(r.Totals.Hits) / float64(r.Totals.Hits+r.Totals.Misses)
	if want := 4.0 / 5; math.Abs(ratio-want) > 0.01 {
		t.Errorf("a hit ratio of %.3f, want %.3f", ratio, want)
	}
}

// Of 1000 keys that are asked for alike 300 fit.
func TestCacheSize(t *testing.T) {
	s := cached(Cache{Keys: 1000, Size: 300}, 100)
	s.Horizon, s.Warmup = 10*time.Minute, time.Minute
	r := play(t, s, once())
	ratio := float64(r.Totals.Hits) / float64(r.Totals.Hits+r.Totals.Misses)
	if math.Abs(ratio-0.3) > 0.02 {
		t.Errorf("a hit ratio of %.3f, want 0.3", ratio)
	}
}

// The nth key is asked for about n^-skew as often as the first.
func TestPopularity(t *testing.T) {
	for _, skew := range []float64{0.5, 1, 1.5} {
		c := newCache(&Cache{Keys: 1000, Skew: skew})
		counts := make([]float64, 1000)
		const n = 200_000
		for i := range uint64(n) {
			counts[c.key(&job{key: i}, 0)]++
		}
		var sum float64 // of the integral that stands for each
		weights := make([]float64, 1000)
		for k := range weights {
			a, b := float64(k+1), float64(k+2)
			if skew == 1 {
				weights[k] = math.Log(b / a)
			} else {
				weights[k] = (math.Pow(b, 1-skew) - math.Pow(a, 1-skew)) / (1 - skew)
			}
			sum += weights[k]
		}
		for _, k := range []int{0, 1, 9, 99} {
			want := n * weights[k] / sum
			if math.Abs(counts[k]-want) > 5*math.Sqrt(want) {
				t.Errorf("skew %v: key %d was asked for %.0f times, want about %.0f", skew, k, counts[k], want)
			}
		}
	}
}

// A failed call stores nothing.
func TestFailuresAreNotStored(t *testing.T) {
	s := cached(Cache{Keys: 10, Cold: true}, 50)
	s.Services[1].Errors = 1
	r := play(t, s, once())
	want(t, "hits", r.Totals.Hits, 0)
}

// Half of what is there gets lost.
func TestPartialFlush(t *testing.T) {
	s := cached(Cache{Keys: 1000}, 2000)
	s.Services[0].Faults = []Fault{{Kind: Flush, At: 20 * time.Second, For: millisecond, Share: 0.5}}
	r := play(t, s, once())
	if got := r.Totals.Misses; got < 450 || got > 560 {
		t.Errorf("%d misses after half of 1000 keys are gone", got)
	}
}
