package estimate

import (
	"math"
	"slices"
)

// calm is what is normal, and where it is not.
type calm struct {
	bad       []bool
	incidents []run
	// Of the normal steps: the share that did not succeed, the bar from which on answers are slow, and their share.
	failing float64
	slowBar int
	slow    float64
	rate    float64 // of answers, median, for each step
	usual   hist    // of answers
	median  float64
}

// certain is the surprise, in standard deviations, from which on a step is not normal: once in some 100,000 steps by chance.
const certain = 4.5

// findCalm separates the normal steps from the others. It begins with those of the better third, by their median time and their share of failures, and takes in
// each step that is not certainly worse than those it has, until nothing changes. A step is worse if more fails than can be chance and twice the share, or
// more is slow (than 95 % of what is normal) than can be chance and three times the share, or much less is answered than arrives.
func (s *steps) findCalm() {
	shares := make([]float64, len(s.all))
	for i := range shares {
		shares[i] = s.lost[i] / s.all[i]
	}
	time, share := quantileOf(s.p[1], 0.3), quantileOf(shares, 0.3)
	s.bad = make([]bool, len(s.all))
	for i, n := range s.all {
		s.bad[i] = math.IsNaN(shares[i]) || s.p[1][i] > 1.5*time || shares[i] > share+3*math.Sqrt(share*(1-share)/n)+1/n
	}
	for range 10 {
		s.measure()
		before := s.bad
		if s.judge(); slices.Equal(before, s.bad) {
			break
		}
	}
	s.gather()
	s.forgive()
	s.measure()
}

func (s *steps) good(i int) bool { return !s.bad[i] && !math.IsNaN(s.all[i]) }

// measure takes the figures of what is normal from the steps that are not bad.
func (s *steps) measure() {
	s.usual = s.times(s.whole(), s.good, answered)
	s.median = s.usual.quantile(0.5)
	var all, lost float64
	var rates []float64
	for i := range s.all {
		if s.good(i) {
			all, lost, rates = all+s.all[i], lost+s.lost[i], append(rates, s.ok[i])
		}
	}
	s.failing, s.rate = lost/max(all, 1), quantileOf(rates, 0.5)
	// The bar above which 5 % are, or as near to that as the edges allow.
	above, best := 0.0, math.Inf(1)
	for i := len(s.usual.counts) - 1; i > 0; i-- {
		above += s.usual.counts[i] / max(s.usual.n, 1)
		if d := math.Abs(math.Log(max(above, 1e-4) / 0.05)); d < best {
			best, s.slowBar, s.slow = d, i, max(above, 1/max(s.usual.n, 1))
		}
	}
}

func (s *steps) judge() {
	s.bad = make([]bool, len(s.all))
	for i := range s.bad {
		s.bad[i] = s.fails(s.lost[i], s.all[i]) || s.late(run{i, i + 1}, 3)
	}
	for i, ok := range s.ok {
		expected := s.began[i]
		if math.IsNaN(expected) && slices.Contains(s.bad[max(i-3, 0):min(i+4, len(s.bad))], true) {
			expected = s.rate
		}
		if s.at(i) > s.usual.quantile(0.99) && ok < expected/2 && surprise(ok, expected) < -certain { // at first more begins than ends
			s.bad[i] = true
		}
	}
}

// fails reports whether lost of all is more than normal.
func (s *steps) fails(lost, all float64) bool {
	return lost > (2*s.failing+0.02)*all && surprise(lost, s.failing*all) > certain
}

// late reports whether more answers are slow than normal, and that many times as many.
func (s *steps) late(r run, times float64) bool {
	above, all := 0.0, sum(s.ok, r)
	for i := r.from; i < min(r.to, len(s.Points)); i++ {
		for code, b := range s.Points[i].Ended {
			if b.Counts != nil && answered(code) {
				above += sum(b.Counts, run{s.slowBar, len(b.Counts)})
			}
		}
	}
	return s.slowBar > 0 && s.slow < 0.3 && above > times*s.slow*all && surprise(above, s.slow*all) > certain
}

// gather makes incidents of bad steps. Two are one if the time between them is less than half of what came before, or three steps, or if more failed in it than is
// normal. One that is a single step in which less than a fifth fails is none: it counts as normal.
func (s *steps) gather() {
	for i, bad := range s.bad {
		if !bad {
			continue
		}
		if k := len(s.incidents); k > 0 {
			last := &s.incidents[k-1]
			gap := run{last.to, i}
			if i-last.to <= max(3, (last.to-last.from)/2) || s.fails(sum(s.lost, gap), sum(s.all, gap)) {
				last.to = i + 1
				continue
			}
		}
		s.incidents = append(s.incidents, run{i, i + 1})
	}
	s.leaveOut(func(r run) bool {
		return r.to-r.from == 1 && s.lost[r.from] < 0.2*s.all[r.from] && s.ok[r.from] > s.rate/2
	})
}

// leaveOut takes some incidents for normal.
func (s *steps) leaveOut(normal func(run) bool) {
	s.incidents = slices.DeleteFunc(s.incidents, normal)
	clear(s.bad)
	for _, r := range s.incidents {
		for i := r.from; i < r.to; i++ {
			s.bad[i] = true
		}
	}
}

// forgive takes for normal what is slow now and then: incidents in which nothing else is wrong, and which are short and mild, or three or more, unless one lasts
// three times as long as the median of them.
func (s *steps) forgive() {
	var lengths []float64
	slow := func(r run) bool {
		for i := r.from; i < r.to; i++ {
			if surprise(s.lost[i], s.failing*s.all[i]) > certain || s.ok[i] < s.rate/2 {
				return false
			}
		}
		return true
	}
	for _, r := range s.incidents {
		if slow(r) {
			lengths = append(lengths, float64(r.to-r.from))
		}
	}
	s.leaveOut(func(r run) bool {
		mild := r.to-r.from < 8 && s.at(r.to-r.from) < 8 && quantileOf(s.p[1][r.from:r.to], 1) < 5*s.median
		return slow(r) && (mild || len(lengths) > 2 && float64(r.to-r.from) <= 3*quantileOf(lengths, 0.5))
	})
}
