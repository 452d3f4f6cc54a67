package estimate

import (
	"math"
	"slices"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
)

// A hist is how long requests took.
type hist struct {
	*observed.Series
	counts []float64 // one more than Edges
	n      float64
	codes  map[string]float64 // how many ended how, also without a time
}

// times adds up what ended in some way in a run of steps, or in those of it that use wants (nil: all).
func (s *steps) times(r run, use func(int) bool, ended func(code string) bool) hist {
	h := hist{s.Series, make([]float64, len(s.Edges)+1), 0, map[string]float64{}}
	for i := max(r.from, 0); i < min(r.to, len(s.Points)); i++ {
		for code, b := range s.Points[i].Ended {
			if use != nil && !use(i) || !ended(code) {
				continue
			}
			h.codes[code] += b.N
			for k, c := range b.Counts {
				h.counts[k] += c
				h.n += c
			}
		}
	}
	return h
}

// bar returns the ends of the bar with the case of that rank, and where in the bar it is, from 0 to 1.
func (h hist) bar(rank float64) (low, high, part float64) {
	sum, at := 0.0, -1
	for i, c := range h.counts {
		if c == 0 {
			continue
		}
		at = i
		if sum+c >= rank {
			part = (rank - sum) / c
			break
		}
		sum, part = sum+c, 1
	}
	if at < 0 {
		return math.NaN(), math.NaN(), 0
	}
	low, high = h.ends(at)
	return low, high, part
}

// ends returns the ends of a bar.
func (h hist) ends(bar int) (low, high float64) {
	high = math.Inf(1)
	if bar > 0 {
		low = h.Edges[bar-1]
	}
	if bar < len(h.Edges) {
		high = h.Edges[bar]
	}
	return low, high
}

// quantile returns the time that a share q does not exceed, in seconds; NaN if there are none.
func (h hist) quantile(q float64) float64 {
	low, high, part := h.bar(q * h.n)
	if math.IsInf(high, 1) {
		return low
	}
	return low + (high-low)*part
}

// around is the interval of a quantile by order statistics: the ranks q·n ± z·√(n·q·(1-q)), and the outer ends of their bars.
func (h hist) around(q, spread float64) span {
	half := z95 * math.Sqrt(h.n*q*(1-q)*max(spread, 1))
	low, _, _ := h.bar(q*h.n - half)
	_, high, _ := h.bar(q*h.n + half)
	if q*h.n+half > h.n {
		high = math.Inf(1)
	}
	return span{low, high}
}

// mean returns the mean, in seconds; of a bar the middle counts.
func (h hist) mean() float64 {
	sum := 0.0
	for i, c := range h.counts {
		sum += c * h.middle(i)
	}
	return sum / h.n
}

// middle returns the middle of a bar; of the last one, which has no upper end, its lower end.
func (h hist) middle(bar int) float64 {
	low, high := h.ends(bar)
	return (low + min(high, h.Edges[len(h.Edges)-1])) / 2
}

// only returns the values of the steps that use wants; those of others are unknown.
func only(values []float64, use func(int) bool) []float64 {
	values = slices.Clone(values)
	for i := range values {
		if !use(i) {
			values[i] = math.NaN()
		}
	}
	return values
}
