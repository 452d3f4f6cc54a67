package main

import (
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// The median and the tail of each distribution are those of the simulator.
func TestQuantile(t *testing.T) {
	const ms = time.Millisecond
	for name, d := range map[string]sim.Distribution{
		"exponential": {Kind: sim.Exponential, Mean: 100 * ms},
		"lognormal":   {Kind: sim.LogNormal, Mean: 100 * ms, Sigma: 0.8},
		"bimodal":     {Kind: sim.Bimodal, Mean: 50 * ms, Slow: 0.1, SlowMean: 500 * ms},
		"gamma":       gamma(3, 100*ms),
	} {
		var above [2]float64
		n := 0.0
		s := sim.Scenario{Horizon: 100 * time.Second, Services: []sim.Service{{Name: "api", Time: d}}, Fleets: []sim.Fleet{{Calls: "api", Arrivals: sim.Arrivals{Rate: 1000}}}}
		_, err := sim.Run(t.Context(), s, sim.None(), sim.Options{Seed: 1, Attempt: func(a sim.AttemptEnd) {
			n++
			for i, q := range []float64{0.5, 0.99} {
				if a.Ended-a.Began > quantile(d, q) {
					above[i]++
				}
			}
		}})
		if err != nil || n < 90_000 {
			t.Fatal(name, err, n)
		}
		for i, want := range []float64{0.5, 0.01} {
			if got := above[i] / n; math.Abs(got-want) > 5*math.Sqrt(want/n) {
				t.Errorf("%s: %.4f take longer than the quantile, want %.4f", name, got, want)
			}
		}
	}
}

// The same seed gives the same world.
func TestWorldsAreDrawnBySeed(t *testing.T) {
	for seed := range uint64(20) {
		a, b := drawWorld(seed), drawWorld(seed)
		if err := a.scenario.Validate(); err != nil {
			t.Error(seed, err)
		}
		a.fly(t.Context())
		b.fly(t.Context())
		if len(a.attempts) == 0 || len(a.attempts) != len(b.attempts) || a.attempts[len(a.attempts)/2] != b.attempts[len(b.attempts)/2] {
			t.Errorf("seed %d: %d and %d attempts", seed, len(a.attempts), len(b.attempts))
		}
	}
}
