package estimate

import (
	"math"
	"slices"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
	"github.com/lullgo/lull/internal/choice"
)

// How requests end.
func answered(code string) bool { return !cut(code) && !failed(code) } // also by 404: the service has worked
func cut(code string) bool { // nobody waited any longer
	return code == "timeout" || code == "canceled" || code == "408" || code == "499" || code == "504"
}
func failed(code string) bool { // refused, reset, 429, 5xx
	return !cut(code) && (code == "429" || len(code) != 3 || code[0] > '4')
}

// A run is steps from the first up to, and without, the last.
type run struct{ from, to int }

// steps is a series as the estimates need it. What is not known is NaN.
type steps struct {
	*observed.Series
	length                     float64 // of a step, in seconds
	began, retries             []float64
	came                       []float64    // began, or if that is unknown what ended
	ok, cut, failed, lost, all []float64    // what ended answered, cut off, failed; the latter two; in any way
	p                          [3][]float64 // the quartiles of the times of what was answered
	calm
}

// newSteps adds up the series of parts (hosts), which have the same edges, in steps of at least the given length.
func newSteps(parts []*observed.Series, least time.Duration) *steps {
	p := parts[0]
	if len(parts) > 1 || least > p.Step {
		p = added(parts, least)
	}
	n := len(p.Points)
	s := &steps{Series: p, length: p.Step.Seconds()}
	for _, list := range []*[]float64{&s.began, &s.retries, &s.ok, &s.cut, &s.failed, &s.lost, &s.all, &s.p[0], &s.p[1], &s.p[2]} {
		*list = slices.Repeat([]float64{math.NaN()}, n)
	}
	for i, p := range p.Points {
		if p.Missing {
			continue
		}
		s.began[i] = choice.Either(p.Began >= 0, p.Began, math.NaN())
		s.retries[i] = choice.Either(p.Retries >= 0, p.Retries, math.NaN())
		s.ok[i], s.cut[i], s.failed[i] = 0, 0, 0
		for code, b := range p.Ended {
			switch {
			case cut(code):
				s.cut[i] += b.N
			case failed(code):
				s.failed[i] += b.N
			default:
				s.ok[i] += b.N
			}
		}
		s.lost[i] = s.cut[i] + s.failed[i]
		s.all[i] = s.ok[i] + s.lost[i]
		h := s.times(run{i, i + 1}, nil, answered)
		for k := range s.p {
			s.p[k][i] = h.quantile(float64(k+1) / 4)
		}
	}
	s.came = s.all
	if s.begins() {
		s.came = s.began
	} else if s.Side == observed.Calls {
		s.came = s.beginnings()
	}
	return s
}

// beginnings returns what began in each step, by what ended and how long that took. With retries, calls of an incident end long after they began.
func (s *steps) beginnings() []float64 {
	came := make([]float64, len(s.all))
	put := func(i int, n float64) {
		if i >= 0 {
			came[i] += n
		}
	}
	for i, p := range s.Points {
		for _, b := range p.Ended {
			if b.Counts == nil {
				put(i, b.N)
			}
			for k, n := range b.Counts {
				ago := hist{Series: s.Series}.middle(k) / s.length
				whole := math.Floor(ago)
				put(i-int(whole), n*(1-ago+whole))
				put(i-int(whole)-1, n*(ago-whole))
			}
		}
	}
	return only(came, func(i int) bool { return !s.Points[i].Missing })
}

func added(parts []*observed.Series, least time.Duration) *observed.Series {
	all := *parts[0]
	end := func(p *observed.Series) time.Time { return p.At(len(p.Points)) }
	from := slices.MinFunc(parts, func(p, q *observed.Series) int { return p.Start.Compare(q.Start) }).Start
	to := end(slices.MaxFunc(parts, func(p, q *observed.Series) int { return end(p).Compare(end(q)) }))
	for _, p := range parts {
		all.Step = max(all.Step, p.Step)
	}
	all.Start, all.Processes = from, 0
	all.Step *= max((least+all.Step-1)/all.Step, 1)
	all.Points = make([]observed.Point, (to.Sub(from)+all.Step-1)/all.Step)
	for i := range all.Points {
		all.Points[i] = observed.Point{Missing: true}
	}
	for _, p := range parts {
		all.Processes += p.Processes
		all.Resolution = max(all.Resolution, p.Resolution)
		for i := range p.Points {
			if !p.Points[i].Missing {
				add(&all.Points[p.At(i).Sub(from)/all.Step], &p.Points[i])
			}
		}
	}
	return &all
}

func add(p, q *observed.Point) {
	plus := func(a *float64, b float64) {
		if *a += b; b < 0 || *a < b {
			*a = -1
		}
	}
	plus(&p.Began, q.Began)
	plus(&p.Retries, q.Retries)
	p.Missing = false
	for code, bars := range q.Ended {
		p.Add(code, bars, 1)
	}
}

// begins reports whether it is known when requests began.
func (s *steps) begins() bool { return sum(s.began, s.whole()) > 0 }

// countsRetries reports whether it is known how many of those that came were retries.
func (s *steps) countsRetries() bool {
	return !slices.ContainsFunc(s.Points, func(p observed.Point) bool { return p.Retries < 0 && !p.Missing })
}

// step returns the number of the step with that time; in its middle, and at its beginning.
func (s *steps) step(at time.Time) int {
	return min(max(int(at.Sub(s.Start)/s.Step), 0), len(s.Points))
}

// at returns when step i begins, in seconds from the first.
func (s *steps) at(i int) float64 { return float64(i) * s.length }

// whole is all steps.
func (s *steps) whole() run { return run{0, len(s.Points)} }
