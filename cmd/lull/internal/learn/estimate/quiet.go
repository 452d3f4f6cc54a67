package estimate

import (
	"math"
	"slices"
)

// A run is steps from the first up to, and without, the last.
type run struct{ from, to int }

// A calm is what is normal, and where it is not.
type calm struct {
	bad      []bool // steps that are not normal, alone or in incidents
	incident []run
	// Of the normal steps: the share that did not succeed, the bar above which slow begins, and the share above it.
	failing float64
	slowBar int
	slow    float64
	rate    float64   // of answers, median, for each step
	times   []float64 // of what was answered, counts over Edges
	n       float64
	p50     float64
}

// certain is the surprise, in standard deviations, from which on a step is not normal: once in some 100,000 steps by chance.
const certain = 4.5

// findCalm separates the normal steps from the others. It begins with the better third of all steps, by their median time and their share of
// failures, and takes in each step that is not certainly worse than those it has, until nothing changes. A step is worse if more fails than can be chance and
// twice the share, or more is slow (than 95 % of what is normal) than can be chance and three times the share, or much less is answered than arrives.
func (s *steps) findCalm() calm {
	n := len(s.Points)
	c := calm{bad: make([]bool, n)}
	medians, shares := make([]float64, n), make([]float64, n)
	for i := range n {
		counts, k := s.times(only(i), of(answered))
		medians[i] = s.quantile(counts, k, 0.5)
		shares[i] = (s.ended[cut][i] + s.ended[failed][i]) / s.all[i]
	}
	known := func(values []float64) (k []float64) {
		for _, v := range values {
			if !math.IsNaN(v) {
				k = append(k, v)
			}
		}
		return k
	}
	usual, least := quantileOf(known(medians), 0.3), quantileOf(known(shares), 0.3)
	for i := range n {
		c.bad[i] = math.IsNaN(shares[i]) || medians[i] > 1.5*usual || shares[i] > least+3*math.Sqrt(least*(1-least)/s.all[i])+1/s.all[i]
	}
	for range 10 {
		c.measure(s)
		bad := c.judge(s)
		if slices.Equal(bad, c.bad) {
			break
		}
		c.bad = bad
	}
	c.gather(s)
	c.forgive(s)
	c.measure(s)
	return c
}

// forgive takes for normal what is slow now and then: incidents in which nothing else is wrong, and which are short and mild, or three or more, unless one lasts
// three times as long as the median of them.
func (c *calm) forgive(s *steps) {
	var slow []float64
	medians := func(i int) float64 {
		times, n := s.times(only(i), of(answered))
		return s.quantile(times, n, 0.5)
	}
	alone := func(r run) bool {
		for i := r.from; i < r.to; i++ {
			if lost := or(s.all[i]-s.ended[answered][i], 0); surprise(lost, c.failing*s.all[i]) > certain || s.ended[answered][i] < c.rate/2 {
				return false
			}
		}
		return true
	}
	for _, r := range c.incident {
		if alone(r) {
			slow = append(slow, float64(r.to-r.from))
		}
	}
	c.incident = slices.DeleteFunc(c.incident, func(r run) bool {
		worst := 0.0
		for i := r.from; i < r.to; i++ {
			worst = max(worst, or(medians(i), 0))
		}
		usual := alone(r) && (len(slow) > 2 && float64(r.to-r.from) <= 3*median(slow) || r.to-r.from < 5 && worst < 5*c.p50)
		for i := r.from; usual && i < r.to; i++ {
			c.bad[i] = false
		}
		return usual
	})
}

