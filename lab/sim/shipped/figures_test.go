package shipped

import (
	"context"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/lab/sim"
)

// A figure is one number about a flight, read in the same way from either side.
type figure struct {
	name string
	of   func(*sim.Result) float64
	// calls is how many calls it is about: one of them more or less is the least
	// that can be seen. nil: it does not count calls.
	calls func(*sim.Result) float64
}

// figuresOf are those that are compared for a scenario.
func figuresOf(s *sim.Scenario) []figure {
	all := func(r *sim.Result) float64 { return float64(r.Totals.Calls) }
	perCall := func(name string, n func(*sim.Totals) int64) figure {
		return figure{name, func(r *sim.Result) float64 { return float64(n(&r.Totals)) / all(r) }, all}
	}
	fs := []figure{
		perCall("attempts per call", func(t *sim.Totals) int64 { return t.Attempts }),
		perCall("success rate", func(t *sim.Totals) int64 { return t.Succeeded }),
		perCall("retries per call", func(t *sim.Totals) int64 { return t.Retries }),
		perCall("attempts answered with an error, per call", func(t *sim.Totals) int64 { return t.AttemptsFailed }),
		perCall("attempts timed out, per call", func(t *sim.Totals) int64 { return t.AttemptsTimedOut }),
		perCall("calls without an attempt", func(t *sim.Totals) int64 { return t.Refused }),
		{"mean time to success, ms", func(r *sim.Result) float64 { return r.Totals.MeanCompletion.Seconds() * 1000 }, nil},
	}
	for why := engine.Success + 1; !strings.HasPrefix(why.String(), "reason("); why++ {
		fs = append(fs, perCall("ended: "+why.String(), func(t *sim.Totals) int64 { return t.Reasons[why.String()] }))
	}
	if faults := s.Services[0].Faults; len(faults) > 0 {
		from, to := faults[0].At, faults[0].At+faults[0].For
		fs = append(fs, during("before the fault", 0, from)...)
		fs = append(fs, during("during the fault", from, to)...)
		fs = append(fs, during("after the fault", to, s.Horizon)...)
	}
	return fs
}

// during are figures about a part of the flight.
func during(when string, from, to time.Duration) []figure {
	sum := func(r *sim.Result, of func(i int) float64) float64 {
		total, step := 0.0, r.Series.Step
		for i := int(from / step); i < min(int((to+step-1)/step), len(r.Series.Calls)); i++ {
			total += of(i)
		}
		return total
	}
	calls := func(r *sim.Result) float64 {
		return sum(r, func(i int) float64 { return r.Series.Calls[i] }) * r.Series.Step.Seconds()
	}
	perCall := func(r *sim.Result, of func(i int) float64) float64 {
		return sum(r, of) * r.Series.Step.Seconds() / max(calls(r), 1)
	}
	return []figure{
		{"attempts per call " + when, func(r *sim.Result) float64 {
			return perCall(r, func(i int) float64 { return r.Series.First[i] + r.Series.Retries[i] })
		}, calls},
		{"retries per call " + when, func(r *sim.Result) float64 {
			return perCall(r, func(i int) float64 { return r.Series.Retries[i] })
		}, calls},
		{"success rate of calls begun " + when, func(r *sim.Result) float64 {
			return perCall(r, func(i int) float64 { return r.Series.Good[i] * r.Series.Calls[i] })
		}, calls},
	}
}

// A band is where a figure of one real flight has to lie.
type band struct {
	mean, deviates float64 // simulated; the standard deviation of one flight
	low, high      float64
}

const (
	tolerance = 3 // in standard errors of one flight
	least     = 3 // calls; no tolerance is less
	seeds     = 60
)

// bands flies the simulation with many seeds, and returns where each figure has to lie.
func bands(ctx context.Context, s sim.Scenario, c sim.Contender, fs []figure) ([]band, error) {
	rs, err := simulate(ctx, s, c)
	if err != nil {
		return nil, err
	}
	var bs []band
	for _, f := range fs {
		m, d := moments(rs, f.of)
		// The mean is known from so many seeds only.
		room := tolerance * d * math.Sqrt(1+1/float64(seeds))
		if f.calls != nil {
			calls, _ := moments(rs, f.calls)
			room = max(room, least/calls)
		}
		bs = append(bs, band{m, d, m - room, m + room})
	}
	return bs, nil
}

// simulate flies c with all seeds.
func simulate(ctx context.Context, s sim.Scenario, c sim.Contender) ([]sim.Result, error) {
	sums, err := sim.Compare(ctx, s, []sim.Contender{c}, sim.CompareOptions{Seed: 1, Seeds: seeds})
	if err != nil {
		return nil, err
	}
	for i := range sums[0].Results {
		// In earnest every call is brought to its end.
		if n := sums[0].Results[i].Totals.Unfinished; n > 0 {
			return nil, fmt.Errorf("%d calls are unfinished at the horizon: it is too near", n)
		}
	}
	return sums[0].Results, nil
}

// moments are the mean and the standard deviation of a figure.
func moments(rs []sim.Result, of func(*sim.Result) float64) (mean, deviation float64) {
	for i := range rs {
		mean += of(&rs[i]) / float64(len(rs))
	}
	for i := range rs {
		d := of(&rs[i]) - mean
		deviation += d * d / float64(len(rs)-1)
	}
	return mean, math.Sqrt(deviation)
}

// side is 0 if x lies in the band, else on which side it lies.
func (b band) side(x float64) int {
	switch {
	case x < b.low:
		return -1
	case x > b.high:
		return +1
	}
	return 0
}

// compare returns on which side of its band each figure lies, and their text.
func compare(fs []figure, bs []band, r *sim.Result) (sides []int, text string) {
	var out strings.Builder
	out.WriteByte('\n')
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "figure\tsimulated\tdeviation\tallowed\treal\t")
	for i, f := range fs {
		b, x := bs[i], f.of(r)
		sides = append(sides, b.side(x))
		if b.mean == 0 && x == 0 {
			continue // nothing of the kind
		}
		mark := ""
		if sides[i] != 0 {
			mark = "out"
		}
		fmt.Fprintf(w, "%s\t%.4g\t%.2g\t%.4g to %.4g\t%.4g\t%s\n", f.name, b.mean, b.deviates, max(b.low, 0), b.high, x, mark)
	}
	w.Flush()
	return sides, out.String()
}
