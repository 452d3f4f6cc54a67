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
	fewSteps      = 3 // of a part, or known ones: too few to compare
)

// A part is some steps: those before the incident, those of it, and those after it.
type part struct {
	name     string
	from, to int
}

// A distance is how far the simulated course of a figure is from what was observed.
//
// It is the part of what either of two curves has that only one of them has:
//
//	d(a, b) = sum w |a - b| / sum w max(a, b)
//
// from 0, alike, to 1, nothing in common: the distance of Ruzicka (1958), which is the one of Jaccard for amounts. So 0.1 means
// that the curves differ by a tenth. The weight w of a step is 1 for rates. For the share of failures and for times it is the
// observed rate, so that single requests count alike; the share counts as at least 5 % in the maximum.
//
// Resolution: requests are counted in whole steps, so what is simulated may lie a step aside. A value is compared with the
// nearest one between the smallest and the largest of three steps, in both directions, and the larger difference counts.
//
// Chance: a perfect model differs, too. From d(observed, simulated) the mean d of two seeds is subtracted (as in the energy
// score: Gneiting and Raftery, "Strictly proper scoring rules", 2007). So that chance hides no difference that lasts, this is
// done for steps of single, double, fourfold width and so on, up to the sum of the whole part. The largest distance counts,
// of all widths and of the parts before, during and after the incident.
//
// Steps of which the figure was not measured are left out on both sides, and a part with fewer than three others is.
type distance struct {
	figure          int
	value           float64 // mean of the seeds
	low, high       float64 // of the seeds
	part            part
	width           int // steps
	from, to        time.Duration
	seen, simulated float64 // between these
	judged          bool
}

// A scale is a part in steps of some width, and the mean distance between two seeds in it.
type scale struct {
	part
	width int
	noise float64
}

// A judge compares flights with what was observed.
type judge struct {
	observed course
	step     time.Duration
	weights  []float64 // of shares and times
	scales   [figures][]scale
}

// newJudge learns from flights of one world with several seeds what chance does.
func newJudge(observed course, ofCalls bool, step time.Duration, flown []course, parts []part) *judge {
	j := &judge{observed: observed, step: step, weights: observed[attempts]}
	if ofCalls || observed.known(attempts, 0, len(j.weights)) == 0 {
		j.weights = observed[arrivals]
	}
	for k := range figures {
		for _, p := range parts {
			if observed.known(k, p.from, p.to) < fewSteps {
				continue
			}
			for width := 1; ; width *= 2 {
				s := scale{part: p, width: min(width, p.to-p.from)}
				n := 0.0
				for a := range flown {
					for b := range a {
						s.noise += j.apart(k, s, flown[a][k], flown[b][k], nil)
						n++
					}
				}
				s.noise /= max(n, 1)
				j.scales[k] = append(j.scales[k], s)
				if width >= p.to-p.from {
					break
				}
			}
		}
	}
	return j
}

// apart returns the distance of two curves, and calls each, if not nil, with the share of it that a step has.
func (j *judge) apart(figure int, s scale, a, b []float64, each func(from, to int, share float64)) float64 {
	var sum, whole float64
	var shares []float64
	for from := s.from; from < s.to; from += s.width {
		to := min(from+s.width, s.to)
		x, w := j.mean(figure, a, from, to)
		y, known := j.mean(figure, b, from, to)
		var d float64
		if w > 0 && known > 0 {
			d = math.Abs(x - y)
			if s.width < s.to-s.from {
				d = max(j.beside(figure, b, from, to, s.width, x, y), j.beside(figure, a, from, to, s.width, y, x))
			}
			most := max(x, y)
			if figure == failed {
				most = max(most, clearlyFailed)
			}
			whole += w * most
		}
		sum += w * d
		shares = append(shares, w*d)
	}
	if whole == 0 {
		return 0
	}
	for i := range shares {
		if each != nil {
			from := s.from + i*s.width
			each(from, min(from+s.width, s.to), shares[i]/whole)
		}
	}
	return sum / whole
}

