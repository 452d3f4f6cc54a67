package estimate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
	"github.com/lullgo/lull/lab/sim"
)

// arrivals learns how many calls begin, over time. Callers know that. A server counts retries among them: what arrives in an
// incident is taken for calls only if it is more than retries explain.
func (e *estimator) arrivals() error {
	s := e.main
	for _, side := range []observed.Side{observed.Attempts, observed.Calls} {
		// Attempts that are only known when they end tell less than what the server sees begin, unless retries are known.
		if of := e.sum[side]; of != nil && (side == observed.Calls || of.begins() || !s.begins() || sum(of.retries, of.whole()) > 0) {
			s = of
		}
	}
	s = e.shown(s)
	counts := slices.Clone(s.came)
	what, pure := [...]string{"calls", "attempts, among them retries", "requests, among them retries"}[s.Side], s.Side == observed.Calls
	if s.countsRetries() && (s.Side == observed.Attempts || sum(s.retries, s.whole()) > 0) {
		what, pure = "first attempts", true
		for i, r := range s.retries {
			counts[i] -= r
		}
	}
	quiet := slices.Clone(counts)
	for i := range counts {
		of, r, disturbed := e.disturbed(s.At(i), s.At(i+1))
		if !disturbed {
			continue
		}
		quiet[i] = math.NaN()
		switch {
		case pure:
		case e.grew(of, r) || slices.ContainsFunc(e.main.incidents, func(m run) bool {
			return e.main.At(m.from).Before(of.At(r.to)) && of.At(r.from).Before(e.main.At(m.to)) && e.grew(e.main, m)
		}): // what comes before anything fails is calls
			counts[i] = min(counts[i], s.unfailed(s.step(of.At(r.from-1)), i))
		default:
			e.hidden = true
			counts[i] = math.NaN()
		}
	}
	stretches, means := segments(counts, 1)
	single, spread := dispersion(quiet, means, 1)
	if spread > 1 {
		stretches, means = segments(counts, spread)
		single, spread = dispersion(quiet, means, 1)
	}
	// The rate is that of the longest stretch outside of incidents.
	n := func(r run) float64 {
		return float64(len(slices.DeleteFunc(slices.Clone(quiet[r.from:r.to]), math.IsNaN)))
	}
	best := slices.MaxFunc(stretches, func(a, b run) int { return int(n(a) - n(b)) })
	total, took := sum(quiet, best), n(best)*s.length
	if total == 0 {
		return errors.New("nothing came while all was normal: want measurements from before the incident")
	}
	around := counted(total, spread).over(took)
	if !pure {
		around.low *= 1 - e.main.failing // each of those that failed may be one that was repeated
	}
	a := &e.fleet().Arrivals
	e.rate = total / took
	a.Rate = digits(e.rate, 4)
	shape := ""
	switch {
	case s.Exact && single < 0.5 && total/n(best) >= 5: // counters are interpolated, which makes them even
		a.Kind, shape = sim.Constant, ", as evenly as by a clock"
	case spread > 1:
		shape = fmt.Sprintf(", in counts that vary %s times as much as by chance alone", number(spread, 0))
		e.seen("dispersion of arrivals", number(spread, -1), number(spread, 1), "variance of counts over their mean; 1 is a Poisson process")
	}
	e.value(".arrivals.rate", number(around.low, -1), number(around.high, 1), "%s %s in %s%s", whole(total), what, duration(took, 0), shape)
	if len(stretches) > 1 {
		own := (around.high - around.low) / 2 / e.rate
		for k, r := range stretches {
			f := means[r.from] / (total / n(best))
			here := counted(means[r.from]*float64(r.to-r.from), spread).over(float64(r.to-r.from) * e.rate * s.length)
			at := seconds(s.at(r.from), 6)
			if k > 0 {
				a.Ramp = append(a.Ramp, sim.RampPoint{At: at, Factor: a.Ramp[len(a.Ramp)-1].Factor})
			}
			a.Ramp = append(a.Ramp, sim.RampPoint{At: at, Factor: digits(f, 3)})
			low, high := f-math.Hypot(here.low-f, f*own), f+math.Hypot(here.high-f, f*own)
			e.value(fmt.Sprintf(".arrivals.ramp.%d.factor", len(a.Ramp)-1), number(max(low, 0), -1), number(high, 1), "%s in %s", whole(means[r.from]*float64(r.to-r.from)),
				duration(float64(r.to-r.from)*s.length, 0))
		}
	}
	if e.hidden {
		e.ask(".arrivals.ramp", "", "metrics of the callers, by call",
			"How many calls began during the incident? The server saw attempts, and cannot tell retries from calls. Assumed: as many as around it.")
	}
	return nil
}

// unfailed returns the most that came in a step from the first to the last, before a tenth failed; +Inf if it failed at once.
func (s *steps) unfailed(first, last int) float64 {
	most := math.Inf(-1)
	for i := first; i <= last && s.lost[i] <= 0.1*s.all[i]; i++ {
		most = max(most, s.came[i])
	}
	if math.IsInf(most, -1) {
		return math.Inf(1)
	}
	return most
}

// grew reports whether more came in the incident than retries explain. Each retry follows a failure, which may be counted a step
// later. The callers know best what failed: a server does not see that they go.
func (e *estimator) grew(s *steps, r run) bool {
	usual := s.rate / (1 - s.failing)
	extra, at := 0.0, cmp.Or(e.sum[observed.Attempts], s)
	for i := max(r.from-3, 0); i < min(r.to, r.from+20); i++ {
		extra += or(s.came[i], usual) - usual
		lost := sum(at.lost, run{at.step(s.At(r.from - 3)), at.step(s.At(i + 2).Add(at.Step - 1))})
		n := float64(i - r.from + 4)
		if i >= r.from && extra-lost > max(5*math.Sqrt(usual*n), 0.3*usual*min(n-3, 3)) {
			return true
		}
	}
	return false
}
