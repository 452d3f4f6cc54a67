package estimate

import (
	"math"
	"slices"
)

// calm is what is normal, and where it is not.
type calm struct {
	bad       []bool
	incidents []run
	// Of the normal steps: the share that did not succeed; answers longer than their median, and than 95 % of them.
	failing    float64
	half, slow tail
	rate, peak float64 // of answers in a step: the median, and the most
	usual      hist    // of answers
	median     float64
}

// A tail is the answers from a bar on: how many they are in each step, and their share of what is normal.
type tail struct {
	in    []float64
	share float64
}

// certain is the surprise, in standard deviations, from which on a step is not normal: once in some 100,000 steps by chance.
const certain = 5

// findCalm separates the normal steps from the others. It begins with the better tenths of the time, by their median time and
// their share of failures. It takes in what is not certainly worse than those it has, until nothing changes.
func (s *steps) findCalm() {
	s.bad = make([]bool, len(s.all))
	var times, shares [10]float64
	for k := range times {
		r := run{k * len(s.all) / 10, (k + 1) * len(s.all) / 10}
		times[k], shares[k] = quantileOf(s.p[1][r.from:r.to], 0.5), sum(s.lost, r)/sum(s.all, r)
	}
	time, share := quantileOf(times[:], 0.3), quantileOf(shares[:], 0.3)
	for i := range s.bad {
		k := 10 * i / len(s.bad)
		s.bad[i] = times[k] > 1.5*time || shares[k] > 2*share+0.02
	}
	for range 10 {
		s.measure()
		before := s.bad
		if s.judge(); slices.Equal(before, s.bad) {
			break
		}
	}
	s.gather()
	s.measure()
}

func (s *steps) good(i int) bool { return !s.bad[i] && !math.IsNaN(s.all[i]) }

// measure takes the figures of what is normal from the steps that are not bad.
func (s *steps) measure() {
	s.usual = s.times(s.whole(), s.good, answered)
	s.median = s.usual.quantile(0.5)
	rates, all := only(s.ok, s.good), sum(only(s.all, s.good), s.whole())
	s.failing, s.rate, s.peak = sum(only(s.lost, s.good), s.whole())/max(all, 1), quantileOf(rates, 0.5), quantileOf(rates, 1)
	s.half, s.slow = s.tail(s.usual, 0.5), s.tail(s.usual, 0.05)
}

// tail returns the answers above the bar that has such a share of h above it, or as near to that as the edges allow.
func (s *steps) tail(h hist, share float64) tail {
	t, bar, above, best := tail{in: make([]float64, len(s.all))}, len(s.Edges), 0.0, math.Inf(1)
	for i := len(h.counts) - 1; i > 0; i-- {
		above += h.counts[i] / max(h.n, 1)
		if d := math.Abs(math.Log(max(above, 1e-4) / share)); d < best {
			best, bar, t.share = d, i, max(above, 1/max(h.n, 1))
		}
	}
	for i := range t.in {
		t.in[i] = sum(s.times(run{i, i + 1}, nil, answered).counts, run{bar, len(h.counts)})
	}
	return t
}

// judge finds what is worse than normal: stretches in which twice as many fail, three times as many are slow, or two fifths
// more take longer than the median, and steps in which much less is answered than arrives.
func (s *steps) judge() {
	were := s.bad
	s.bad = make([]bool, len(s.all))
	s.mark(s.lost, s.all, s.failing, 2*s.failing+0.02, were)
	s.mark(s.slow.in, s.ok, s.slow.share, 3*s.slow.share, were)
	s.mark(s.half.in, s.ok, s.half.share, 1.4*s.half.share, were)
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

// mark marks the stretches in which more than the share worst of n are in k, if that is no chance. Normal is another share, with
// the dispersion that it has in most fifths of the time, without the steps that were bad so far. A stretch goes from where k
// exceeds the share to where the excess is the greatest, unless what lies between is clearly below it.
func (s *steps) mark(k, n []float64, normal, worst float64, were []bool) {
	if worst >= 1 {
		return
	}
	spreads, quiet := make([]float64, 5), only(k, func(i int) bool { return !were[i] })
	for i := range spreads {
		from, to := i*len(k)/5, (i+1)*len(k)/5
		_, spreads[i] = dispersion(quiet[from:to], n[from:to], normal)
	}
	enough := certain * math.Sqrt(quantileOf(spreads, 0.5)*(1-normal))
	for from := 0; from < len(k); from++ {
		excess, most, to := 0.0, 0.0, from
		for i := from; i < len(k); i++ {
			if excess += or(k[i]-worst*n[i], 0); excess > most {
				most, to = excess, i+1
			}
			if gap := (run{to, i + 1}); excess <= 0 || surprise(sum(k, gap), worst*sum(n, gap)) < -3*math.Sqrt(1-worst) {
				break
			}
		}
		if r := (run{from, to}); surprise(sum(k, r), normal*sum(n, r)) > enough {
			for i := r.from; i < r.to; i++ {
				s.bad[i] = true
			}
		}
		from = max(from, to-1)
	}
}

// late reports whether more answers are slow than normal, and that many times as many.
func (s *steps) late(r run, times float64) bool {
	slow, usual := sum(s.slow.in, r), s.slow.share*sum(s.ok, r)
	return s.slow.share < 0.3 && slow > times*usual && surprise(slow, usual) > certain
}

// gather makes incidents of bad steps. Two are one if there are three steps or fewer between them. One that is short and mild
// is none and counts as normal: a step, or fewer than five in which half take less than twice as long, if less than a fifth fails.
func (s *steps) gather() {
	for i, bad := range s.bad {
		if k := len(s.incidents); bad && k > 0 && i-s.incidents[k-1].to <= 3 {
			s.incidents[k-1].to = i + 1
		} else if bad {
			s.incidents = append(s.incidents, run{i, i + 1})
		}
	}
	s.incidents = slices.DeleteFunc(s.incidents, func(r run) bool {
		n := r.to - r.from
		mild := n == 1 || n < 5 && quantileOf(s.p[1][r.from:r.to], 1) < 2*s.median
		return mild && sum(s.lost, r) < 0.2*sum(s.all, r) && sum(s.ok, r) > float64(n)*s.rate/2
	})
	clear(s.bad)
	for _, r := range s.incidents {
		for i := r.from; i < r.to; i++ {
			s.bad[i] = true
		}
	}
}
