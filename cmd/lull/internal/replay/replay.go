package replay

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/simulate"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// mostRounds times as many draws as flights are wanted are tried. If fewer than fewDraws do what was observed, and the values of the
// file do not, there is no answer.
const mostRounds, fewDraws = 4, 3

// A task is what the flags say.
type task struct {
	whole     sim.Scenario // as in the file
	world     sim.Scenario // the part of it that was observed
	learned   *scenario.Learned
	policies  []sim.Contender // first the one that ran
	file      string          // all of them
	seeds     int
	seed      uint64
	tolerance float64
	enough    time.Duration // of one processor, by sim.Scenario.Cost, whatever machine it is; what takes longer is made smaller
}

// A result is what a replay has found. What is exported is the output of --json.
type result struct {
	task
	Ran        string // the policy
	Reproduced bool
	Tolerance  float64
	Smaller    int  // the load that flew is this part of the real one
	AtService  bool // what was observed is what the service writes down, which does not notice that callers have gone
	Distances  []distance
	FileOff    string     // not "": with the values of the file it is not reproduced, and with Draws it is
	Draws      [][]string // assignments: those with which the policy that ran does what was observed
	Drawn      int
	Policies   []answer // the best first; none if not reproduced
	Questions  []string // what is not known of the world

	ran []flight // in the world as the file has it
}

// An answer is what a policy does in each draw.
type answer struct {
	Name    string
	Flights []flight
}

func steps(s sim.Scenario) int { return int((s.Horizon + s.Step - 1) / s.Step) }

func (t task) replay(ctx context.Context, progress *term.Progress) (*result, error) {
	r := &result{task: t, Ran: t.policies[0].Name, Tolerance: t.tolerance, Smaller: 1}
	s := t.world
	s.Step = t.learned.Observed.Step
	observed := newCourse(&t.learned.Observed, steps(s), 1)
	draws, err := t.learned.Draws(t.whole, mostRounds*t.seeds, t.seed)
	if err != nil {
		return nil, err
	}
	all, takes := t.seeds*(mostRounds+len(t.policies)), time.Duration(0) // from above
	for _, c := range t.policies {
		takes = max(takes, s.Cost(c).Time*time.Duration(all))
	}
	for _, can := s.Smaller(2); can && takes/time.Duration(r.Smaller) > t.enough; _, can = s.Smaller(2 * r.Smaller) {
		r.Smaller *= 2
	}
	if took := takes / time.Duration(r.Smaller); took > 60*t.enough {
		return nil, problem.List{{Field: "this replay", Value: fmt.Sprintf("%d flights, which take about %s of one processor", all, simulate.InWords(took)), Allowed: "fewer --seeds or policies, or a world of a shorter time"}}
	}
	begin, end := s.Disturbance()
	end = cmp.Or(end, s.Horizon)
	from, to := int(begin/s.Step), min(int((end+s.Step-1)/s.Step), steps(s))
	if !slices.ContainsFunc(observed[failed:], func(curve []float64) bool { return len(known(curve[from:to])) > 0 }) {
		return nil, problem.List{{Field: "learned.observed", Value: "nothing from " + span(begin, end), Allowed: "failures or times in the incident"}}
	}
	var mu sync.Mutex
	done, view := 0, 0
	// fliesIn flies a policy in some of the draws, each with its own seed, and returns the flights as each view of scenario.Observed.Simulate has them.
	fliesIn := func(c sim.Contender, draws []scenario.Draw, which []int) ([2][]flight, error) {
		flights, errs := [2][]flight{make([]flight, len(which)), make([]flight, len(which))}, make([]error, len(which))
		sim.Each(len(which), 0, func(i int) {
			world := scenario.Watched(draws[which[i]].Scenario)
			if r.Smaller > 1 {
				world, _ = world.Smaller(r.Smaller)
			}
			x, seen, err := t.learned.Observed.Simulate(ctx, under(world, c), c, sim.Options{Seed: t.seed + uint64(which[i]), Named: t.policies})
			f := flight{Seed: x.Seed, Totals: x.Totals, Recovery: x.Recovery, Back: math.NaN(), Held: x.HeldRate()}
			if x.Recovery.Recovered { // draws differ in when the fault ends
				f.Back = max(x.Recovery.From+x.Recovery.Time-begin, 0).Seconds()
			} else if x.Recovery.Measured {
				f.Back = math.Inf(1)
			}
			for v := range flights {
				f.course = newCourse(&seen[min(v, len(seen)-1)], steps(s), float64(r.Smaller))
				flights[v][i] = f
			}
			errs[i] = err
			mu.Lock()
			defer mu.Unlock()
			done++
			progress.Show(func(took time.Duration) string {
				left := took * time.Duration(all-done) / time.Duration(done)
				return fmt.Sprintf("flying: %d of at most %d flights, at most %s left", done, all, simulate.InWords(left.Round(time.Second)))
			})
		})
		return flights, cmp.Or(errs...)
	}

	every := make([]int, len(draws))
	for i := range every {
		every[i] = i
	}
	ran, err := fliesIn(t.policies[0], slices.Repeat([]scenario.Draw{{Scenario: s}}, t.seeds), every[:t.seeds])
	if err != nil {
		return nil, err
	}
	warmup := min(int((s.Warmup+s.Step-1)/s.Step), from)
	var judges [2]*judge // what was observed is of the view to which it is nearest
	best := math.Inf(1)
	for v, seen := range ran {
		parts := partsOf(observed[failed], median(seen, failed), warmup, from, to, steps(s))
		judges[v] = newJudge(observed, t.learned.Observed.OfCalls(), s.Step, seen, parts)
		if all, far := judges[v].distances(seen); far < best {
			best, view, r.Distances = far, v, all
		}
	}
	r.ran, r.Reproduced, r.AtService = ran[view], best <= t.tolerance, view > 0
	for _, q := range t.learned.Unknown {
		r.Questions = append(r.Questions, q.Path+": "+q.String())
	}

	far := func(f flight) bool {
		all, _ := judges[view].distances([]flight{f})
		for k, d := range all { // one flight may be as far off as the furthest seed of what the file has
			if d.Distance > t.tolerance && !(r.Reproduced && d.Distance <= r.Distances[k].High) {
				return true
			}
		}
		return false
	}
	var now []flight
	var kept []int
	for len(kept) < t.seeds && len(now) < len(draws) {
		some, err := fliesIn(t.policies[0], draws, every[len(now):len(now)+t.seeds])
		if err != nil {
			return nil, err
		}
		now = append(now, some[view]...)
		kept = slices.DeleteFunc(slices.Clone(every[:len(now)]), func(i int) bool { return far(now[i]) })
	}
	kept = kept[:min(len(kept), t.seeds)]
	own := answer{Name: r.Ran}
	for _, i := range kept {
		r.Draws, own.Flights = append(r.Draws, draws[i].Values), append(own.Flights, now[i])
	}
	if r.Drawn = len(now); len(kept) == t.seeds {
		r.Drawn = kept[len(kept)-1] + 1
	}
	vary := slices.ContainsFunc(draws, func(d scenario.Draw) bool { return d.Values != nil })
	if !r.Reproduced && len(kept) >= fewDraws && vary {
		r.FileOff, r.Reproduced, r.ran = r.verdict(), true, own.Flights
		r.Distances, _ = judges[view].distances(r.ran)
	}
	if !r.Reproduced || len(kept) == 0 || t.capacityOpen() {
		return r, nil
	}
	r.Policies = []answer{own}
	for _, c := range t.policies[1:] {
		flights, err := fliesIn(c, draws, kept)
		if err != nil {
			return nil, err
		}
		r.Policies = append(r.Policies, answer{c.Name, flights[view]})
	}
	rank(r.Policies)
	return r, nil
}

