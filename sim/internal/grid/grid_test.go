package grid

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/sim"
)

var (
	whole   = flag.Bool("whole", false, "fly the whole grid")
	seeds   = flag.Int("seeds", 1, "flights of the zero Policy in each cell")
	only    = flag.String("rivals", "", "the presets to hold it against, with commas between; all of the whole grid, a few of the part of it")
	workers = flag.Int("workers", 0, "runs side by side; 0: GOMAXPROCS")
)
var zero = sim.Contender{Name: Zero, Policy: lull.Policy{}}

// part returns the cells that are flown unless -whole is given.
func part() []Cell {
	var all []Cell
	for _, n := range Fleets {
		for _, load := range []float64{0.2, 0.8, 0.95} {
			all = append(all, Cell{load, n, Stall, 10 * time.Second})
		}
		all = append(all,
			Cell{0.95, n, Stall, 800 * time.Millisecond},
			Cell{0.8, n, Stall, time.Second},
			Cell{0.8, n, BrownOut, 5 * time.Second},
			Cell{0.95, n, Spike, 2 * time.Second},
			Cell{0.9, n, Errors, 10 * time.Second},
		)
	}
	return all
}

func cells() []Cell {
	if *whole {
		return Cells(Loads, Fleets, Outages, slices.Concat(Lengths, Edges))
	}
	return part()
}

// rivals are the presets that are flown against the zero Policy.
func rivals(t *testing.T) []sim.Contender {
	all := Presets()
	names := []string{"none", "ratio-10", "token-bucket", "budget10+breaker5s", "breaker-5s", "aws-standard-2.1", "grpc"}
	switch {
	case *only != "":
		names = strings.Split(*only, ",")
	case *whole:
		return all
	}
	var few []sim.Contender
	for _, name := range names {
		i := slices.IndexFunc(all, func(c sim.Contender) bool { return c.Name == name })
		if i < 0 {
			t.Fatalf("no preset is called %s", name)
		}
		few = append(few, all[i])
	}
	return few
}

func TestGrid(t *testing.T) {
	if raced {
		t.Skip("hundreds of flights: too many under the race detector")
	}
	ctx, start := context.Background(), time.Now()
	cells := cells()
	ours := make([]Recovered, len(cells))
	t.Run("recovers", func(t *testing.T) {
		Each(len(cells), *workers, func(i int) { ours[i] = recovers(t, ctx, cells[i]) })
		t.Log(time.Since(start).Round(time.Second))
		byFleet(t, cells, ours)
	})
	t.Run("not dominated", func(t *testing.T) {
		notDominated(t, ctx, cells, ours)
		t.Log(time.Since(start).Round(time.Second))
	})
}

// recovers flies the zero Policy through a cell, and holds it to the demands. It
// returns what came of the first seed.
func recovers(t *testing.T, ctx context.Context, c Cell) (first Recovered) {
	limit := c.Limit(noRetry(t, ctx, c))
	for seed := 1; seed <= *seeds; seed++ {
		r, err := Fly(ctx, zero, c, uint64(seed))
		if err != nil {
			t.Error(err)
			return Recovered{}
		}
		got := Settled(&r)
		if seed == 1 {
			first = got
		}
		if !got.OK {
			t.Errorf("%v, seed %d: not recovered after %v: %.1f %% of calls succeed, %.1f %% before", c, seed, After, 100*r.Recovery.Final, 100*r.Recovery.Normal)
		} else if got.Time > limit {
			t.Errorf("%v, seed %d: recovered after %v, want within %v", c, seed, got.Time, limit)
		}
		if over, stock := WorstMinute(&r.Series, 1+budget.DefaultRatio), float64(budget.DefaultStock*c.Processes); over > stock+1e-6 {
			t.Errorf("%v, seed %d: in some minute %.0f attempts more than 1.1 times the calls, want at most %.0f", c, seed, over, stock)
		}
	}
	return first
}

// noRetry is how long a policy without retries takes, where it sets the limit.
func noRetry(t *testing.T, ctx context.Context, c Cell) time.Duration {
	if c.Processes <= 1000 {
		return 0
	}
	none, err := Preset("none")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Recovery(ctx, none, c, After, 1)
	if err != nil || !r.OK {
		t.Errorf("%v: no retries: %+v, %v", c, r, err)
	}
	return r.Time
}

// byFleet logs the longest times.
func byFleet(t *testing.T, cells []Cell, ours []Recovered) {
	for _, n := range Fleets {
		for _, load := range Loads {
			worst := -1
			for i, c := range cells {
				if c.Processes == n && c.Load == load && (worst < 0 || ours[i].Time > ours[worst].Time) {
					worst = i
				}
			}
			if worst >= 0 {
				t.Logf("longest: %v in %v", ours[worst].Time, cells[worst])
			}
		}
	}
}

// zeroBeside is the zero Policy as it is flown against a rival. A concurrency limit
// is a number about the server which the zero Policy cannot know. A rival that
// brings one is met with the same.
func zeroBeside(rival sim.Contender) sim.Contender {
	c := zero
	c.Policy.Limit = rival.Policy.Limit
	return c
}

