package scenario

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

// uncertain is a world with faults, and an interval of each kind of value.
func uncertain() (sim.Scenario, *Learned) {
	s := sim.Scenario{
		Horizon: time.Minute,
		Services: []sim.Service{{Name: "api", Workers: 20, Errors: 0.01, Time: sim.Distribution{Mean: 20 * time.Millisecond},
			Faults: []sim.Fault{{Kind: sim.Stall, At: 20 * time.Second, For: 5 * time.Second}}}},
		Fleets: []sim.Fleet{{Calls: "api", Arrivals: sim.Arrivals{Rate: 100}}},
	}
	return s, &Learned{Values: []Interval{
		{Path: "services.0.workers", Low: "10", High: "40"},
		{Path: "services.api.errors", Low: "0.5%", High: "2%"},
		{Path: "services.0.faults.0.at", Low: "19s", High: "21s"},
		{Path: "services.0.faults.0.for", Low: "0", High: "10s"},
		{Path: "fleets.0.arrivals.rate", Low: "99.5", High: "1.2k"},
		{Path: "services.0.time", By: "a histogram"},
		{Path: "fleets.0.processes", Low: "3", High: "3"},
	}}
}

// Of n draws each n-th part of an interval has one: of the logarithms if both ends are positive.
func TestDraws(t *testing.T) {
	s, l := uncertain()
	before, _ := uncertain()
	const n = 40
	draws := must.Have(l.Draws(s, n, 7))
	check.Equal(t, len(draws), n, "draws")
	for name, c := range map[string]struct {
		of        func(sim.Scenario) float64
		low, high float64
		log       bool
	}{
		"errors": {func(s sim.Scenario) float64 { return s.Services[0].Errors }, 0.005, 0.02, true},
		"at":     {func(s sim.Scenario) float64 { return s.Services[0].Faults[0].At.Seconds() }, 19, 21, true},
		"for":    {func(s sim.Scenario) float64 { return s.Services[0].Faults[0].For.Seconds() }, 0, 10, false},
		"rate":   {func(s sim.Scenario) float64 { return s.Fleets[0].Arrivals.Rate }, 99.5, 1200, true},
	} {
		var parts []int
		for _, d := range draws {
			at := (c.of(d.Scenario) - c.low) / (c.high - c.low)
			if c.log {
				at = math.Log(c.of(d.Scenario)/c.low) / math.Log(c.high/c.low)
			}
			parts = append(parts, int(math.Floor(n*at)))
		}
		slices.Sort(parts)
		for i, part := range parts {
			if part != i {
				t.Errorf("%s: the draws are in the parts %v, want each once", name, parts)
				break
			}
		}
	}
	least, most := 99, 0
	for _, d := range draws {
		w := d.Scenario.Services[0].Workers
		least, most = min(least, w), max(most, w)
		if d.Scenario.Fleets[0].Processes != 0 || d.Scenario.Services[0].Time.Mean != before.Services[0].Time.Mean || len(d.Values) != 5 {
			t.Errorf("a draw changes more than what is uncertain: %v", d.Values)
		}
		again := s
		for _, v := range d.Values {
			must.Succeed(Set(&again, v))
		}
		if !reflect.DeepEqual(again, d.Scenario) {
			t.Errorf("%v give another scenario than the draw has", d.Values)
		}
	}
	if least != 10 || most != 40 && most != 39 {
		t.Errorf("from %d to %d workers, want 10 to about 40", least, most)
	}
	if !reflect.DeepEqual(s, before) {
		t.Error("Draws changes the scenario that it draws from")
	}
	if again := must.Have(l.Draws(s, n, 7)); !reflect.DeepEqual(again, draws) {
		t.Error("the same seed gives other draws")
	}
}

// What is at least something is that in a third of the draws, up to ten times that in another, and stays in the last.
func TestDrawsOfWhatIsNotKnown(t *testing.T) {
	s, _ := uncertain()
	s.Services[0].Queue.Limit = 5000
	l := &Learned{Unknown: []Question{{Path: "services.0.queue.limit", Least: "100"}, {Path: "services.0.workers"}, {Path: "services.0.refusal_time", Least: "2h"}}}
	var limits []int
	for _, d := range must.Have(l.Draws(s, 30, 1)) {
		if limit := d.Scenario.Services[0].Queue.Limit; len(d.Values) != 1 && limit != 5000 {
			t.Errorf("%v is drawn, want the queue alone", d.Values)
		} else {
			limits = append(limits, limit)
		}
	}
	slices.Sort(limits)
	if limits[0] != 100 || limits[9] != 100 || limits[10] == 100 || limits[10] > 126 || limits[19] < 790 || limits[19] > 1000 || limits[20] != 5000 {
		t.Errorf("queues of %v, want 100, then up to 1000 on a logarithmic scale, then 5000, ten of each", limits)
	}
}

