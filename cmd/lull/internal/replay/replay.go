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

	ran      []flight // in the world as the file has it
	incident part
	backSeen int // steps
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
	vary := slices.ContainsFunc(draws, func(d scenario.Draw) bool { return d.Values != nil })
	all := t.seeds * (mostRounds + len(t.policies))
	takes := time.Duration(0) // from above
	for _, c := range t.policies {
		takes = max(takes, s.Cost(c).Time*time.Duration(all))
	}
	for smaller := true; smaller && takes/time.Duration(r.Smaller) > t.enough; {
		if _, smaller = s.Smaller(2 * r.Smaller); smaller {
			r.Smaller *= 2
		}
	}
	if took := takes / time.Duration(r.Smaller); took > 60*t.enough {
		return nil, problem.List{{Field: "this replay", Value: fmt.Sprintf("%d flights, which take about %s of one processor", all, simulate.InWords(took)), Allowed: "fewer --seeds or policies, or a world of a shorter time"}}
	}
	begin, end := s.Disturbance()
	var mu sync.Mutex
	done, view := 0, 0
	// fliesIn flies a policy in some of the draws, each with its own seed.
	fliesIn := func(c sim.Contender, draws []scenario.Draw, which []int) ([]flight, error) {
		flights, errs := make([]flight, len(which)), make([]error, len(which))
		sim.Each(len(which), 0, func(i int) {
			world := scenario.Watched(draws[which[i]].Scenario)
			if r.Smaller > 1 {
				world, _ = world.Smaller(r.Smaller)
			}
			o := sim.Options{Seed: t.seed + uint64(which[i]), Named: t.policies, Progress: func(sim.Progress) {
				mu.Lock()
				defer mu.Unlock()
				progress.Show(func(took time.Duration) string {
					left := took * time.Duration(all-done) / time.Duration(max(done, 1))
					return fmt.Sprintf("flying: %d of at most %d flights, at most %s left", done, all, simulate.InWords(left.Round(time.Second)))
				})
			}}
			x, seen, err := t.learned.Observed.Simulate(ctx, under(world, c), c, o)
			f := flight{Seed: x.Seed, Totals: x.Totals, Recovery: x.Recovery, Back: math.NaN(), Held: x.HeldRate()}
			if x.Recovery.Recovered { // draws differ in when the fault ends
				f.Back = max(x.Recovery.From+x.Recovery.Time-begin, 0).Seconds()
			}
			for _, o := range seen {
				f.views = append(f.views, newCourse(&o, steps(s), float64(r.Smaller)))
			}
			f.course = f.views[view]
			flights[i], errs[i] = f, err
			mu.Lock()
			defer mu.Unlock()
			done++
		})
		return flights, cmp.Or(errs...)
	}

	var every []int
	for i := range draws {
		every = append(every, i)
	}
	if r.ran, err = fliesIn(t.policies[0], slices.Repeat([]scenario.Draw{{Scenario: s}}, t.seeds), every[:t.seeds]); err != nil {
		return nil, err
	}
	end = cmp.Or(end, s.Horizon)
	from, to := int(begin/s.Step), min(int((end+s.Step-1)/s.Step), steps(s))
	warmup := min(int((s.Warmup+s.Step-1)/s.Step), from)
	r.incident, r.backSeen = part{from: from, to: to}, back(observed[failed], from, to)-to
	var judges []*judge // of each view. What was observed is of that to which it is nearest.
	best := math.Inf(1)
	for v := range r.ran[0].views {
		seen := inView(r.ran, v)
		parts := partsOf(observed[failed], median(seen, failed), warmup, from, to, steps(s))
		judges = append(judges, newJudge(observed, t.learned.Observed.OfCalls(), s.Step, seen, parts))
		if all, far := judges[v].distances(seen); far < best {
			best, view, r.Distances, r.AtService = far, v, all, v > 0
		}
	}
	r.ran, r.Reproduced = inView(r.ran, view), best <= t.tolerance
	for _, q := range t.learned.Unknown {
		text := q.Path + ": " + q.Ask
		if q.Needs != "" {
			text += " It needs " + q.Needs + "."
		}
		r.Questions = append(r.Questions, text)
	}

	near := func(v int, f flight) bool {
		all, _ := judges[v].distances(inView([]flight{f}, v))
		for k, d := range all { // one flight may be as far off as the furthest seed of what the file has
			if d.Distance > t.tolerance && !(r.Reproduced && d.Distance <= r.Distances[k].High) {
				return false
			}
		}
		return true
	}
	now, kept := r.ran, every[:t.seeds]
	for round := 0; round < mostRounds && vary; round++ {
		if round == 0 {
			now, kept = nil, nil
		}
		some, err := fliesIn(t.policies[0], draws, every[round*t.seeds:(round+1)*t.seeds])
		if err != nil {
			return nil, err
		}
		now = append(now, some...)
		for v := range judges {
			which := slices.DeleteFunc(slices.Clone(every[:len(now)]), func(i int) bool { return !near(v, now[i]) })
			if len(which) > len(kept) && (v == view || !r.Reproduced) {
				kept, view = which[:min(len(which), t.seeds)], v
			}
		}
		if len(kept) == t.seeds {
			break
		}
	}
	ran := answer{Name: r.Ran}
	for _, i := range kept {
		r.Draws, ran.Flights = append(r.Draws, draws[i].Values), append(ran.Flights, inView(now[i:i+1], view)...)
	}
	if r.Drawn = len(now); len(kept) == t.seeds {
		r.Drawn = kept[len(kept)-1] + 1
	}
	if !r.Reproduced && len(kept) >= fewDraws && vary {
		r.FileOff, r.Reproduced, r.AtService, r.ran = r.verdict(), true, view > 0, ran.Flights
		r.Distances, _ = judges[view].distances(r.ran)
	}
	if !r.Reproduced || len(kept) == 0 || t.capacityOpen() {
		return r, nil
	}
	r.Policies = []answer{ran}
	for _, c := range t.policies[1:] {
		flights, err := fliesIn(c, draws, kept)
		if err != nil {
			return nil, err
		}
		r.Policies = append(r.Policies, answer{c.Name, flights})
	}
	rank(r.Policies)
	return r, nil
}

