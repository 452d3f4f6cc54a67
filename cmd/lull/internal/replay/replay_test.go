package replay

import (
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// replayed flies what the file says, s and p, where o was measured.
func replayed(t *testing.T, s sim.Scenario, p lull.Policy, o scenario.Observed, values ...scenario.Interval) *result {
	t.Helper()
	return must.Have(task{
		world: s, whole: s, learned: &scenario.Learned{Observed: o, Values: values}, seeds: 6, seed: 1, tolerance: 0.2, enough: time.Hour,
		policies: []sim.Contender{{Name: "now", Policy: p}, {Name: "again", Policy: p}}[:1+min(len(values), 1)],
	}.replay(t.Context(), quiet()))
}

// A flight is near to another with a seed of its own, of calls and of attempts; a world that is not the one that was measured is
// far, and the output names what is off.
func TestReproduced(t *testing.T) {
	change := func(how func(v *sim.Service, f *sim.Fleet)) sim.Scenario {
		s := stalled()
		how(&s.Services[0], &s.Fleets[0])
		return s
	}
	once := now
	once.Attempts = 1
	for _, ofAttempts := range []bool{false, true} {
		o := observe(stalled(), now, 77, time.Second, ofAttempts)
		for _, c := range []struct {
			name string
			s    sim.Scenario
			p    lull.Policy
			off  string // figures of which one at least is off; none: reproduced
		}{
			{"the same", stalled(), now, ""},
			{"10 % more load", change(func(v *sim.Service, f *sim.Fleet) { f.Arrivals.Rate *= 1.1 }), now, "p50 p99"},
			{"a sixth of the workers less", change(func(v *sim.Service, f *sim.Fleet) { v.Workers = 15 }), now, "failed p50"},
			{"twice as many workers", change(func(v *sim.Service, f *sim.Fleet) { v.Workers = 36 }), now, "p50 p99"},
			{"an outage of half the length", change(func(v *sim.Service, f *sim.Fleet) { v.Faults[0].For /= 2 }), now, "failed p50"},
			{"an outage four seconds later", change(func(v *sim.Service, f *sim.Fleet) { v.Faults[0].At += 4 * time.Second }), now, "failed"},
			{"an outage a step later", change(func(v *sim.Service, f *sim.Fleet) { v.Faults[0].At += time.Second }), now, ""},
			{"a longer queue", change(func(v *sim.Service, f *sim.Fleet) { v.Queue.Limit *= 10 }), now, "failed p50"},
			{"no retries", stalled(), once, "attempts"},
		} {
			r := replayed(t, c.s, c.p, o)
			var off []string
			for _, d := range r.Distances {
				if d.Distance > r.Tolerance {
					off = append(off, d.Figure)
				}
			}
			named := slices.ContainsFunc(off, func(figure string) bool { return strings.Contains(c.off, figure) })
			switch {
			case c.off == "" && (off != nil || len(r.Policies) != 1):
				t.Errorf("of attempts: %v, %s: %s", ofAttempts, c.name, r.verdict())
			case c.off != "" && (!named || r.Policies != nil):
				t.Errorf("of attempts: %v, %s: off are %v, want one of %s", ofAttempts, c.name, off, c.off)
			case c.off != "" && !strings.Contains(r.verdict(), off[0]+" by 0."):
				t.Errorf("%s: the verdict does not name %s: %s", c.name, off[0], r.verdict())
			}
		}
	}
}

// What a service writes down is recognised: that many succeed late there, whose callers have gone.
func TestAtTheService(t *testing.T) {
	for view, want := range []bool{false, true} {
		r := replayed(t, stalled(), now, observe(stalled(), now, 77, time.Second, true, view))
		if r.AtService != want || !r.Reproduced {
			t.Errorf("view %d: at the service: %v; %s", view, r.AtService, r.verdict())
		}
	}
}

// Draws in which the policy that ran does not do what was observed are left out. If the values of the file are wrong, and some draws
// are near enough, these have the answers.
func TestDraws(t *testing.T) {
	o := observe(stalled(), now, 77, time.Second, false)
	workers := scenario.Interval{Path: "services.0.workers", Low: "12", High: "24"}
	r := replayed(t, stalled(), now, o, workers)
	if n := len(r.Draws); n == 0 || n > r.seeds || n >= r.Drawn {
		t.Errorf("%d of %d draws are kept, want some", n, r.Drawn)
	}
	for _, d := range r.Draws {
		if d[0] < "services.0.workers=16" {
			t.Errorf("a draw with %s is kept", d)
		}
	}
	for i, f := range r.Policies[0].Flights {
		if again := r.Policies[1].Flights[i]; again.Seed != f.Seed || !reflect.DeepEqual(again.Totals, f.Totals) {
			t.Errorf("draw %d: the same policy does something else", i)
		}
	}
	wrong := stalled()
	wrong.Services[0].Workers = 15
	r = replayed(t, wrong, now, o, workers)
	if !r.Reproduced || r.Policies == nil || !strings.Contains(r.FileOff, "not reproduced") || r.Draws[0][0] < "services.0.workers=18" {
		t.Errorf("with the file: %s; with draws: %s, %v", r.FileOff, r.verdict(), r.Draws)
	}
	r = replayed(t, wrong, now, o, scenario.Interval{Path: "services.0.workers", Low: "13", High: "16"})
	if r.Reproduced || r.Policies != nil {
		t.Errorf("no draw is near, and it is reproduced: %s", r.verdict())
	}
}

// A large world is made smaller, and flies as near to what was observed.
func TestLargeWorld(t *testing.T) {
	const times = 40
	s := stalled()
	f, v := &s.Fleets[0], &s.Services[0]
	f.Processes, f.Arrivals.Rate, v.Workers, v.Queue.Limit = f.Processes*times, f.Arrivals.Rate*times, v.Workers*times, v.Queue.Limit*times
	large := task{
		world: s, whole: s, learned: &scenario.Learned{Observed: observe(s, now, 77, time.Second, false)}, seeds: 4, seed: 1, tolerance: 0.2,
		policies: []sim.Contender{{Name: "now", Policy: now}}, enough: time.Second,
	}
	r := must.Have(large.replay(t.Context(), quiet()))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4 * runtime.GOMAXPROCS(0)))
	check.Equal(t, must.Have(large.replay(t.Context(), quiet())).Smaller, r.Smaller, "how much smaller, with four times as many processors")
	if r.Smaller < 4 || !r.Reproduced || !strings.Contains(r.flown(), "times smaller") {
		t.Errorf("%d times smaller: %s", r.Smaller, r.verdict())
	}
}