// A duel is a cell in which a preset was back sooner.
type duel struct {
	cell   Cell
	rival  sim.Contender
	ours   Recovered
	theirs Recovered
}

func notDominated(t *testing.T, ctx context.Context, cells []Cell, ours []Recovered) {
	rivals := rivals(t)
	var mu sync.Mutex
	sooner := map[string][]duel{} // by rival, load and fleet
	Each(len(cells)*len(rivals), *workers, func(i int) {
		c, rival := cells[i/len(rivals)], rivals[i%len(rivals)]
		mine := ours[i/len(rivals)]
		if rival.Policy.Limit.InFlight > 0 {
			var err error
			if mine, err = Recovery(ctx, zeroBeside(rival), c, After, 1); err != nil {
				t.Error(err)
				return
			}
		}
		if mine.OK && mine.Time <= Tie {
			return // nobody can be better
		}
		by := After
		if mine.OK {
			by = mine.Time
		}
		theirs, err := Recovery(ctx, rival, c, by, 1)
		if err != nil {
			t.Error(err)
			return
		}
		if theirs.Before(mine) {
			mu.Lock()
			defer mu.Unlock()
			key := fmt.Sprintf("%s %v %d", rival.Name, c.Load, c.Processes)
			sooner[key] = append(sooner[key], duel{c, rival, mine, theirs})
		}
	})
	var keys []string
	for k := range sooner {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	t.Logf("%d pairs of preset and fleet are back sooner in some cell", len(keys))
	Each(len(keys), *workers, func(i int) { inPeaceToo(t, ctx, sooner[keys[i]]) })
}

// inPeaceToo looks at peace where a rival is back sooner.
func inPeaceToo(t *testing.T, ctx context.Context, ds []duel) {
	d := ds[0]
	zero := zeroBeside(d.rival)
	var found []string
	for _, e := range PeaceErrors {
		p := Peace{Load: d.cell.Load, Processes: d.cell.Processes, Errors: e, For: PeaceTime}
		ours, theirs := peaceOf(t, ctx, zero, p, 1), peaceOf(t, ctx, d.rival, p, 1)
		if !theirs.Above(ours) {
			continue
		}
		ours, theirs = peaceOf(t, ctx, zero, p, 5), peaceOf(t, ctx, d.rival, p, 5)
		if theirs.Above(ours) {
			found = append(found, fmt.Sprintf("%.1f %%: %.3f over %.3f", 100*e, 100*theirs.Share(), 100*ours.Share()))
		}
	}
	if found == nil {
		t.Logf("%s: sooner in %d cells at load %v with %d processes, not better in peace", d.rival.Name, len(ds), d.cell.Load, d.cell.Processes)
		return
	}
	for _, d := range ds {
		if text, real := again(t, ctx, d); real {
			t.Errorf("%s dominates: %v: %s; in peace %v", d.rival.Name, d.cell, text, found)
		} else {
			t.Logf("%s does not dominate after all: %v: %s", d.rival.Name, d.cell, text)
		}
	}
}

func peaceOf(t *testing.T, ctx context.Context, c sim.Contender, p Peace, seeds uint64) (sum Success) {
	for seed := uint64(1); seed <= seeds; seed++ {
		s, err := InPeace(ctx, c, p, seed)
		if err != nil {
			t.Error(err)
		}
		sum = sum.Add(s)
	}
	return sum
}

// again flies a duel with five seeds to the end, and compares the means.
func again(t *testing.T, ctx context.Context, d duel) (string, bool) {
	const seeds = 5
	mean := func(c sim.Contender) Recovered {
		var sum time.Duration
		for seed := uint64(1); seed <= seeds; seed++ {
			r, err := Fly(ctx, c, d.cell, seed)
			if err != nil {
				t.Error(err)
			}
			if !r.Recovery.Recovered {
				return Recovered{}
			}
			sum += r.Recovery.Time
		}
		return Recovered{true, sum / seeds}
	}
	ours, theirs := mean(zeroBeside(d.rival)), mean(d.rival)
	return fmt.Sprintf("%v against %v with one seed, %+v against %+v with five", d.theirs.Time, d.ours.Time, theirs, ours), theirs.Before(ours)
}

// In peace retries must help, in every fleet that has calls enough to earn them.
func TestPeace(t *testing.T) {
	loads := []float64{0.8}
	if *whole {
		loads = Loads
	}
	fleets := []int{1, 100, 1_000, 10_000}
	Each(len(loads)*len(fleets), *workers, func(i int) {
		p := Peace{Load: loads[i/len(fleets)], Processes: fleets[i%len(fleets)], Errors: 0.01, For: PeaceTime}
		s := peaceOf(t, context.Background(), zero, p, 1)
		if s.Share() < 0.999 {
			t.Errorf("%v: %.3f %% of calls succeed, want 99.9 %%", p, 100*s.Share())
		}
	})
}

// raced is set when the race detector is on.
var raced bool