// capacityOpen reports whether requests waited in the incident, and nobody knows how many the service can answer. That decides when
// each policy is back, and no figure of the policy that ran shows whether the world has it right.
func (t task) capacityOpen() bool {
	for i, sv := range t.world.Services {
		asked := slices.ContainsFunc(t.learned.Unknown, func(q scenario.Question) bool { return q.Path == fmt.Sprintf("services.%d.workers", i) })
		waited := len(sv.Faults) == 0 || slices.ContainsFunc(sv.Faults, func(f sim.Fault) bool { return f.Kind != sim.Errors })
		if waited && asked && sv.Workers == 0 {
			return true
		}
	}
	return false
}

// inView returns flights as callers see them (0), or as the service does.
func inView(all []flight, view int) []flight {
	all = slices.Clone(all)
	for i := range all {
		all[i].course = all[i].views[view]
	}
	return all
}

// under returns the world for a policy. A policy with an attempt timeout of its own has that, and not the one of the world.
func under(s sim.Scenario, c sim.Contender) sim.Scenario {
	s.Fleets = slices.Clone(s.Fleets)
	for i := range s.Fleets {
		if c.Policy.AttemptTimeout > 0 {
			s.Fleets[i].AttemptTimeout = 0
		}
	}
	return s
}

// leastSuccess is the smallest difference of the share of successes that counts, as in lull battery.
const leastSuccess = 0.002

// versus returns in how many draws a is better than b, and in how many worse. In the same draw, with the same seed, that policy is
// better which is back sooner, and if that cannot be told, which has more successes.
func versus(a, b answer) (wins, losses int) {
	for i := range a.Flights {
		f, g := &a.Flights[i], &b.Flights[i]
		x, y := &f.Recovery, &g.Recovery
		sooner := (y.Time - x.Time).Seconds()
		by := f.Totals.SuccessRate() - g.Totals.SuccessRate()
		switch {
		case x.Recovered != y.Recovered && x.Measured && y.Measured:
			by = map[bool]float64{true: 1, false: -1}[x.Recovered]
		case x.Recovered && y.Recovered && math.Abs(sooner) > max(x.Within, y.Within).Seconds():
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
			wins, losses := versus(a, b)
			score[a.Name] += cmp.Compare(wins, losses)
		}
	}
	slices.SortStableFunc(all, func(a, b answer) int { return cmp.Compare(score[b.Name], score[a.Name]) })
}
