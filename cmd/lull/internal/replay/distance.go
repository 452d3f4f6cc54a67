package replay

import (
	"math"
	"slices"
	"time"
)

const (
	// clearlyFailed is the share of failures that counts as some. The simulator takes things for normal again when 95 % of the
	// usual share of calls succeed (sim.Recovery), so fewer failures change no answer.
	clearlyFailed = 0.05
	fewSteps      = 3 // are too few to compare
)

// A distance is the part of what either of two curves has that only one of them has, from 0, alike, to 1, nothing in common: that of
// Ruzicka (1958), which is that of Jaccard for amounts. At 0.1 the curves differ by a tenth.
//
//	d(a, b) = sum w |a - b| / sum w max(a, b)
//
// The weight w of a step is 1 for rates. For the share of failures it is the observed rate, and for times the rate of what succeeds,
// so that single requests count alike. The share counts as at least 5 % in the maximum.
//
// What is simulated may lie a step aside: a value is compared with the nearest one between the smallest and the largest of three,
// there, a step earlier and a step later. The larger of both directions counts. A perfect model differs, too: the mean d of one seed
// and the others is subtracted, of that seed for which it is largest. So that chance hides no difference that lasts, all is done for
// steps of single, double, fourfold width and so on, and for the parts before, during and after the incident. The largest counts.
//
// Steps of which the figure was not measured are left out on both sides, and a part with fewer than three others is.
type distance struct {
	Figure              string
	Distance, Low, High float64       // mean, lowest and highest of the seeds; below 0: not measured
	Part                string        // where it is largest
	From, To            time.Duration // the step there, of the width with the largest distance, that is furthest off
	Seen, Flown         float64       // the means there
	Observed, Simulated []float64
}

// A part is some steps: those before the incident, those of it, and those after it.
type part struct {
	name     string
	from, to int
}

// A scale is a part in steps of some width, and how far one of the seeds is from the others in it.
type scale struct {
	part
	width int
	noise float64
}

// A judge compares flights with what was observed.
type judge struct {
	observed course
	weights  course
	step     time.Duration
	scales   [figures][]scale
}

// newJudge learns from flights of one world with several seeds what chance does.
func newJudge(observed course, ofCalls bool, step time.Duration, all []flight, parts []part) *judge {
	j := &judge{observed: observed, step: step}
	rate := observed[attempts]
	if ofCalls {
		rate = observed[arrivals]
	}
	for k := range figures {
		for i, w := range rate {
			switch lost := observed[failed][i]; {
			case k < failed || math.IsNaN(w):
				w = 1
			case k > failed && !math.IsNaN(lost):
				w *= 1 - lost
			}
			j.weights[k] = append(j.weights[k], w)
		}
		for _, p := range parts {
			for width := 1; len(known(observed[k][p.from:p.to])) >= fewSteps && width < 2*(p.to-p.from); width *= 2 {
				s := scale{part: p, width: min(width, p.to-p.from)}
				for a := range all {
					mean := 0.0
					for b := range all {
						d, _ := j.apart(k, s, all[a].course[k], all[b].course[k])
						mean += d / float64(max(len(all)-1, 1))
					}
					s.noise = max(s.noise, mean)
				}
				j.scales[k] = append(j.scales[k], s)
			}
		}
	}
	return j
}

// apart returns the distance of two curves, and the share of it that each step of the scale has.
func (j *judge) apart(figure int, s scale, a, b []float64) (sum float64, shares []float64) {
	whole := 0.0
	for from := s.from; from < s.to; from += s.width {
		to := min(from+s.width, s.to)
		x, w := j.mean(figure, a, from, to, 0)
		y, v := j.mean(figure, b, from, to, 0)
		share := 0.0
		if w > 0 && v > 0 {
			share = w * max(j.beyond(figure, b, from, to, x), j.beyond(figure, a, from, to, y))
			most := max(x, y)
			if figure == failed {
				most = max(most, clearlyFailed)
			}
			whole += w * most
		}
		sum, shares = sum+share, append(shares, share)
	}
	return sum / max(whole, math.SmallestNonzeroFloat64), shares
}

// beyond returns how far v is from what a curve has in some steps, and one step earlier and later.
func (j *judge) beyond(figure int, curve []float64, from, to int, v float64) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for shift := -1; shift <= 1; shift++ {
		if y, w := j.mean(figure, curve, from, to, shift); w > 0 {
			low, high = min(low, y), max(high, y)
		}
	}
	return max(low-v, v-high, 0)
}

// mean returns the weighted mean of a curve over the steps in which the figure was observed, and their weight.
func (j *judge) mean(figure int, curve []float64, from, to, shift int) (sum, weight float64) {
	for i := max(from, -shift); i < min(to, len(curve)-shift); i++ {
		if v, w := curve[i+shift], j.weights[figure][i]; !math.IsNaN(v + j.observed[figure][i]) {
			sum, weight = sum+w*v, weight+w
		}
	}
	return sum / max(weight, math.SmallestNonzeroFloat64), weight
}

// of returns the distance of a figure to some flights.
func (j *judge) of(figure int, all []flight) distance {
	m := median(all, figure)
	d := distance{Figure: names[figure], Distance: -1, Observed: j.observed[figure], Simulated: m}
	for _, s := range j.scales[figure] {
		var each []float64
		for _, f := range all {
			far, _ := j.apart(figure, s, d.Observed, f.course[figure])
			each = append(each, max(far-s.noise, 0))
		}
		if mean := average(each); mean > d.Distance || mean == d.Distance && s.name == d.Part {
			d.Distance, d.Low, d.High, d.Part = mean, slices.Min(each), slices.Max(each), s.name
			_, shares := j.apart(figure, s, d.Observed, m)
			from := s.from + slices.Index(shares, slices.Max(shares))*s.width
			to := min(from+s.width, s.to)
			d.From, d.To = time.Duration(from)*j.step, time.Duration(to)*j.step
			d.Seen, _ = j.mean(figure, d.Observed, from, to, 0)
			d.Flown, _ = j.mean(figure, m, from, to, 0)
		}
	}
	return d
}

// distances returns that of each figure, and the largest.
func (j *judge) distances(flown []flight) (all []distance, far float64) {
	for k := range figures {
		all = append(all, j.of(k, flown))
		far = max(far, all[k].Distance)
	}
	return all, far
}

// partsOf cuts the steps where the incident begins, which is known to a step, and where as few fail as before in both courses.
func partsOf(observed, simulated []float64, warmup, begin, end, steps int) []part {
	over := max(back(observed, begin, end), back(simulated, begin, end), begin+fewSteps)
	over, begin = min(over, steps), max(begin-1, warmup)
	return []part{{"before", warmup, begin}, {"incident", begin, over}, {"after", over, steps}}
}

// back returns the step from the end on, from which on no step has clearly more failures than there were before the beginning.
func back(failed []float64, begin, end int) int {
	normal := average(failed[:begin])
	if math.IsNaN(normal) {
		normal = 0
	}
	for i := len(failed) - 1; i >= end; i-- {
		if failed[i] > normal+clearlyFailed*(1-normal) {
			return i + 1
		}
	}
	return end
}
