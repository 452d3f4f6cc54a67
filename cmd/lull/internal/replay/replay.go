package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/simulate"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/lab/sim"
)

// enough is how long a replay may take, by the estimate, until the world is made smaller.
const enough = time.Minute

// A result is what a replay has found.
type result struct {
	task
	observed  course
	smaller   int      // the load that flew is this part of the real one
	ran       []flight // of the policy that ran, in the world as it is in the file
	judge     *judge
	distances [figures]distance
	parts     []part
	backSeen  time.Duration // after the end of the last fault
	draws     []draw        // those in which the incident is reproduced
	drawn     int           // all of them
	nearest   *draw         // that in which the policy that ran is nearest to what was observed, if the incident is not reproduced
	invalid   error         // why draws are no worlds
	answers   []answer      // of each policy, in their order; none if refused
}

// An answer is what a policy does in each draw.
type answer struct {
	sim.Contender
	flights []flight
}

func steps(s sim.Scenario) int { return int((s.Horizon + s.Step - 1) / s.Step) }

// refused reports whether a figure is too far off.
func (r *result) refused() bool { return len(r.off()) > 0 }

func (r *result) off() (all []distance) {
	for _, d := range r.distances {
		if d.judged && d.value > r.tolerance {
			all = append(all, d)
		}
	}
	return all
}

func (t task) replay(ctx context.Context, progress *term.Progress) (*result, error) {
	r := &result{task: t, smaller: 1}
	s := t.world
	s.Step = t.learned.Observed.Step
	var ofCalls bool
	r.observed, ofCalls = observedCourse(&t.learned.Observed, steps(s))
	var draws []draw
	draws, r.invalid = latinHypercube(s, t.learned.Values, t.seeds, t.seed)
	if draws == nil {
		return nil, r.invalid
	}
	r.drawn = len(draws)
	vary := slices.ContainsFunc(draws, func(d draw) bool { return d.values != nil })
	rounds := t.seeds + len(draws)*len(t.policies)
	for took := t.takes(s, rounds); took/time.Duration(r.smaller) > enough && r.smaller < 1<<20; r.smaller *= 2 {
		if _, ok := smaller(s, 2*r.smaller); !ok {
			break
		}
	}

	flights := &flights{task: t, progress: progress, of: rounds, ofCalls: ofCalls, smaller: r.smaller}
	same := make([]draw, t.seeds)
	for i := range same {
		same[i].scenario = s
	}
	var err error
	if r.ran, err = flights.fly(ctx, t.policies[0], same); err != nil {
		return nil, err
	}
	begin, end := s.Disturbance()
	if end == 0 {
		end = s.Horizon
	}
	from, to := int(begin/s.Step), min(int((end+s.Step-1)/s.Step), steps(s))
	courses := coursesOf(r.ran)
	r.parts = partsOf(r.observed, median(courses), min(int((s.Warmup+s.Step-1)/s.Step), from), from, to, steps(s))
	r.backSeen = time.Duration(back(r.observed, from, to)-to) * s.Step
	r.judge = newJudge(r.observed, ofCalls, s.Step, courses, r.parts)
	for k := range r.distances {
		r.distances[k] = r.judge.of(k, courses)
	}

	now := r.ran[:len(draws)]
	if vary {
		if now, err = flights.fly(ctx, t.policies[0], draws); err != nil {
			return nil, err
		}
	}
	ran := answer{Contender: t.policies[0]}
	least := 2.0
	for i, f := range now {
		far := 0.0
		for k := range r.distances {
			if d := r.judge.of(k, []course{f.course}); d.judged {
				far = max(far, d.value)
			}
		}
		if vary && far < least {
			least, r.nearest = far, &draws[i]
		}
		if far <= t.tolerance || !vary {
			r.draws, ran.flights = append(r.draws, draws[i]), append(ran.flights, f)
		}
	}
	if least > t.tolerance || !r.refused() {
		r.nearest = nil
	}
	if r.refused() || len(r.draws) == 0 {
		return r, nil
	}
	r.answers = append(r.answers, ran)
	for _, c := range t.policies[1:] {
		a := answer{Contender: c}
		if a.flights, err = flights.fly(ctx, c, r.draws); err != nil {
			return nil, err
		}
		r.answers = append(r.answers, a)
	}
	r.rank()
	return r, nil
}