// capacityOpen reports whether requests waited in the incident, and nobody knows how many the service can answer. That decides when
// each policy is back, and no figure of the policy that ran shows whether the world has it right.
func (t task) capacityOpen() bool {
	v := t.world.Services[0]
	waited := len(v.Faults) == 0 || slices.ContainsFunc(v.Faults, func(f sim.Fault) bool { return f.Kind != sim.Errors })
	asked := slices.ContainsFunc(t.learned.Unknown, func(q scenario.Question) bool { return q.Path == "services.0.workers" })
	return v.Workers == 0 && waited && asked
}

// under returns the world for a policy. A policy with an attempt timeout of its own has that, and not the one of the world.
func under(s sim.Scenario, c sim.Contender) sim.Scenario {
	s.Fleets = slices.Clone(s.Fleets)
	for i := range s.Fleets {
		s.Fleets[i].AttemptTimeout = choice.Either(c.Policy.AttemptTimeout > 0, 0, s.Fleets[i].AttemptTimeout)
	}
	return s
}

// leastSuccess is the smallest difference of the share of successes that counts, as in lull battery.
const leastSuccess = 0.002

// versus returns in how many draws a is better than b, and in how many worse. In the same draw, with the same seed, that policy is
// better which is back sooner, and if that cannot be told, which has more successes.
func versus(a, b answer) (wins, losses int) {
	for i, f := range a.Flights {
		g := b.Flights[i]
		by := f.Totals.SuccessRate() - g.Totals.SuccessRate()
		if sooner := g.Back - f.Back; math.Abs(sooner) > max(f.Recovery.Within, g.Recovery.Within).Seconds() {
			by = sooner
		}
		if by > leastSuccess {
			wins++
		} else if by < -leastSuccess {
			losses++
		}
	}
	return wins, losses
}

// rank orders policies by how many others each is better than in more draws than it is worse (Copeland's rule).
func rank(all []answer) {
	score := map[string]int{}
	for _, a := range all {
		for _, b := range all {
			score[a.Name] += cmp.Compare(versus(a, b))
		}
	}
	slices.SortStableFunc(all, func(a, b answer) int { return cmp.Compare(score[b.Name], score[a.Name]) })
}
