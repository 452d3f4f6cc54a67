package estimate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lullgo/lull/lab/scenario"
)

func logNormal(mean, sigma float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return mean * math.Exp(sigma*r.NormFloat64()-sigma*sigma/2) }
}

func TestDraft(t *testing.T) {
	for _, m := range []made{
		{seed: 1, length: 120, most: 100, work: logNormal(0.02, 0.5), errors: 0.01, after: 0.005},
		{seed: 2, length: 180, most: 200, work: logNormal(0.05, 0.5), workers: 14, timeout: 1, stall: [2]float64{60.3, 70.3}},
		{seed: 3, length: 180, most: 200, work: logNormal(0.05, 0.5), workers: 14, timeout: 1, retries: 2, stall: [2]float64{60.3, 70.3}},
		{seed: 4, length: 180, most: 200, work: logNormal(0.05, 0.5), workers: 14, stall: [2]float64{60.3, 64.3}},
		{seed: 5, length: 180, most: 200, work: logNormal(0.05, 0.5), erring: [2]float64{60.3, 90}, erringBy: 0.3},
		{seed: 6, length: 180, most: 200, work: logNormal(0.05, 0.5), slowing: [2]float64{60.3, 90}, slowBy: 4},
		{seed: 7, length: 180, most: 200, work: logNormal(0.05, 0.5), workers: 14, brown: [2]float64{60.3, 90}, brownBy: 0.5},
		{seed: 8, length: 180, most: 200, work: logNormal(0.05, 0.5), down: [2]float64{60.3, 90}},
		{seed: 9, length: 180, most: 600, rate: func(at float64) float64 {
			if at > 60 && at < 80 {
				return 600
			}
			return 200
		}, work: logNormal(0.05, 0.5), workers: 20},
	} {
		w, err := Make(m.fly())
		if err != nil {
			t.Fatal(err)
		}
		w.Learned.Observed = scenario.Observed{}
		text, err := scenario.FormatLearned(w.Scenario, w.Learned)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := scenario.ParseLearned("f", text); err != nil {
			t.Error(err)
		}
		fmt.Printf("---- %d\n%s\n%s\n%s\n%v\n", m.seed, w.Normal, w.Happened, w.Unknown, w.Problems)
		for _, v := range w.Learned.Values {
			fmt.Printf("  %s: %s to %s (%s)\n", v.Path, v.Low, v.High, v.By)
		}
		for _, v := range w.Learned.Seen {
			fmt.Printf("  %s: %s to %s (%s)\n", v.What, v.Low, v.High, v.By)
		}
	}
}
