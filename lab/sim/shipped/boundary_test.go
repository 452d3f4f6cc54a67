package shipped

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lab/sim"
)

// The map of metastability (lull simulate --map) is compared with real clients and a real server. Five points of its
// boundary are chosen: a policy, and the length of an outage. At each the boundary is the number of loads at which
// everything comes back. The load below the last of these must come back with real clients too, and the load above the first
// that does not must not: then the two boundaries are within one step of the grid. What does not come back by
// itself runs once more with help. All is judged by sim.Scenario.Judge, the rule of the map.
//
// It runs in virtual time, over connections in memory: of two boundaries, and in the lab of all five. The servers' suite
// has the same on sockets and the real clock. On sockets the capacity of the server is a plan of when its workers are free.
// It takes no processor time; callers wait for ten times what the work takes; and the points are so far from the boundary
// that no seed is on the other side (TestBoundaryIsNoMatterOfChance).
var whole = flag.Bool("whole", false, "fly the loads at the boundary too, and print a table of what came back")

// long is set in the lab, where the tests fly more.
var long bool

const (
	boundaryPeace  = 3 * time.Second
	boundaryWatch  = 5 * time.Second
	boundaryRelief = 3 * time.Second
)

// standing is the service: five workers that do 100 calls a second, a queue of three seconds, callers who wait for half a
// second, and an outage.
func standing(outage time.Duration) sim.Scenario {
	return sim.Scenario{
		Horizon: boundaryPeace + outage + boundaryWatch, Step: 500 * ms, Window: 500 * ms,
		Services: []sim.Service{{
			Name: "service", Workers: 5, Queue: sim.Queue{Limit: 300}, Time: sim.Distribution{Kind: sim.Uniform, Min: 25 * ms, Max: 75 * ms},
			Faults: []sim.Fault{{Kind: sim.Stall, At: boundaryPeace, For: outage}},
		}},
		Fleets: []sim.Fleet{{Calls: "service", Processes: 4, Arrivals: sim.Arrivals{Kind: sim.Constant, Rate: 100}, AttemptTimeout: 500 * ms}},
	}
}

// helped has all callers stay away for a while, as the map does.
func helped(s sim.Scenario) sim.Scenario {
	f := &s.Services[0].Faults[0]
	from := f.At + f.For + boundaryWatch/2
	to := from + boundaryRelief
	s.Fleets = slices.Clone(s.Fleets)
	s.Fleets[0].Arrivals.Ramp = []sim.RampPoint{{At: from, Factor: 1}, {At: from, Factor: 0}, {At: to, Factor: 0}, {At: to, Factor: 1}}
	s.Horizon = to + boundaryWatch
	return s
}

// A boundary is a policy and an outage.
type boundary struct {
	contender sim.Contender
	outage    time.Duration
	wrong     sim.Contender // whose boundary is elsewhere
}

// boundaries returns all, or the two that are far from one another.
func boundaries(all bool) []boundary {
	policy := func(name string, p lull.Policy) sim.Contender {
		p.Attempts, p.Timeouts, p.Breaker = 4, lull.TimeoutsAlways, noBreaker
		return sim.Contender{Name: name, Policy: p}
	}
	none, zero := sim.None(), sim.Contender{Name: "lull"}
	four := policy("four attempts", lull.Policy{Budget: noBudget})
	ten := policy("four attempts, budget of 10 %", lull.Policy{Budget: budget.Config{Ratio: 0.1, Earn: budget.Arrivals}})
	if !all {
		return []boundary{{none, 1800 * ms, four}, {four, 1200 * ms, none}}
	}
	return []boundary{
		{none, 1800 * ms, four},
		{four, 600 * ms, none},
		{four, 1200 * ms, none},
		{ten, 1200 * ms, four},
		{zero, 1500 * ms, four},
	}
}

// boundaryLoads are the grid: tenths of the capacity.
func boundaryLoads() (loads []float64) {
	for i := 1; i <= 12; i++ {
		loads = append(loads, float64(i)/10)
	}
	return loads
}

// find returns the simulated boundaries of a contender: at how many loads it comes back, and with help.
func find(t *testing.T, c sim.Contender, outage time.Duration) (back, help int) {
	t.Helper()
	m := must.Have(sim.FindStability(t.Context(), standing(outage), c, sim.StabilityOptions{
		Loads: boundaryLoads(), Outages: []time.Duration{outage}, Watch: boundaryWatch, Relief: boundaryRelief, Seed: 1,
	}))
	return m.Back[0], m.Helped[0]
}

// The states of a place in the map.
const (
	comesBack  = "comes back"
	onlyHelped = "only with help"
	never      = "never"
)

func stateOf(load, back, help int) string {
	switch {
	case load < back:
		return comesBack
	case load < help:
		return onlyHelped
	}
	return never
}

// A place of the map: a boundary, and one of the loads.
type place struct {
	of   boundary
	load int
	want string // its state on the map
	edge bool   // the map's boundary is beside it: it may be either side
}

func (p place) String() string {
	return fmt.Sprintf("%s, an outage of %v, %.0f %% of the capacity", p.of.contender.Name, p.of.outage, 100*boundaryLoads()[p.load])
}