// measure takes the figures of what is normal from the steps that are not bad.
func (c *calm) measure(s *steps) {
	good := func(i int) bool { return !c.bad[i] && !math.IsNaN(s.all[i]) }
	c.times, c.n = s.times(good, of(answered))
	c.p50 = s.quantile(c.times, c.n, 0.5)
	var all, lost float64
	var rates []float64
	for i := range s.Points {
		if good(i) {
			all += s.all[i]
			lost += s.ended[cut][i] + s.ended[failed][i]
			rates = append(rates, s.ended[answered][i])
		}
	}
	c.failing = lost / max(all, 1)
	c.rate = median(rates)
	// The bar above which 5 % are, or as near to that as the edges allow.
	above, best := 0.0, math.Inf(1)
	for i := len(c.times) - 1; i > 0; i-- {
		above += c.times[i] / max(c.n, 1)
		if d := math.Abs(math.Log(max(above, 1e-4) / 0.05)); d < best {
			best, c.slowBar, c.slow = d, i, max(above, 1/max(c.n, 1))
		}
	}
}

func (c *calm) judge(s *steps) []bool {
	bad := make([]bool, len(s.Points))
	for i := range bad {
		lost, ok := s.ended[cut][i]+s.ended[failed][i], s.ended[answered][i]
		if math.IsNaN(ok) {
			continue // nobody knows
		}
		bad[i] = surprise(lost, c.failing*s.all[i]) > certain && lost > (2*c.failing+0.02)*s.all[i] || c.slowAt(s, i)
	}
	for i := range bad {
		ok := s.ended[answered][i]
		expected := s.began[i]
		if math.IsNaN(expected) && c.near(bad, i) {
			expected = c.rate
		}
		if i > 0 && expected > 0 && ok < expected/2 && surprise(ok, expected) < -certain && s.at(i) > c.longest(s) {
			bad[i] = true
		}
	}
	return bad
}

// slowAt reports whether the answers of step i are slow.
func (c *calm) slowAt(s *steps, i int) bool {
	counts, ok := s.times(only(i), of(answered))
	late := 0.0
	for _, n := range counts[min(c.slowBar, len(counts)):] {
		late += n
	}
	return c.slowBar > 0 && c.slow < 0.3 && surprise(late, c.slow*ok) > certain && late > 3*c.slow*ok
}

// near reports whether a step next to i is bad.
func (c *calm) near(bad []bool, i int) bool {
	return slices.Contains(bad[max(i-3, 0):min(i+4, len(bad))], true)
}

// longest is the time in which nearly all requests end, in seconds: the beginning of the data, for which arrivals are known and ends are not.
func (c *calm) longest(s *steps) float64 {
	return s.quantile(c.times, c.n, 0.99)
}

// at returns when step i begins, in seconds from the first.
func (s *steps) at(i int) float64 { return float64(i) * s.length }

// gather makes incidents of bad steps. Two are one if the time between them is less than half of what came before, or three steps, or if more failed in it
// than is normal. One that is a single
// step in which less than a fifth more fails than usual is none: it counts as normal.
func (c *calm) gather(s *steps) {
	for i := range c.bad {
		if !c.bad[i] {
			continue
		}
		if k := len(c.incident); k > 0 {
			last := &c.incident[k-1]
			var lost, all float64
			for j := last.to; j < i; j++ {
				lost, all = lost+or(s.all[j]-s.ended[answered][j], 0), all+or(s.all[j], 0)
			}
			if i-last.to <= max(3, (last.to-last.from)/2) || surprise(lost, c.failing*all) > certain && lost > (2*c.failing+0.02)*all {
				last.to = i + 1
				continue
			}
		}
		c.incident = append(c.incident, run{i, i + 1})
	}
	c.incident = slices.DeleteFunc(c.incident, func(r run) bool {
		lost := s.ended[cut][r.from] + s.ended[failed][r.from]
		small := r.to-r.from == 1 && lost < 0.2*s.all[r.from] && s.ended[answered][r.from] > c.rate/2
		if small {
			c.bad[r.from] = false
		}
		return small
	})
	for _, r := range c.incident {
		for i := r.from; i < r.to; i++ {
			c.bad[i] = true
		}
	}
}
