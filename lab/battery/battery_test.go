package battery

import (
	"context"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

func TestWorldsAreValid(t *testing.T) {
	whole := Full
	whole.Whole = true
	for name, z := range map[string]Size{"full": Full, "quick": Quick, "whole": whole} {
		seen := map[string]bool{}
		families := map[string]int{}
		for _, w := range Worlds(z) {
			if seen[w.Name] {
				t.Errorf("%s: two worlds are called %s", name, w.Name)
			}
			seen[w.Name] = true
			families[w.Family]++
			for _, s := range append([]sim.Scenario{w.Scenario}, w.Peace...) {
				if err := s.Validate(); err != nil {
					t.Errorf("%s: %s: %v", name, w.Name, err)
				}
			}
			if w.To > 0 && (w.From <= 0 || w.From >= w.To || w.To >= w.Scenario.Horizon) {
				t.Errorf("%s: %s: an outage from %v to %v, and a horizon of %v", name, w.Name, w.From, w.To, w.Scenario.Horizon)
			}
			if !w.Stationary && len(w.Peace) == 0 {
				t.Errorf("%s: %s is neither stationary nor has a peace", name, w.Name)
			}
			for _, p := range w.Peace {
				for _, v := range p.Services {
					if v.Faults != nil {
						t.Errorf("%s: the peace of %s has faults", name, w.Name)
					}
				}
			}
		}
		for _, f := range Families {
			if families[f.Name] == 0 {
				t.Errorf("%s: no world of the family %s", name, f.Name)
			}
		}
		if name == "whole" && families["grid"] != 1000 {
			t.Errorf("%d cells of the grid, and the comment of grid says a thousand", families["grid"])
		}
	}
}

// What is demanded follows from the scenario.
func TestWhatAWorldIs(t *testing.T) {
	for _, c := range []struct {
		name                     string
		stationary, total, hangs bool
		from, to                 time.Duration
	}{
		{"crash60-p1", false, true, false, 60 * s, 120 * s},
		{"brown30-30s-p1", false, false, false, 60 * s, 90 * s},
		{"gw30-p1-r50-504in5s", false, true, true, 60 * s, 90 * s},
		{"err20-slow500ms-p1", false, false, true, 60 * s, 240 * s},
		{"err20-180s-p1", false, false, false, 60 * s, 240 * s},
		{"sick1of20-p1-at3s", false, false, true, 60 * s, 120 * s},
		{"spike3x60-p1", false, false, false, 60 * s, 120 * s},
		{"twostalls-p1", false, false, true, 60 * s, 90 * s}, // between them attempts succeed
		{"to200ms-p1-l0.8-stall10", false, false, true, 60 * s, 70 * s},
		{"flap-stall2of10-p1", true, false, true, 10 * s, 12 * s},
		{"peace-err0.2-r50-p1", true, false, false, 0, 0},
		{"bursts2x3s-p1", true, false, false, 0, 0},
		{"diurnal-p1", true, false, false, 0, 0},
		{"diurnal-p1-stall10", false, true, true, 60 * s, 70 * s},    // the day is no outage
		{"grid-stall1s-l0.8-p1", false, false, true, 60 * s, 61 * s}, // attempts may wait for its end
		{"choose3-p1-stall10", false, true, true, 60 * s, 70 * s},
		{"low-r5-p100-errors5", false, true, false, 120 * s, 125 * s},  // answers take 800 ms, with the wait in line
		{"low-r0.5-p1-errors5", false, false, false, 240 * s, 245 * s}, // they take 2 s: one in twelve takes more than 5 s
	} {
		found := false
		for _, w := range Worlds(Full) {
			if w.Name != c.name {
				continue
			}
			found = true
			if w.Stationary != c.stationary || w.Total != c.total || w.Hangs != c.hangs || w.From != c.from || w.To != c.to {
				t.Errorf("%s: stationary %v, total %v, hangs %v, from %v to %v", c.name, w.Stationary, w.Total, w.Hangs, w.From, w.To)
			}
		}
		if !found {
			t.Errorf("no world is called %s", c.name)
		}
	}
}

// worldsNamed returns the named worlds, of that size.
func worldsNamed(t *testing.T, z Size, names ...string) []World {
	var some []World
	for _, w := range Worlds(z) {
		for _, name := range names {
			if w.Name == name {
				some = append(some, w)
			}
		}
	}
	if len(some) != len(names) {
		t.Fatalf("%d worlds of %v", len(some), names)
	}
	return some
}

// The figures do not depend on how many flights there are side by side, and known flights stand
// for those that would be flown.
func TestFlyIsDeterministic(t *testing.T) {
	rival := must.Have(Preset("full-jitter"))
	p := Plan{
		Worlds: worldsNamed(t, Quick, "bh60-at10s-p1-r5-cancel", "peace-err0.2-r50-p1"),
		Judged: sim.Contender{Name: "lull", Policy: lull.Policy{}}, Rivals: []sim.Contender{rival}, Seeds: 2, Workers: 1,
	}
	one := must.Have(Fly(context.Background(), p))
	p.Workers = 4
	p.Known = map[Key]Figures{}
	for i := range one {
		scenarios := append([]sim.Scenario{one[i].World.Scenario}, one[i].World.Peace...)
		for _, c := range one[i].Flown { // ours are not taken from there
			for n, s := range scenarios {
				for seed, f := range c.in(n) {
					p.Known[Key{Digest(s), c.Contender, seed + 1}] = f
				}
			}
		}
	}
	flown := 0
	p.Progress = func(done, of int) { flown = done }
	four := must.Have(Fly(context.Background(), p))
	if !reflect.DeepEqual(one, four) {
		t.Errorf("one worker:\n%+v\nfour, with what is known:\n%+v", one, four)
	}
	if flown != 2*(2+2) { // ours: both worlds, and two peaces of one of them
		t.Errorf("%d flights, though those of the rivals are known", flown)
	}
}

// outcome returns a world in which the zero Policy and two others had these figures, there and in peace.
func outcome(w World, ours, none, rival []Figures, peace ...[]Figures) *Outcome {
	o := &Outcome{World: w, Flown: []Flown{
		{Contender: "ours", Runs: ours}, {Contender: None, Runs: none}, {Contender: "rival", Runs: rival},
	}}
	for i := range peace {
		o.Flown[i].Peace = [][]Figures{peace[i]}
	}
	return o
}

func calls(good, calls int64) []Figures {
	return []Figures{{Good: good, Calls: calls, Attempts: calls, Held: 1}}
}

// cost returns runs of a million calls, with so many attempts for ten thousand of them.
func cost(attempts int64, held ...float64) (all []Figures) {
	for _, h := range held {
		all = append(all, Figures{Good: 1e6, Calls: 1e6, Attempts: 100 * attempts, Held: h})
	}
	return all
}

func backAfter(ds ...time.Duration) (all []Figures) {
	for _, d := range ds {
		all = append(all, Figures{Good: 1, Calls: 1, Settled: d >= 0, Back: d})
	}
	return all
}

const lost = -1 // it is never back

func TestShortfalls(t *testing.T) {
	// Of cost there is one call a second, so each takes as many seconds as there are calls in progress.
	scenario := sim.Scenario{Horizon: 1e6 * s, Fleets: []sim.Fleet{{AttemptTimeout: s}}}
	calm := World{Name: "w", Stationary: true, Scenario: scenario}
	outage := World{Name: "w", From: 60 * s, To: 70 * s, Scenario: scenario}
	long, hang, peaceful := outage, outage, outage
	long.To, hang.Hangs, peaceful.Peace = 360*s, true, []sim.Scenario{scenario}
	level := calls(900, 1000)
	for _, c := range []struct {
		name string
		o    *Outcome
		want string
	}{
		{"level", outcome(calm, level, level, level), ""},
		{"fewer successes than without retries", outcome(calm, calls(800, 1000), level, calls(800, 1000)), "success none"},
		{"and with an outage", outcome(outage, calls(800, 1000), level, calls(800, 1000)), "success none"},
		{"fewer by chance", outcome(calm, calls(895, 1000), level, calls(895, 1000)), ""},
		{"callers that were refused call again", outcome(calm, calls(990, 1500), calls(990, 1000), calls(990, 1500)), ""},
		{"and in the end succeed less often", outcome(calm, calls(900, 1500), calls(990, 1000), calls(900, 1500)), "success none"},
		{"callers that wait call less often", outcome(calm, level, level, calls(900, 900)), ""},
		{"one more success, and a smaller share, is no gain", outcome(calm, calls(900, 900), calls(901, 1000), []Figures{{Good: 901, Calls: 1000, Attempts: 900, Held: 1}}), ""},
		{"0.2 points", outcome(calm, calls(998_000_001, 1e9), calls(1e9, 1e9), calls(998_000_001, 1e9)), ""},
		{"more than these", outcome(calm, calls(997_900_000, 1e9), calls(1e9, 1e9), calls(997_900_000, 1e9)), "success none"},
		{"fewer in peace", outcome(peaceful, level, level, level, calls(800, 1000), level, calls(800, 1000)), "success none"},

		{"two seconds are level", outcome(outage, backAfter(2*s), backAfter(0), backAfter(2*s)), ""},
		{"later than without retries", outcome(outage, backAfter(3*s), backAfter(0), backAfter(3*s)), "back none"},
		{"2 % of the outage are level", outcome(long, backAfter(6*s), backAfter(0), backAfter(6*s)), ""},
		{"more than that", outcome(long, backAfter(7*s), backAfter(0), backAfter(7*s)), "back none"},
		{"where everything repeats itself nobody is back", outcome(calm, backAfter(lost), backAfter(0), backAfter(0)), ""},
		{"never back, nor without retries", outcome(outage, backAfter(lost), backAfter(lost), backAfter(lost)), ""},
		{"never back", outcome(outage, backAfter(lost), backAfter(90*s), backAfter(lost)), "back none"},
		{"with one seed of three", outcome(outage, backAfter(0, lost, 0), backAfter(0, 0, 0), backAfter(0, lost, 0)), "back none"},
		{"later by chance", outcome(outage, backAfter(0, 9*s, 0), backAfter(0, 0, 0), backAfter(0, 9*s, 0)), ""},
		{"later with every seed", outcome(outage, backAfter(9*s, 10*s, 9*s), backAfter(0, 1*s, 0), backAfter(9*s, 10*s, 9*s)), "back none"},

		{"in peace there is nothing to come back from", outcome(peaceful, level, level, level, backAfter(9*s), backAfter(0), backAfter(9*s)), ""},
		{"nor for a rival", outcome(peaceful, level, level, level, backAfter(9*s), backAfter(9*s), backAfter(0)), ""},
		{"never, in peace", outcome(peaceful, level, level, level, backAfter(lost), backAfter(0), backAfter(0)), ""},

		{"what callers hold in a hang", outcome(hang, cost(10_000, 13), cost(10_000, 10), cost(10_000, 13)), ""},
		{"more than 1.3 times as much", outcome(hang, cost(10_000, 14), cost(10_000, 10), cost(10_000, 14)), "held none"},
		{"by chance", outcome(hang, cost(10_000, 8, 8, 26), cost(10_000, 10, 10, 10), cost(10_000, 8, 8, 26)), ""},
		{"not in a hang", outcome(outage, cost(10_000, 14), cost(10_000, 10), cost(10_000, 14)), ""},

		{"a rival has more successes", outcome(calm, level, level, calls(990, 1000)), "undominated rival"},
		{"and in peace", outcome(peaceful, level, level, level, level, level, calls(990, 1000)), "undominated rival"},
		{"not one that does not retry", outcome(hang, cost(10_000, 10), cost(9_000, 9), cost(10_000, 10)), ""},
		{"a rival is back sooner", outcome(outage, backAfter(9*s), backAfter(9*s), backAfter(0)), "undominated rival"},
		{"and has fewer successes", outcome(outage, append(backAfter(9*s), calls(9, 9)...), append(backAfter(9*s), calls(9, 9)...), append(backAfter(0), calls(5, 9)...)), ""},
		{"a rival holds less", outcome(outage, cost(10_000, 10), cost(10_000, 10), cost(10_000, 8.9)), "undominated rival"},
		{"less than 20 ms a call, of a second that an attempt may take", outcome(calm, cost(10_000, 0.025), cost(10_000, 0.025), cost(10_000, 0.006)), ""},
		{"more than that", outcome(calm, cost(10_000, 0.025), cost(10_000, 0.025), cost(10_000, 0.004)), "undominated rival"},
		{"it may hold so little more for other gains", outcome(calm, cost(10_500, 0.006), cost(10_000, 0.025), cost(10_000, 0.025)), "undominated rival"},
		{"in a hang it is the same", outcome(hang, cost(10_000, 0.025), cost(10_000, 0.006), cost(10_000, 0.025)), ""},
		{"and more", outcome(hang, cost(10_000, 0.03), cost(10_000, 0.004), cost(10_000, 0.03)), "held none"},
		{"by less than a tenth", outcome(outage, cost(10_000, 10), cost(10_000, 10), cost(10_000, 9.2)), ""},
		{"by chance", outcome(outage, cost(10_000, 10, 10, 10), cost(10_000, 10, 10, 10), cost(10_000, 10, 4, 10)), ""},
		{"or so few calls say nothing", outcome(outage, calls(90, 100), calls(90, 100), []Figures{{Good: 90, Calls: 100, Attempts: 100, Held: 0.8}}), ""},
		{"a rival makes fewer attempts", outcome(outage, cost(10_500, 10), cost(10_000, 10), cost(10_100, 10)), "undominated rival"},
		{"but not by 3 %", outcome(outage, cost(10_500, 10), cost(10_000, 10), cost(10_300, 10)), ""},
		{"and holds more", outcome(outage, cost(10_500, 10), cost(10_000, 10), cost(10_100, 12)), ""},

		{"a floor", outcome(World{Name: "w", Stationary: true, Floor: 0.99, Scenario: scenario}, calls(980, 1000), calls(980, 1000), calls(980, 1000)), "floor "},
		{"above it", outcome(World{Name: "w", Stationary: true, Floor: 0.98, Scenario: scenario}, calls(980, 1000), calls(980, 1000), calls(980, 1000)), ""},
		{"within", outcome(World{Name: "w", From: s, To: 2 * s, Within: 15 * s, Scenario: scenario}, backAfter(16*s), backAfter(16*s), backAfter(16*s)), "within "},
	} {
		var got []string
		for _, f := range c.o.Shortfalls() {
			got = append(got, string(f.Demand)+" "+f.Rival)
		}
		check.Equal(t, strings.Join(got, ", "), c.want, "%s", c.name)
	}
}

func TestTotalOutagesBoundAttempts(t *testing.T) {
	w := World{Name: "w", From: 60 * s, To: 70 * s, Total: true, Scenario: sim.Scenario{Horizon: 60 * s, Fleets: []sim.Fleet{{Processes: 3}}}}
	for over, want := range map[float64]int{3 * budget.DefaultStock: 0, 3*budget.DefaultStock + 1: 1} {
		ours := backAfter(0)
		ours[0].Over = over
		if got := outcome(w, ours, backAfter(0), backAfter(0)).Shortfalls(); len(got) != want {
			t.Errorf("%v attempts too many for 3 processes: %+v", over, got)
		}
	}
}

// A minute's attempts above the ratio are found wherever the minute begins.
func TestWorstMinute(t *testing.T) {
	s := sim.Series{Step: time.Second}
	for i := range 200 {
		s.Calls = append(s.Calls, 100)
		s.First = append(s.First, 100)
		retries := 10.0 // just the ratio
		if i >= 77 && i < 87 {
			retries = 30 // 200 more in ten seconds
		}
		if i == 150 {
			retries = 0
		}
		s.Retries = append(s.Retries, retries)
	}
	if got := worstMinute(&s, 1.1); math.Abs(got-200) > 1e-6 {
		t.Errorf("%v attempts more than 1.1 times the calls, want 200", got)
	}
}

// Seeds of tests are odd: see Fresh.
func TestFreshWorldsAreValid(t *testing.T) {
	for name, z := range map[string]Size{"full": Full, "quick": Quick} {
		seen := map[string]bool{}
		for seed := uint64(1); seed < 20; seed += 2 {
			all := Fresh(z, seed, 60)
			if !reflect.DeepEqual(all[:20], Fresh(z, seed, 20)) {
				t.Errorf("seed %d: fewer worlds are others", seed)
			}
			for _, w := range all {
				seen[w.Family] = true
				for _, s := range append([]sim.Scenario{w.Scenario}, w.Peace...) {
					if err := s.Validate(); err != nil {
						t.Errorf("%s: %s: %v", name, w.Name, err)
					}
				}
				if v, f := w.Scenario.Services[0], w.Scenario.Fleets[0]; len(w.Scenario.Services) == 1 && answer(&v, &f) > f.AttemptTimeout.Seconds() {
					t.Errorf("%s: %s: an answer takes %v s, and callers wait for %v", name, w.Name, answer(&v, &f), f.AttemptTimeout)
				}
				if n := w.Scenario.Fleets[0].Processes; n > z.Processes {
					t.Errorf("%s: %s: %d processes", name, w.Name, n)
				}
				if w.To > 0 && (w.From <= 0 || w.To >= w.Scenario.Horizon) {
					t.Errorf("%s: %s: an outage from %v to %v, and a horizon of %v", name, w.Name, w.From, w.To, w.Scenario.Horizon)
				}
			}
		}
		if len(seen) != len(draws) {
			t.Errorf("%s: worlds of %d families, and %d can be drawn", name, len(seen), len(draws))
		}
	}
}