// places are those that are compared. In the last, help changes nothing.
func places(t *testing.T, of []boundary, edges bool) (all []place) {
	t.Helper()
	for i, b := range of {
		back, help := find(t, b.contender, b.outage)
		loads := []int{back - 2, back + 1}
		if edges {
			loads = []int{back - 2, back - 1, back, back + 1}
		}
		if i == 0 {
			loads = append(loads, help+1)
		}
		for _, l := range loads {
			if l < 0 || l >= len(boundaryLoads()) {
				t.Fatalf("%s, %v: the boundary %d has nothing on one side", b.contender.Name, b.outage, back)
			}
			all = append(all, place{b, l, stateOf(l, back, help), l == back-1 || l == back})
		}
	}
	return all
}

// scenario is that of a place, by itself or with help.
func (p place) scenario(help bool) sim.Scenario {
	s := standing(p.of.outage)
	s.Fleets[0].Arrivals.Rate *= boundaryLoads()[p.load]
	if help {
		s = helped(s)
	}
	return s
}

// state flies a place by itself and, if that may be needed, with help, side by side.
func (p place) state(fly func(s sim.Scenario, c sim.Contender) (back bool, err error)) (string, error) {
	var back [2]bool
	var errs [2]error
	var wg sync.WaitGroup
	for i := range back {
		if i == 0 || p.want != comesBack || p.edge {
			wg.Go(func() { back[i], errs[i] = fly(p.scenario(i == 1), p.of.contender) })
		}
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return "", err
		}
	}
	switch {
	case back[0]:
		return comesBack, nil
	case back[1]:
		return onlyHelped, nil
	}
	return never, nil
}

// A landing is the result of a run with real clients.
type landing struct {
	state string
	late  time.Duration // the longest that anything was late
	err   error
}

// land runs places with real clients, side by side.
func land(t *testing.T, w wire, ps []place, n uint64) []landing {
	all := make([]landing, len(ps))
	var wg sync.WaitGroup
	for i, p := range ps {
		wg.Go(func() {
			l := &all[i]
			var mu sync.Mutex // guards l.late
			l.state, l.err = p.state(func(s sim.Scenario, c sim.Contender) (bool, error) {
				c.Options = []lull.Option{lull.WithRand(seed.Source(t))}
				f := play(t.Context(), w, s, c, n+uint64(i))
				if f.err != nil {
					return false, f.err
				}
				mu.Lock()
				l.late = max(l.late, f.late)
				mu.Unlock()
				r, err := s.Judge(f.made)
				return r.Back(), err
			})
		})
	}
	wg.Wait()
	return all
}

// right reports whether a landing agrees with the map. It logs what became of it.
func (p place) right(t *testing.T, l landing) bool {
	t.Helper()
	if l.err != nil {
		t.Fatalf("%v: %v", p, l.err)
	}
	t.Logf("%v: %s, on the map %s; at most %v late", p, l.state, p.want, l.late.Round(ms))
	return l.state == p.want || p.edge
}

// The boundary of the map is, within a step of its grid, that of real clients and a real server.
func TestBoundaryInVirtualTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ps := places(t, boundaries(long), *whole)
		ls := land(t, inMemory, ps, 1)
		for i, p := range ps {
			if !p.right(t, ls[i]) {
				t.Errorf("%v: %s in earnest, and on the map %s", p, ls[i].state, p.want)
			}
		}
		table(t, ps, ls)
	})
}

// table prints the boundaries, if the loads beside them were flown.
func table(t *testing.T, ps []place, ls []landing) {
	t.Helper()
	if !*whole {
		return
	}
	percent := func(load int) string { return fmt.Sprintf("%.0f %%", 100*boundaryLoads()[load]) }
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "policy\toutage\tflown\tback, map\tback, in earnest\tlate")
	for i := 0; i < len(ps); {
		p, first, late := ps[i].of, ps[i], time.Duration(0)
		onMap, back, last := "nowhere", "nowhere", ""
		good := true
		for ; i < len(ps) && ps[i].of.contender.Name == p.contender.Name && ps[i].of.outage == p.outage; i++ {
			late, last = max(late, ls[i].late), percent(ps[i].load)
			if ps[i].want == comesBack {
				onMap = "to " + last
			}
			if good = good && ls[i].state == comesBack; good {
				back = "to " + last
			}
		}
		fmt.Fprintf(w, "%s\t%v\t%s to %s\t%s\t%s\t%v\n", p.contender.Name, p.outage, percent(first.load), last, onMap, back, late.Round(ms))
	}
	w.Flush()
	t.Logf("\n%s", b.String())
}

// With every seed each place is on its side of the boundary, and a policy that is not the one of the map is noticed.
func TestBoundaryIsNoMatterOfChance(t *testing.T) {
	t.Parallel()
	seeds := uint64(5)
	if long {
		seeds = 40
	}
	for _, p := range places(t, boundaries(long), false) {
		for seed := range seeds {
			got := must.Have(p.state(func(s sim.Scenario, c sim.Contender) (bool, error) {
				r, err := sim.Run(t.Context(), s, c, sim.Options{Seed: seed})
				return r.Recovery.Back(), err
			}))
			check.Equal(t, got, p.want, "%v with seed %d", p, seed)
		}
	}
	for _, b := range boundaries(long) {
		back, _ := find(t, b.contender, b.outage)
		wrong, _ := find(t, b.wrong, b.outage)
		if d := wrong - back; -1 <= d && d <= 1 {
			t.Errorf("%s, %v: the boundary is %d, and that of another policy %d: it would not be found out", b.contender.Name, b.outage, back, wrong)
		}
	}
}
