package sim

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/problem"
)

// stallOf is the service of the built-in scenario metastable-stall, a tenth as large.
func stallOf() Scenario {
	return Scenario{
		Horizon: 150 * time.Second,
		Services: []Service{{
			Name: "api", Workers: 10, Queue: Queue{Limit: 1000}, Time: Distribution{Kind: Exponential, Mean: 100 * millisecond},
			Faults: []Fault{{Kind: Stall, At: 20 * time.Second, For: 10 * time.Second}},
		}},
		Fleets: []Fleet{{Calls: "api", Processes: 100, Arrivals: Arrivals{Rate: 80}, AttemptTimeout: time.Second}},
	}
}

// Without retries the boundary is that of theory, (W + T) / (W + D) of the capacity for an outage of
// D that is not longer than the queue, a step of the grid more or less. With four attempts it is a
// quarter of the capacity from an outage of a few timeouts on, and help is of use.
func TestBoundaryIsThatOfTheory(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: some hundred runs")
	}
	s := stallOf()
	o := StabilityOptions{Outages: []time.Duration{500 * millisecond, 10 * time.Second, 40 * time.Second}, Watch: 100 * time.Second, Seed: 1}
	none := must.Have(FindStability(t.Context(), s, None(), o))
	if want := []int{19, 18, 18}; !slices.Equal(none.Theory, want) { // 0.92 of 10 s; 40 s fill the queue
		t.Errorf("theory %v, want %v", none.Theory, want)
	}
	for i := range none.Back {
		if d := none.Back[i] - none.Theory[i]; d < -1 || d > 1 {
			t.Errorf("no retries, %v: %d, by theory %d", o.Outages[i], none.Back[i], none.Theory[i])
		}
	}
	four := must.Have(FindStability(t.Context(), s, Contender{Name: "four", Policy: retrying(4, 0)}, o))
	if four.Back[0] < 15 || four.Back[1] < 3 || four.Back[1] > 6 || four.Back[2] > four.Back[1] {
		t.Errorf("four attempts: back %v", four.Back)
	}
	for i := range four.Helped {
		if four.Helped[i] < 15 || four.Helped[i] < four.Back[i] {
			t.Errorf("four attempts: back %v, with help %v", four.Back, four.Helped)
		}
	}
	// Every point of the grid, not only those that the bisection has looked at.
	f := must.Have(newFinder(s, None(), &o))
	for i, load := range o.Loads {
		if got, want := f.comesBack(t.Context(), load, o.Outages[1], false), i < none.Back[1]; got != want {
			t.Errorf("no retries, load %d of 20, an outage of 10 s: back is %v, and the map says %v", i+1, got, want)
		}
	}
}

// The bisection finds every boundary, from every hint, and looks at few points.
func TestBoundaryByBisection(t *testing.T) {
	f := &finder{o: &StabilityOptions{Loads: make([]float64, 20)}}
	for i := range f.o.Loads {
		f.o.Loads[i] = float64(i)
	}
	for want := range 21 {
		for hint := range 21 {
			for least := range want + 1 {
				looks := 0
				got := f.boundary(t.Context(), hint, least, func(l float64) bool { looks++; return l < float64(want) })
				if got != want || looks > 7 || hint == want && looks > 2 {
					t.Fatalf("boundary %d, hint %d, least %d: got %d after %d looks", want, hint, least, got, looks)
				}
			}
		}
	}
}

func TestNoMapOfThat(t *testing.T) {
	s := stallOf()
	s.Fleets[0].Arrivals = Arrivals{Kind: AtOnce}
	s.Services[0].Faults = nil
	_, err := FindStability(t.Context(), s, None(), StabilityOptions{})
	check.Slices(t, problem.Fields(err), []string{"Fleets", "Services.Faults"}, "%v", err)
	s = stallOf()
	s.Services[0].Faults[0].Every = 50 * time.Second
	if _, err = FindStability(t.Context(), s, None(), StabilityOptions{Loads: []float64{2, 1}}); err == nil {
		t.Error("no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = FindStability(ctx, stallOf(), None(), StabilityOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The outage of a row lasts as long as the row says, also if there are several faults: what is between them is stretched with them.
func TestTheOutageOfARowIsAsLongAsItSays(t *testing.T) {
	s := Scenario{Horizon: time.Minute, Services: []Service{{Name: "api", Faults: []Fault{{At: 10 * time.Second, For: 2 * time.Second}, {At: 18 * time.Second, For: 2 * time.Second}}}}}
	for _, stretch := range []float64{0.2, 1, 3} {
		longer := s.scaled(1, stretch)
		from, to := longer.Disturbance()
		if want := time.Duration(stretch * float64(10*time.Second)); from != 10*time.Second || to-from != want {
			t.Errorf("times %v: from %v to %v, want %v", stretch, from, to, want)
		}
	}
}
