package estimate

import (
	"math"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
)

// An ending is how a request ended.
type ending uint8

const (
	answered ending = iota // also by 404: the service has worked
	cut                    // nobody waited any longer
	failed                 // refused, reset, 429, 5xx
	endings
)

func endingOf(code string) ending {
	switch code {
	case "timeout", "canceled", "408", "499", "504":
		return cut
	case "429":
		return failed
	case "ok", "OK", "0":
		return answered
	}
	if len(code) == 3 && code[0] >= '1' && code[0] <= '4' {
		return answered
	}
	return failed
}

// steps is a series as the estimates need it.
type steps struct {
	*observed.Series
	length  float64            // of a step, in seconds
	began   []float64          // NaN: unknown
	retries []float64          // NaN: unknown
	held    []float64          // requests in progress at the end; NaN: unknown
	ended   [endings][]float64 // NaN: unknown
	all     []float64          // ended in any way
}

// newSteps adds up the series of parts (hosts), which have the same edges, in steps of at least the given length.
func newSteps(parts []*observed.Series, least time.Duration) *steps {
	if p := parts[0]; len(parts) == 1 && least <= p.Step {
		return countSteps(p)
	}
	first := parts[0]
	from, to, step := first.Start, first.At(len(first.Points)), first.Step
	for _, p := range parts {
		step = max(step, p.Step)
		if p.Start.Before(from) {
			from = p.Start
		}
		if end := p.At(len(p.Points)); end.After(to) {
			to = end
		}
	}
	step *= max((least+step-1)/step, 1)
	sum := *first
	sum.Start, sum.Step, sum.Processes = from, step, 0
	sum.Points = make([]observed.Point, (to.Sub(from)+step-1)/step)
	for i := range sum.Points {
		sum.Points[i] = observed.Point{Missing: true}
	}
	for _, p := range parts {
		sum.Processes += p.Processes
		sum.Resolution = max(sum.Resolution, p.Resolution)
		for k := range p.Points {
			addPoint(&sum.Points[p.At(k).Sub(from)/step], &p.Points[k], k == 0 || p.At(k).Sub(from)/step != p.At(k-1).Sub(from)/step)
		}
	}
	return countSteps(&sum)
}

// addPoint adds q to p. InFlight is of the last point of a part that falls into the step.
func addPoint(p, q *observed.Point, first bool) {
	if q.Missing {
		return
	}
	if p.Missing {
		*p = observed.Point{Ended: map[string]*observed.Bars{}}
		first = true
	}
	add := func(a *float64, b float64) {
		if *a += b; b < 0 || *a < b {
			*a = -1
		}
	}
	add(&p.Began, q.Began)
	add(&p.Retries, q.Retries)
	if first {
		add(&p.InFlight, q.InFlight)
	} else if p.InFlight >= 0 {
		p.InFlight = q.InFlight
	}
	for code, bars := range q.Ended {
		b := p.Ended[code]
		if b == nil {
			b = &observed.Bars{}
			p.Ended[code] = b
		}
		if bars.Counts != nil && b.Counts == nil {
			b.Counts = make([]float64, len(bars.Counts))
		}
		for i, n := range bars.Counts {
			b.Counts[i] += n
		}
		b.N += bars.N
		b.Sum += bars.Sum
	}
}

func countSteps(of *observed.Series) *steps {
	n := len(of.Points)
	s := &steps{Series: of, length: of.Step.Seconds(), began: make([]float64, n), retries: make([]float64, n), held: make([]float64, n), all: make([]float64, n)}
	for k := range s.ended {
		s.ended[k] = make([]float64, n)
	}
	known := func(v float64, missing bool) float64 {
		if v < 0 || missing {
			return math.NaN()
		}
		return v
	}
	for i := range of.Points {
		p := &of.Points[i]
		s.began[i], s.retries[i], s.held[i] = known(p.Began, p.Missing), known(p.Retries, p.Missing), known(p.InFlight, p.Missing)
		for code, b := range p.Ended {
			s.ended[endingOf(code)][i] += b.N
			s.all[i] += b.N
		}
		if p.Missing {
			s.all[i] = math.NaN()
			for k := range s.ended {
				s.ended[k][i] = math.NaN()
			}
		}
	}
	return s
}

// arrived returns what began in each step; where that is unknown, what ended.
func (s *steps) arrived() []float64 {
	for _, b := range s.began {
		if !math.IsNaN(b) {
			return s.began
		}
	}
	return s.all
}

// times adds up the bars of all that ended that way in the steps that use wants, by counts over Edges; n is their number.
func (s *steps) times(use func(i int) bool, want func(code string) bool) (counts []float64, n float64) {
	counts = make([]float64, len(s.Edges)+1)
	for i := range s.Points {
		if !use(i) {
			continue
		}
		for code, b := range s.Points[i].Ended {
			if b.Counts == nil || !want(code) {
				continue
			}
			for k, c := range b.Counts {
				counts[k] += c
				n += c
			}
		}
	}
	return counts, n
}

func of(kinds ...ending) func(string) bool {
	return func(code string) bool {
		for _, k := range kinds {
			if endingOf(code) == k {
				return true
			}
		}
		return false
	}
}

func only(i int) func(int) bool { return func(k int) bool { return k == i } }

// quantile returns the time that a share q does not exceed, in seconds; NaN if there are none.
func (s *steps) quantile(counts []float64, n, q float64) float64 {
	low, high := s.barOf(counts, q*n)
	if math.IsInf(high, 1) {
		return low
	}
	if s.Exact {
		return math.Sqrt(max(low, 1e-6) * high)
	}
	return low + (high-low)*s.within(counts, q*n)
}

// barOf returns the ends of the bar with the case of that rank.
func (s *steps) barOf(counts []float64, rank float64) (low, high float64) {
	sum, at := 0.0, -1
	for i, c := range counts {
		if c > 0 {
			at = i
		}
		if sum += c; sum >= rank && c > 0 {
			break
		}
	}
	if at < 0 {
		return math.NaN(), math.NaN()
	}
	if at > 0 {
		low = s.Edges[at-1]
	}
	if at == len(s.Edges) {
		return low, math.Inf(1)
	}
	return low, s.Edges[at]
}

// within returns where in its bar the case of that rank is, from 0 to 1.
func (s *steps) within(counts []float64, rank float64) float64 {
	sum := 0.0
	for _, c := range counts {
		if sum+c >= rank && c > 0 {
			return (rank - sum) / c
		}
		sum += c
	}
	return 1
}

// quantileSpan is the interval of a quantile by order statistics: the ranks q·n ± 1.96·√(n·q·(1-q)), and the outer ends of their bars.
func (s *steps) quantileSpan(counts []float64, n, q, spread float64) span {
	half := z95 * math.Sqrt(n*q*(1-q)*max(spread, 1))
	low, _ := s.barOf(counts, q*n-half)
	if q*n+half > n {
		return span{low, math.Inf(1)}
	}
	_, high := s.barOf(counts, q*n+half)
	return span{low, high}
}

// mean returns the mean of counts, in seconds; of a bar the middle.
func (s *steps) mean(counts []float64) float64 {
	sum, n := 0.0, 0.0
	for i, c := range counts {
		switch {
		case c == 0:
		case i == len(s.Edges):
			sum += c * s.Edges[i-1]
		case i == 0:
			sum += c * s.Edges[0] / 2
		default:
			sum += c * (s.Edges[i-1] + s.Edges[i]) / 2
		}
		n += c
	}
	return sum / n
}

// or returns v, or another value if that is not known.
func or(v, otherwise float64) float64 {
	if math.IsNaN(v) {
		return otherwise
	}
	return v
}
