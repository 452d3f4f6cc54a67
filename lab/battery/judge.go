package battery

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/lab/internal/interval"
)

// A Demand is something that a policy must do in a world.
type Demand string

const (
	// Success: where nothing changes, no fewer calls succeed than without retries.
	Success Demand = "success"
	// Back: it is back no later than a policy without retries, but for World.Slack.
	Back Demand = "back"
	// Undominated: no rival is both quicker back and better in peace.
	Undominated Demand = "undominated"
	// Floor: at least World.Floor of the calls succeed.
	Floor Demand = "floor"
	// Attempts: in a total outage, over any minute, attempts ≤ 1.1 × calls + 2 × processes.
	Attempts Demand = "attempts"
	// Within: it is back within World.Within.
	Within Demand = "within"
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
	if w.Stationary {
		if more, by := better(none.Runs, ours.Runs); more {
			fail(Success, None, "%s; without retries %s (%+.2f points)", Percent(ours.Runs), Percent(none.Runs), -100*by)
		}
	}
	for i := range ours.Peace {
		if more, by := better(none.Peace[i], ours.Peace[i]); more {
			fail(Success, None, "%s: %s; without retries %s (%+.2f points)", w.Peace[i].Name, Percent(ours.Peace[i]), Percent(none.Peace[i]), -100*by)
		}
	}
	if w.To > 0 && !w.Stationary {
		if quicker(none, ours, w.Slack()) {
			fail(Back, None, "%s; without retries %s", BackIn(ours.Runs), BackIn(none.Runs))
		}
		var who, text []string
		for i := range o.Flown[1:] {
			r := &o.Flown[1+i]
			if r.Contender == None || !quicker(r, ours, w.Slack()) {
				continue
			}
			mine := ours
			if r.Beside != nil {
				if mine = r.Beside; !quicker(r, mine, w.Slack()) {
					continue
				}
			}
			for k := range r.Peace {
				if more, by := better(r.Peace[k], mine.Peace[k]); more {
					who = append(who, r.Contender)
					text = append(text, fmt.Sprintf("%s %s, %+.2f points in %s", r.Contender, BackIn(r.Runs), 100*by, w.Peace[k].Name))
					break
				}
			}
		}
		if who != nil {
			fail(Undominated, strings.Join(who, ", "), "%s; %s", BackIn(ours.Runs), strings.Join(text, "; "))
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

// least is the least difference of two shares that counts.
const least = 0.0001

// better reports whether a has more successes than b, beyond their 95 % interval and a
// hundredth of a point; and by how much.
func better(a, b []Figures) (bool, float64) {
	var diffs []float64
	var sumA, sumB Figures
	for i := range a {
		diffs = append(diffs, a[i].Share()-b[i].Share())
		sumA.Good, sumA.Calls = sumA.Good+a[i].Good, sumA.Calls+a[i].Calls
		sumB.Good, sumB.Calls = sumB.Good+b[i].Good, sumB.Calls+b[i].Calls
	}
	mean, half := interval.Mean(diffs)
	if len(diffs) < 3 { // too few seeds for the spread between them
		half = 1.96 * math.Sqrt(variance(sumA)+variance(sumB))
	}
	return mean > max(least, half), mean
}

func variance(f Figures) float64 {
	return f.Share() * (1 - f.Share()) / float64(max(f.Calls, 1))
}

// quicker reports whether a is back sooner than b by more than slack, and more than chance.
func quicker(a, b *Flown, slack time.Duration) bool {
	var diffs []float64
	never := 0 // seeds with which only one of them is back
	for i := range a.Runs {
		x, y := a.Runs[i], b.Runs[i]
		switch {
		case x.Few || y.Few: // nobody can say
		case x.Settled && y.Settled:
			diffs = append(diffs, (y.Back - x.Back).Seconds())
		case x.Settled:
			never++
		case y.Settled:
			never--
		}
	}
	if never != 0 {
		return never > 0
	}
	mean, half := interval.Mean(diffs)
	return mean > slack.Seconds() && (len(diffs) < 3 || mean > half)
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

// Amplification is how many attempts there were for each call.
func (f *Flown) Amplification() float64 {
	var attempts, calls int64
	for _, r := range f.Runs {
		attempts, calls = attempts+r.Attempts, calls+r.Calls
	}
	return float64(attempts) / float64(max(calls, 1))
}

// Worst is how many attempts there were for each call in the worst ten seconds.
func (f *Flown) Worst() float64 { return mean(f.Runs, func(r Figures) float64 { return r.Worst }) }

// Held is how many calls were in progress on average.
func (f *Flown) Held() float64 { return mean(f.Runs, func(r Figures) float64 { return r.Held }) }

func mean(runs []Figures, of func(Figures) float64) (sum float64) {
	for _, r := range runs {
		sum += of(r)
	}
	return sum / float64(max(len(runs), 1))
}

// Best is the rival that has the most successes, if they are more than ours by more than chance
// and a tenth of a point; else nil.
func (o *Outcome) Best() *Flown {
	var best *Flown
	var most float64
	for i := range o.Flown[1:] {
		r := &o.Flown[1+i]
		more, by := better(r.Runs, o.Judged().Runs)
		if !more || by < 0.001 {
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
	if o.World.To == 0 || o.World.Stationary {
		return nil
	}
	var first *Flown
	for i := range o.Flown[1:] {
		r := &o.Flown[1+i]
		if quicker(r, o.Judged(), o.World.Slack()) && (first == nil || quicker(r, first, 0)) {
			first = r
		}
	}
	return first
}
