package battery

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/lab/internal/interval"
	"github.com/lullgo/lull/lab/sim"
)

// A Demand is something that a policy must do in a world.
type Demand string

const (
	// Success: no fewer calls succeed than without retries.
	Success Demand = "success"
	// Back: after an outage it is back no later than a policy without retries, but for World.Slack.
	Back Demand = "back"
	// Held: where the dependency hangs, callers hold at most 1.3 times as much as without retries.
	Held Demand = "held"
	// Undominated: no rival that retries is better in one of success, time to recover, what callers
	// hold and attempts, and worse in none.
	Undominated Demand = "undominated"
	// Floor: at least World.Floor of the calls succeed.
	Floor Demand = "floor"
	// Attempts: in a total outage, over any minute, attempts ≤ 1.1 × calls + the stock of each process.
	Attempts Demand = "attempts"
	// Within: it is back within World.Within.
	Within Demand = "within"
)

// The least differences that count. Less than these few runs cannot tell from chance: in sixty drawn worlds (--fresh 60
// --seed 2026, quick) what the zero Policy takes, as a multiple of no retries, differed between two seeds by 0.7 % (held)
// and 0.3 % (attempts) in the median, and by less than 8.5 % and 2.5 % in nine worlds of ten.
//
// What callers hold has an absolute least as well. Callers have room for as many calls as are in progress when each takes
// its whole attempt timeout: so many there are when the dependency hangs. 2 % of that room is nothing that they could use
// for something else. With a timeout of one second it is 20 ms for each call.
const (
	leastSuccess  = 0.002 // of all calls
	leastHeld     = 0.1   // of what the other holds
	leastRoom     = 0.02  // of the attempt timeout, for each call
	leastAttempts = 0.03  // of the other's: what it takes to repeat 3 % of the calls
	mostHeld      = 1.3   // times what callers hold without retries
)

// A Shortfall is a demand that was not met.
type Shortfall struct {
	World  string
	Demand Demand
	// Rival is who did better, with commas between several; empty where the demand is an
	// absolute one.
	Rival string
	Text  string
}

// Shortfalls are the demands that the judged policy does not meet in a world.
func (o *Outcome) Shortfalls() []Shortfall {
	var all []Shortfall
	w, ours := o.World, o.Judged()
	fail := func(d Demand, rival, format string, args ...any) {
		all = append(all, Shortfall{w.Name, d, rival, fmt.Sprintf(format, args...)})
	}
	none := o.Of(None)
	for n := range 1 + len(w.Peace) {
		where, slack, scenario := "", w.Slack(), &w.Scenario
		if n > 0 { // there is no outage to come back from
			scenario = &w.Peace[n-1]
			where, slack = scenario.Name+": ", math.MaxInt64
		}
		mine, theirs := ours.in(n), none.in(n)
		room := leastRoom * roomFor(scenario, mine)
		if fewer := successes(theirs, mine); fewer.sure() {
			fail(Success, None, "%s%s; without retries %s (%+.2f points)", where, Percent(mine), Percent(theirs), -100*fewer.by)
		}
		if recovery(theirs, mine, slack).sure() {
			fail(Back, None, "%s; without retries %s", BackIn(mine), BackIn(theirs))
		}
		if w.Hangs && n == 0 && fewer(theirs, mine, held, mostHeld-1, room).sure() {
			fail(Held, None, "%.2f times as much as without retries", mean(mine, held)/mean(theirs, held))
		}
		var who, text []string
		for i := range o.Flown[1:] {
			r := &o.Flown[1+i]
			if r.Contender == None {
				continue
			}
			if how := dominates(r.in(n), mine, slack, room); how != "" {
				who, text = append(who, r.Contender), append(text, r.Contender+" "+how)
			}
		}
		if who != nil {
			fail(Undominated, strings.Join(who, ", "), "%s%s", where, strings.Join(text, "; "))
		}
	}
	if w.Floor > 0 {
		if mean, half := share(ours.Runs); mean+half < w.Floor {
			fail(Floor, "", "%s; want %.4g %%", Percent(ours.Runs), 100*w.Floor)
		}
	}
	if w.Total {
		stock := float64(budget.DefaultStock * w.Scenario.Fleets[0].Processes)
		for _, r := range ours.Runs {
			if r.Over > stock+1e-6 {
				fail(Attempts, "", "%.0f attempts more than 1.1 × calls in some minute; want at most %.0f", r.Over, stock)
				break
			}
		}
	}
	if w.Within > 0 {
		for _, r := range ours.Runs {
			if !r.Settled || r.Back > w.Within {
				fail(Within, "", "%s; want %v", BackIn(ours.Runs), w.Within)
				break
			}
		}
	}
	return all
}