func TestDrawsOfNothing(t *testing.T) {
	s, _ := uncertain()
	for _, d := range must.Have((&Learned{}).Draws(s, 3, 1)) {
		if d.Values != nil || !reflect.DeepEqual(d.Scenario, s) {
			t.Errorf("a draw without intervals has %v", d.Values)
		}
	}
}

func TestDrawsReportWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		v    Interval
		want string
	}{
		{Interval{Path: "services.0.workers", Low: "few", High: "40"}, `learned.values: services.0.workers is "few": want a number, a share or a duration such as 1200, 0.9% or 95ms`},
		{Interval{Path: "services.0.workers", Low: "40", High: "10"}, `learned.values: services.0.workers is "40" to "10": want the lower value first`},
		{Interval{Path: "services.0.wrkers", Low: "10", High: "20"}, `services.0.wrkers is unknown`},
		{Interval{Path: "services.0.faults.0.at", Low: "50s", High: "2m"}, `learned.values: with services.0.faults.0.at=`},
	} {
		s, _ := uncertain()
		if _, err := (&Learned{Values: []Interval{c.v}}).Draws(s, 20, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.v, err, c.want)
		}
	}
}

// What is observed of a flight is what its series have; of attempts it is what each attempt came to.
func TestSimulate(t *testing.T) {
	s, _ := uncertain()
	s.Services[0].Errors = 0.1
	s.Fleets[0].AttemptTimeout = time.Second
	c := sim.Contender{Name: "lull"}
	ofCalls := Observed{Step: time.Second, Calls: []float64{-1, 0}}
	r, seen, err := ofCalls.Simulate(t.Context(), s, c, sim.Options{Seed: 1})
	must.Succeed(err)
	calls := seen[0]
	check.Equal(t, len(seen), 1, "views of calls")
	check.Equal(t, len(calls.Calls), 60, "steps")
	check.Equal(t, calls.Calls[3], r.Series.Calls[3], "calls")
	check.Equal(t, calls.Attempts[3], r.Series.First[3]+r.Series.Retries[3], "attempts")
	check.Equal(t, calls.P50[3], r.Series.P50[3].Seconds(), "p50")
	ofAttempts := Observed{Step: time.Second, Calls: []float64{-1, -1}}
	_, seen, err = ofAttempts.Simulate(t.Context(), s, c, sim.Options{Seed: 1})
	must.Succeed(err)
	attempts, served := seen[0], seen[1]
	mean := func(values []float64, from, to int) (sum float64) {
		for _, v := range values[from:to] {
			sum += v / float64(to-from)
		}
		return sum
	}
	if lost, ended := mean(calls.Failed, 0, 20), mean(attempts.Failed, 0, 20); lost > 0.01 || math.Abs(ended-0.1) > 0.02 {
		t.Errorf("%v of the calls and %v of the attempts fail, want less than 1 %% and 10 %%", lost, ended)
	}
	for _, o := range []Observed{calls, attempts} {
		if o.Failed[22] != 1 || o.P50[22] != -1 || o.P99[22] != -1 || math.Abs(o.P50[3]-0.02) > 0.001 {
			t.Errorf("while it stands still %v fail after %v, and before it takes %v", o.Failed[22], o.P50[22], o.P50[3])
		}
	}
	// The service answers those that came before and in the stall: when it is over, after up to 5 s.
	if served.Failed[25] > 0.5 || served.P99[25] < 4 || attempts.P99[25] > 1 {
		t.Errorf("after the stall %v fail at the service, after up to %v s; the callers wait for %v s", served.Failed[25], served.P99[25], attempts.P99[25])
	}
}

func TestWatched(t *testing.T) {
	s, _ := uncertain()
	check.Equal(t, len(Watched(s).Fleets), 1, "fleets of one")
	s.Services = append(s.Services, sim.Service{Name: "other"})
	s.Fleets = append(s.Fleets, sim.Fleet{Calls: "other"})
	if w := Watched(s); len(w.Fleets) != 1 || len(w.Services) != 1 || len(s.Fleets) != 2 {
		t.Errorf("of two services %+v is watched", w)
	}
	s.Services[0].Calls = []sim.Hop{{Service: "other"}}
	check.Equal(t, len(Watched(s).Fleets), 2, "fleets of services that call each other")
}

// Whatever an interval says, there are as many valid draws as were asked for, or an error.
func FuzzDraws(f *testing.F) {
	_, l := uncertain()
	for _, v := range l.Values {
		f.Add(v.Path, v.Low, v.High)
	}
	f.Add("services.0.errors", "1e400", "-0")
	f.Add("horizon", "1ns", "290y")
	f.Fuzz(func(t *testing.T, path, low, high string) {
		s, _ := uncertain()
		draws, err := (&Learned{Values: []Interval{{Path: path, Low: low, High: high}}, Unknown: []Question{{Path: path, Least: low}}}).Draws(s, 5, 1)
		if err == nil && len(draws) != 5 || err != nil && draws != nil {
			t.Errorf("%d draws, %v", len(draws), err)
		}
		for _, d := range draws {
			must.Succeed(d.Scenario.Validate())
		}
	})
}