// takes estimates, from above, how long that many flights will take.
func (t task) takes(s sim.Scenario, flights int) time.Duration {
	var one time.Duration
	for _, c := range t.policies {
		one = max(one, s.Cost(c).Time)
	}
	return time.Duration(float64(one) * float64(flights) / float64(t.workers))
}

func coursesOf(all []flight) (courses []course) {
	for _, f := range all {
		courses = append(courses, f.course)
	}
	return courses
}

// flights flies, and shows how far it is.
type flights struct {
	task
	progress *term.Progress
	of, done int
	ofCalls  bool
	smaller  int

	mu    sync.Mutex
	share float64 // of a flight, in those under way
}

// fly flies a policy through each draw.
func (f *flights) fly(ctx context.Context, c sim.Contender, draws []draw) ([]flight, error) {
	all, errs := make([]flight, len(draws)), make([]error, len(draws))
	sim.Each(len(draws), f.workers, func(i int) {
		s := draws[i].scenario
		if f.smaller > 1 {
			s, _ = smaller(s, f.smaller)
		}
		last := 0.0
		o := sim.Options{Seed: f.seed + uint64(i), Named: f.policies, Progress: func(p sim.Progress) {
			now := float64(p.Now) / float64(p.Horizon)
			f.show(now-last, 0)
			last = now
		}}
		all[i], errs[i] = fly(ctx, flown(s, c), c, o, f.ofCalls, 1/float64(f.smaller))
		f.show(-last, 1)
	})
	return all, cmp.Or(errs...)
}

func (f *flights) show(share float64, done int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.share, f.done = f.share+share, f.done+done
	part := (float64(f.done) + f.share) / float64(f.of)
	f.progress.Show(func(took time.Duration) string {
		text := fmt.Sprintf("flying: %d of at most %d flights", f.done, f.of)
		if part > 0.01 && part < 1 {
			left := time.Duration((1 - part) / part * float64(took))
			text += fmt.Sprintf(", at most %s left", simulate.InWords(left.Round(time.Second)))
		}
		return text
	})
}

// leastSuccess is the smallest difference of the share of successes that counts, as in lull battery.
const leastSuccess = 0.002

// better compares what two policies do in the same draw, with the same seed: who is back sooner, and if that cannot be told, who
// has more successes.
func better(a, b *sim.Result) int {
	x, y := &a.Recovery, &b.Recovery
	if x.Measured && y.Measured {
		switch within := max(x.Within, y.Within); {
		case x.Recovered != y.Recovered:
			return map[bool]int{true: 1, false: -1}[x.Recovered]
		case x.Recovered && max(x.Time-y.Time, y.Time-x.Time) > within:
			return cmp.Compare(y.Time, x.Time)
		}
	}
	if by := a.Totals.SuccessRate() - b.Totals.SuccessRate(); max(by, -by) > leastSuccess {
		return cmp.Compare(by, 0)
	}
	return 0
}

// versus returns in how many draws a is better than b, and in how many worse.
func versus(a, b answer) (wins, losses int) {
	for i := range a.flights {
		switch better(&a.flights[i].Result, &b.flights[i].Result) {
		case 1:
			wins++
		case -1:
			losses++
		}
	}
	return wins, losses
}

// rank orders the policies by how many others each is better than in more draws than it is worse (Copeland's rule).
func (r *result) rank() {
	score := map[string]int{}
	for i, a := range r.answers {
		for _, b := range r.answers[i+1:] {
			wins, losses := versus(a, b)
			score[a.Name] += cmp.Compare(wins, losses)
			score[b.Name] += cmp.Compare(losses, wins)
		}
	}
	slices.SortStableFunc(r.answers, func(a, b answer) int { return cmp.Compare(score[b.Name], score[a.Name]) })
}