// A gain is by how much one policy is better than another in some figure, the least that counts, and the half of the
// 95 % interval.
type gain struct{ by, least, half float64 }

func (g gain) sure() bool { return g.by > max(g.least, g.half) }

// dominates returns in what a is better than b, for sure, if it seems to be worse in nothing; else nothing.
// For what they hold, room is the least that counts.
func dominates(a, b []Figures, slack time.Duration, room float64) string {
	success, back := successes(a, b), recovery(a, b, slack)
	hold, attempts := fewer(a, b, held, leastHeld, room), fewer(a, b, Figures.attempts, leastAttempts, 0)
	var how []string
	for _, g := range []gain{success, back, hold, attempts} {
		if g.by < -g.least {
			return ""
		}
	}
	if success.sure() {
		how = append(how, fmt.Sprintf("%+.2f points", 100*success.by))
	}
	if back.sure() {
		how = append(how, fmt.Sprintf("back %s, not %s", BackIn(a), BackIn(b)))
	}
	if hold.sure() {
		how = append(how, fmt.Sprintf("held %.2f×", mean(a, held)/mean(b, held)))
	}
	if attempts.sure() {
		how = append(how, fmt.Sprintf("attempts %.2f×", mean(a, Figures.attempts)/mean(b, Figures.attempts)))
	}
	return strings.Join(how, ", ")
}

// successes is how much larger the share of successes of a is than that of b. If callers wait for their answer before
// they call again, those whose calls are refused call more often, and those whose calls take long less often. So the
// number of successes is compared as well, and the smaller difference counts.
func successes(a, b []Figures) gain {
	var diffs []float64
	var chance float64
	for i := range a {
		count := float64(a[i].Good-b[i].Good) / float64(max(min(a[i].Calls, b[i].Calls), 1))
		diffs = append(diffs, min(a[i].Share()-b[i].Share(), count))
		chance += variance(a[i]) + variance(b[i])
	}
	by, half := interval.Mean(diffs)
	if n := float64(len(diffs)); n < 3 { // too few seeds for the spread between them
		half = 1.96 * math.Sqrt(chance) / n
	}
	return gain{by, leastSuccess, half}
}

func variance(f Figures) float64 {
	return f.Share() * (1 - f.Share()) / float64(max(f.Calls, 1))
}

func held(f Figures) float64 { return f.Held }

func (f Figures) attempts() float64 { return float64(f.Attempts) / float64(max(f.Calls, 1)) }

// roomFor is how many calls would be in progress if each took its whole attempt timeout.
func roomFor(s *sim.Scenario, runs []Figures) float64 {
	calls := mean(runs, func(f Figures) float64 { return float64(f.Calls) })
	return s.Fleets[0].AttemptTimeout.Seconds() * calls / s.Horizon.Seconds()
}

// fewer is how much less of something a has than b. The least that counts is that share of what a has, and no less than least.
func fewer(a, b []Figures, of func(Figures) float64, share, least float64) gain {
	var diffs []float64
	calls := 0.0
	for i := range a {
		diffs = append(diffs, of(b[i])-of(a[i]))
		calls += float64(a[i].Calls)
	}
	by, half := interval.Mean(diffs)
	if len(diffs) < 3 { // as if what each call takes were distributed exponentially
		half = 1.96 * mean(a, of) * math.Sqrt(2/max(calls, 1))
	}
	return gain{by, max(share*mean(a, of), least), half}
}

