package replay

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
)

// curve is a figure of twelve steps: the value before, that of the four steps of the incident, and that after it.
func curve(before, during, after float64) []float64 {
	return slices.Concat(slices.Repeat([]float64{before}, 4), slices.Repeat([]float64{during}, 4), slices.Repeat([]float64{after}, 4))
}

var nan = math.NaN()

func near(t *testing.T, got, want float64, what string) {
	t.Helper()
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// judged returns the distance of a figure, with a rate of 10 in each step.
func judged(figure int, observed []float64, flown ...[]float64) distance {
	parts := []part{{"before", 0, 4}, {"incident", 4, 8}, {"after", 8, 12}}
	var seen course
	all := make([]flight, len(flown))
	for k := range seen {
		seen[k] = curve(10, 10, 10)
	}
	seen[failed] = curve(0, 0.5, 0)
	seen[figure] = observed
	for i := range all {
		all[i].course = seen
		all[i].course[figure] = flown[i]
	}
	return newJudge(seen, true, time.Second, all, parts).of(figure, all)
}

// The distance is the sum of the differences, of the sum of what is larger, in the part where that is largest.
func TestDistance(t *testing.T) {
	for _, c := range []struct {
		name               string
		figure             int
		observed, simulate []float64
		want               float64
		part               string
	}{
		{"alike", attempts, curve(10, 40, 10), curve(10, 40, 10), 0, "before"},
		{"twice as much", attempts, curve(10, 40, 10), curve(10, 80, 10), 0.5, "incident"},
		{"half as much", attempts, curve(10, 40, 10), curve(10, 20, 10), 0.5, "incident"},
		{"more before", attempts, curve(10, 40, 10), curve(16, 40, 10), 6. / 16, "before"},
		{"nothing in common", attempts, curve(10, 40, 10), curve(10, 40, 0), 1, "after"},
		{"failures", failed, curve(0, 1, 0), curve(0, 0.4, 0), 0.6, "incident"},
		{"few failures, of which there are twice as many", failed, curve(0.001, 1, 0.001), curve(0.002, 1, 0.001), 0.001 / 0.05, "before"},
		{"times", p99, curve(1, 4, 1), curve(1, 3, 1), 0.25, "incident"},
		{"what was not measured", p99, curve(1, nan, 1), curve(1, 3, 1), 0, "before"},
		{"what does not happen in the simulation", p99, curve(1, 3, 1), curve(1, nan, 1), 0, "before"},
	} {
		d := judged(c.figure, c.observed, c.simulate)
		near(t, d.Distance, c.want, c.name)
		check.Equal(t, d.Part, c.part, "%s: the part", c.name)
	}
	d := judged(attempts, curve(10, 40, 10), curve(10, 80, 10))
	if d.From != 4*time.Second || d.To != 8*time.Second || d.Seen != 40 || d.Flown != 80 {
		t.Errorf("furthest off from %v to %v, observed %v and simulated %v: want 4s to 8s, 40 and 80", d.From, d.To, d.Seen, d.Flown)
	}
	if d := judged(p50, curve(nan, nan, nan), curve(1, 1, 1)); d.Distance >= 0 {
		t.Errorf("a figure that was not measured has the distance %v", d.Distance)
	}
}

// A time counts as often as there are requests that took it: where half of them fail, half as often.
func TestDistanceWeighsTimes(t *testing.T) {
	whole := func(failures float64) distance {
		seen := course{arrivals: curve(10, 10, 10), attempts: curve(10, 20, 10), failed: curve(0, failures, 0), p50: curve(1, 1, 1), p99: curve(1, 4, 1)}
		f := flight{course: course{attempts: curve(10, 10, 10), failed: curve(0, 0, 0), p50: curve(1, 1, 1), p99: curve(1, 2, 1), arrivals: curve(10, 10, 10)}}
		return newJudge(seen, false, time.Second, []flight{f}, []part{{"all", 0, 12}}).of(p99, []flight{f})
	}
	near(t, whole(0).Distance, 20.*4*2/(80+20*4*4), "without failures")
	near(t, whole(0.5).Distance, 10.*4*2/(80+10*4*4), "where half fail")
}

// What comes a step earlier or later is as near as the measurements can tell; two steps are not.
func TestDistanceForgivesOneStep(t *testing.T) {
	at := func(i int) []float64 { return slices.Replace(curve(0, 0, 0), i, i+1, 100) }
	for i, want := range map[int]float64{4: 1, 5: 0, 6: 0, 7: 0} {
		if d := judged(attempts, at(6), at(i)); d.Distance != want {
			t.Errorf("a peak in step %d instead of 6: %v, want %v", i, d.Distance, want)
		}
	}
}

// Seeds that differ among each other as much as from what was observed are no distance, and a difference that lasts is one,
// however much single steps differ.
func TestDistanceTakesChanceOut(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	noisy := func(mean float64) []float64 {
		values := slices.Repeat(curve(mean, mean, mean), 10)
		for i := range values {
			values[i] *= 0.5 + random.Float64()
		}
		return values
	}
	parts := []part{{"incident", 0, 120}}
	seen := course{noisy(10), noisy(10), noisy(10), noisy(10), noisy(10)}
	far := func(mean float64) distance {
		all := make([]flight, 8)
		for i := range all {
			for k := range figures {
				all[i].course[k] = noisy(mean)
			}
		}
		return newJudge(seen, true, time.Second, all, parts).of(attempts, all)
	}
	if same := far(10); same.Distance > 0.05 {
		t.Errorf("a perfect model has the distance %v", same.Distance)
	}
	more := far(15)
	if math.Abs(more.Distance-1./3) > 0.05 {
		t.Errorf("half as much again has the distance %v, want a third", more.Distance)
	}
	if more.Low > more.Distance || more.High < more.Distance {
		t.Errorf("%v is not between %v and %v", more.Distance, more.Low, more.High)
	}
}

func TestBack(t *testing.T) {
	failures := []float64{0.01, 0.01, 0.5, 1, 0.5, 0.2, 0.05, 0.07, 0.01}
	check.Equal(t, back(failures, 2, 4), 8, "after the last step with 5 %% more failures than before")
	check.Equal(t, back(failures[:7], 2, 4), 6, "5 %% in all are no more")
	check.Equal(t, back(failures[:4], 2, 4), 4, "nothing comes after it")
	check.Equal(t, back([]float64{nan, nan, 1, nan, nan}, 2, 3), 3, "nothing is known")
}