// A policy with an attempt timeout of its own has it.
func TestUnder(t *testing.T) {
	own := sim.Contender{Policy: lull.Policy{AttemptTimeout: 3 * time.Second}}
	check.Equal(t, under(stalled(), sim.Contender{}).Fleets[0].AttemptTimeout, time.Second, "a policy without")
	check.Equal(t, under(stalled(), own).Fleets[0].AttemptTimeout, 0, "a policy with a timeout")
	check.Equal(t, under(stalled(), sim.Contender{Policy: lull.Policy{AttemptTimeout: lull.NoTimeout}}).Fleets[0].AttemptTimeout, time.Second, "a client without timeouts")
}

// flew is an answer whose flights were back after so many seconds (below 0: never), with these shares of successes.
func flew(name string, back []float64, success ...float64) answer {
	a := answer{Name: name}
	for i, b := range back {
		f := flight{Recovery: sim.Recovery{Measured: true, Recovered: b >= 0, Time: seconds(max(b, 0)), Within: 2 * time.Second}, Back: b}
		if b < 0 {
			f.Back = math.Inf(1)
		}
		f.Totals.Succeeded = int64(1000 * success[i%len(success)])
		f.Totals.Reasons = map[string]int64{"success": f.Totals.Succeeded, "timeout": 1000 - f.Totals.Succeeded}
		f.Totals.Amplification, f.Held = 1.25, 14
		a.Flights = append(a.Flights, f)
	}
	return a
}

func TestPlaces(t *testing.T) {
	quick, slow := flew("quick", []float64{5, 5, 5, 5, 5, 5}, 0.9), flew("slow", []float64{9, 9, 9, 9, 9, -1}, 0.95)
	alike, good := flew("alike", []float64{6, 6, 6, 6, 6, 6}, 0.9), flew("good", []float64{6, 6, 6, 6, 6, 6}, 0.91)
	r := result{Policies: []answer{slow, alike, quick, good}}
	rank(r.Policies)
	for i, want := range []string{
		"good: surely better than alike. It is better in 6 of 6 flights, and worse in 0.",
		"alike: as good as quick in all 6 flights",
		"quick: surely better than slow. It is better in 6 of 6 flights, and worse in 0.",
		"slow",
	} {
		check.Equal(t, r.place(i), want, "place %d", i+1)
	}
	one := result{Policies: []answer{flew("one", []float64{5, 9, 5, 5}, 0.9), flew("other", []float64{5, 5, 9, 9}, 0.9)}}
	check.Equal(t, one.place(0), "one: perhaps better than other. It is better in 2 of 4 flights, and worse in 1.", "too few flights")
}

func TestRanges(t *testing.T) {
	for want, back := range map[string][]float64{"38 to 55 s": {38, 55, 40}, "5 s": {5, 5}, "900 ms to 1.2 s": {0.9, 1.2}, "5 to 6 s; never in 1 of 3": {5, -1, 6}, "never": {-1, -1}} {
		check.Equal(t, flew("", back, 0.9).cells()[0], want, "back after %v s", back)
	}
	check.Slices(t, flew("", []float64{5, 5}, 0.9, 0.95).cells(), []string{"5 s", "90.0% to 95.0%", "1.25", "14"}, "cells")
	check.Equal(t, answer{Flights: []flight{{}}}.cells()[0], "cannot be said", "without an end of the incident")
}