// recovery is how many seconds a is back sooner than b.
func recovery(a, b []Figures, slack time.Duration) gain {
	var diffs []float64
	never := 0.0 // seeds with which only one of them is back
	for i := range a {
		switch x, y := a[i], b[i]; {
		case x.Few || y.Few: // nobody can say
		case x.Settled && y.Settled:
			diffs = append(diffs, (y.Back - x.Back).Seconds())
		case x.Settled:
			never++
		case y.Settled:
			never--
		}
	}
	by, half := interval.Mean(diffs)
	if len(diffs) < 3 {
		half = 0
	}
	if never != 0 && slack < math.MaxInt64 {
		by, half = math.Copysign(math.Inf(1), never), 0
	}
	return gain{by, slack.Seconds(), half}
}

// share is the mean share of successes, with the half of its 95 % interval.
func share(runs []Figures) (mean, half float64) {
	var xs []float64
	for _, r := range runs {
		xs = append(xs, r.Share())
	}
	return interval.Mean(xs)
}

// Percent is the share of successes in words.
func Percent(runs []Figures) string {
	mean, half := share(runs)
	if half == 0 {
		return fmt.Sprintf("%.2f %%", 100*mean)
	}
	return fmt.Sprintf("%.2f ± %.2f %%", 100*mean, 100*half)
}

// BackIn is the time to recover in words.
func BackIn(runs []Figures) string {
	if len(runs) > 0 && runs[0].Few {
		return "few calls"
	}
	var xs []float64
	for _, r := range runs {
		if r.Settled {
			xs = append(xs, r.Back.Seconds())
		}
	}
	mean, half := interval.Mean(xs)
	text := fmt.Sprintf("%.0f s", mean)
	if half >= 0.5 {
		text = fmt.Sprintf("%.0f ± %.0f s", mean, half)
	}
	never := len(runs) - len(xs)
	switch never {
	case 0:
		return text
	case len(runs):
		return "never"
	}
	return fmt.Sprintf("%s, never with %d of %d seeds", text, never, len(runs))
}

// Success is the mean share of calls that succeeded.
func (f *Flown) Success() float64 { return mean(f.Runs, Figures.Share) }

// Amplification is how many attempts there were for each call.
func (f *Flown) Amplification() float64 { return mean(f.Runs, Figures.attempts) }

// Worst is how many attempts there were for each call in the worst ten seconds.
func (f *Flown) Worst() float64 { return mean(f.Runs, func(r Figures) float64 { return r.Worst }) }

// Held is how many calls were in progress on average.
func (f *Flown) Held() float64 { return mean(f.Runs, held) }

func mean(runs []Figures, of func(Figures) float64) (sum float64) {
	for _, r := range runs {
		sum += of(r)
	}
	return sum / float64(max(len(runs), 1))
}

// Best is the rival that has the most successes, if they are more than ours by more than chance
// and 0.2 points; else nil.
func (o *Outcome) Best() *Flown {
	var best *Flown
	var most float64
	for i := range o.Flown[1:] {
		r := &o.Flown[1+i]
		if !successes(r.Runs, o.Judged().Runs).sure() {
			continue
		}
		if mean, _ := share(r.Runs); best == nil || mean > most {
			best, most = r, mean
		}
	}
	return best
}

// Quickest is the rival that is back first, if that is sooner than ours by more than chance and
// World.Slack; else nil.
func (o *Outcome) Quickest() *Flown {
	var first *Flown
	for i := range o.Flown[1:] {
		r := &o.Flown[1+i]
		if recovery(r.Runs, o.Judged().Runs, o.World.Slack()).sure() && (first == nil || recovery(r.Runs, first.Runs, 0).sure()) {
			first = r
		}
	}
	return first
}