// beside returns how far v is from what a curve has in a step, here, and in those beside it.
func (j *judge) beside(figure int, curve []float64, from, to, width int, v, here float64) float64 {
	low, high := here, here
	for _, shift := range []int{-width, width} {
		if a, b := max(from+shift, 0), min(to+shift, len(curve)); a < b {
			if y, w := j.mean(figure, curve, a, b); w > 0 {
				low, high = min(low, y), max(high, y)
			}
		}
	}
	return max(low-v, v-high, 0)
}

// mean returns the weighted mean of a curve over some steps, and the weight of those in which the figure was observed.
func (j *judge) mean(figure int, curve []float64, from, to int) (mean, weight float64) {
	var sum float64
	for i := from; i < to && i < len(curve); i++ {
		w := 1.0
		if figure >= failed && !math.IsNaN(j.weights[i]) {
			w = j.weights[i]
		}
		if v := curve[i]; !math.IsNaN(v) && !math.IsNaN(j.observed[figure][i]) {
			sum, weight = sum+w*v, weight+w
		}
	}
	if weight == 0 {
		return 0, 0
	}
	return sum / weight, weight
}

// of returns the distance of a figure to some flights.
func (j *judge) of(figure int, flown []course) distance {
	d := distance{figure: figure, judged: len(j.scales[figure]) > 0, value: -1}
	var worst scale
	for _, s := range j.scales[figure] {
		each := make([]float64, len(flown))
		sum := 0.0
		for i := range flown {
			each[i] = max(j.apart(figure, s, j.observed[figure], flown[i][figure], nil)-s.noise, 0)
			sum += each[i]
		}
		if mean := sum / float64(len(flown)); mean > d.value {
			d.value, d.low, d.high = mean, slices.Min(each), slices.Max(each)
			d.part, d.width, worst = s.part, s.width, s
		}
	}
	if !d.judged {
		d.value = 0
		return d
	}
	m := median(flown)
	from, to := j.worst(figure, worst, m[figure])
	d.from, d.to = time.Duration(from)*j.step, time.Duration(to)*j.step
	d.seen, _ = j.mean(figure, j.observed[figure], from, to)
	d.simulated, _ = j.mean(figure, m[figure], from, to)
	return d
}

// worst returns the steps around the one with the largest difference, as far as it is at least half as large.
func (j *judge) worst(figure int, s scale, m []float64) (from, to int) {
	type stretch struct {
		from, to int
		share    float64
	}
	var all []stretch
	j.apart(figure, s, j.observed[figure], m, func(from, to int, share float64) { all = append(all, stretch{from, to, share}) })
	most := 0
	for i := range all {
		if all[i].share > all[most].share {
			most = i
		}
	}
	first, last := most, most
	for first > 0 && all[first-1].share >= all[most].share/2 {
		first--
	}
	for last < len(all)-1 && all[last+1].share >= all[most].share/2 {
		last++
	}
	return all[first].from, all[last].to
}

// partsOf cuts the steps where the incident begins, which is known to a step, and where it is over in both.
func partsOf(observed, simulated course, warmup, begin, end, steps int) []part {
	over := max(end, back(observed, begin, end), back(simulated, begin, end))
	over = min(max(over, begin+fewSteps), steps)
	begin = max(begin-1, warmup)
	return []part{{"before", warmup, begin}, {"incident", begin, over}, {"after", over, steps}}
}

// back returns the step in which a course is as before again, for good: after the last one in which clearly more fails.
func back(c course, begin, end int) int {
	normal, n := 0.0, 0.0
	for _, v := range c[failed][:begin] {
		if !math.IsNaN(v) {
			normal, n = normal+v, n+1
		}
	}
	normal /= max(n, 1)
	for i := len(c[failed]) - 1; i >= end; i-- {
		if c[failed][i] > normal+clearlyFailed*(1-normal) {
			return i + 1
		}
	}
	return end
}
