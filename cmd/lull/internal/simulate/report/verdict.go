package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/lab/sim"
)

// A verdict is the table at the top.
type verdict struct {
	Columns []column
	Rows    []verdictRow
	Summary string
}

// A column has a sentence below the table.
type column struct{ Name, About string }

type verdictRow struct {
	contender
	Cells []cell
}

// A cell has More in small letters below its Text. Best: no other one is certainly better.
type cell struct {
	Text, More string
	Best       bool
	Class      string
}

// measure is a column with its values and their texts. Both functions are called only for
// contenders with results.
type measure struct {
	column
	more bool                                               // greater values are better
	of   func(sim.Summary) (estimate sim.Estimate, ok bool) // not ok: cannot be the best
	cell func(sim.Summary, sim.Estimate) cell
}

func newVerdict(p Page, cs []contender) *verdict {
	if len(p.Summaries) == 0 {
		return nil
	}
	v := &verdict{Summary: conclusion(p)}
	for _, c := range cs {
		v.Rows = append(v.Rows, verdictRow{contender: c})
	}
	for _, m := range measures(p) {
		v.Columns = append(v.Columns, m.column)
		for i, c := range m.cells(p.Summaries) {
			v.Rows[i].Cells = append(v.Rows[i].Cells, c)
		}
	}
	return v
}

// cells returns the cells of the column. Best are those whose confidence interval touches
// that of the best mean, unless all do.
func (m measure) cells(summaries []sim.Summary) []cell {
	cells := make([]cell, len(summaries))
	estimates := make([]sim.Estimate, len(summaries))
	known := make([]bool, len(summaries))
	best := -1
	for i, s := range summaries {
		cells[i] = cell{Text: "–"}
		if len(s.Results) == 0 {
			continue
		}
		estimates[i], known[i] = m.of(s)
		if math.IsNaN(estimates[i].Mean) {
			known[i] = false
		}
		cells[i] = m.cell(s, estimates[i])
		if known[i] && (best < 0 || m.better(estimates[i], estimates[best])) {
			best = i
		}
	}
	// Intervals that touch do not differ, nor do texts that are the same.
	alike := func(i int) bool {
		gap := math.Abs(estimates[i].Mean - estimates[best].Mean)
		return known[i] && (gap <= estimates[i].Half+estimates[best].Half || cells[i].Text == cells[best].Text)
	}
	all := true
	for i := range cells {
		all = all && best >= 0 && alike(i)
	}
	for i := range cells {
		cells[i].Best = !all && best >= 0 && alike(i)
	}
	return cells
}

func (m measure) better(a, b sim.Estimate) bool {
	if m.more {
		return a.Mean > b.Mean
	}
	return a.Mean < b.Mean
}

func measures(p Page) []measure {
	var ms []measure
	if faulted(p) {
		ms = append(ms,
			measure{
				column: column{"Recovered", "From some time after the last fault to the end of the run, of the calls of any five windows 95 % of the share succeeded that did before the first fault, as far as chance allows to say. If not: the share of calls that succeeded at the end. A relapse: it was so, and then for a time it was not."},
				of:     func(sim.Summary) (sim.Estimate, bool) { return sim.Estimate{}, false }, // marked as it is
				cell:   recoveredCell,
			},
			measure{
				column: column{"Time to recover", "From the end of the last fault to that time, the mean of the seeds that recovered."},
				of:     func(s sim.Summary) (sim.Estimate, bool) { return s.Recovery, s.Recovered == max(1, len(s.Results)) },
				cell: func(s sim.Summary, e sim.Estimate) cell {
					switch {
					case !s.Results[0].Recovery.Measured:
						return cell{Text: "–"}
					case s.Recovered == 0:
						return cell{Text: "never"}
					}
					return lasting(e)
				},
			})
	}
	ms = append(ms,
		share("Success", "Calls that succeeded, whatever it took, of all that began.", true,
			func(s sim.Summary) sim.Estimate { return s.Success }),
		measure{
			column: column{"Amplification", "Attempts for each call that began. Less than 1: calls were refused that made none."},
			of:     func(s sim.Summary) (sim.Estimate, bool) { return s.Amplification, s.Amplification.Mean > 0 },
			cell:   func(_ sim.Summary, e sim.Estimate) cell { return estimated(e, ratio) },
		},
		measure{
			column: column{"Peak over normal", "The most attempts per second in any window, over the mean before the first fault."},
			of:     func(s sim.Summary) (sim.Estimate, bool) { return s.PeakOverNormal, s.PeakOverNormal.Mean > 0 },
			cell: func(_ sim.Summary, e sim.Estimate) cell {
				if e.Mean == 0 {
					return cell{Text: "–"}
				}
				return estimated(e, ratio)
			},
		},
		timed("p50", "Half of the calls that succeeded took no longer. Who gives up early looks quick: look at success first.",
			func(s sim.Summary) (sim.Estimate, bool) {
				v, ok := over(s, func(r sim.Result) float64 {
					if r.Latency.Count == 0 {
						return math.NaN()
					}
					return r.Latency.P50.Seconds()
				})
				return sim.Estimate{Mean: v}, ok
			}),
		timed("p99", "99 of 100 calls that succeeded took no longer.",
			func(s sim.Summary) (sim.Estimate, bool) { return s.P99, s.P99.Mean > 0 }),
		share("Wasted", "Attempts that were worked on for a caller that had gone: their share of all attempts.", false,
			func(s sim.Summary) sim.Estimate { return s.Wasted }),
		share("Refused", "Calls that made no attempt (the breaker or a limit refused them): their share of all calls.", false,
			func(s sim.Summary) sim.Estimate { return s.Refused }),
	)
	if p.any(func(r sim.Result) bool { return r.Totals.Duplicates > 0 }) {
		ms = append(ms, measure{
			column: column{"Duplicates", "Operations carried out once more than they should have been, and their share of all that were carried out."},
			of: func(s sim.Summary) (sim.Estimate, bool) {
				v, ok := over(s, func(r sim.Result) float64 { return float64(r.Totals.Duplicates) })
				return sim.Estimate{Mean: v}, ok
			},
			cell: func(s sim.Summary, e sim.Estimate) cell {
				c := cell{Text: whole(e.Mean)}
				if all, _ := over(s, func(r sim.Result) float64 { return float64(r.Totals.Effects) }); all > 0 && e.Mean > 0 {
					c.More = percent(e.Mean / all)
				}
				return c
			},
		})
	}
	return ms
}

func recoveredCell(s sim.Summary, _ sim.Estimate) cell {
	n := len(s.Results)
	final, _ := over(s, func(r sim.Result) float64 { return r.Recovery.Final })
	relapses := 0
	for _, r := range s.Results {
		relapses += r.Recovery.Relapses
	}
	var more []string
	if s.Recovered < n {
		more = append(more, percent(final)+" at the end")
	} else if n > 1 {
		more = append(more, fmt.Sprintf("%d of %d", n, n))
	}
	if relapses > 0 {
		more = append(more, term.Counted(relapses, "relapse"))
	}
	c := cell{Text: "✓" + nbsp + "yes", More: strings.Join(more, ", "), Class: "good"}
	switch {
	case s.Results[0].Recovery.Few:
		return cell{Text: "–", More: "too few calls"}
	case !s.Results[0].Recovery.Measured:
		return cell{Text: "–"}
	case s.Recovered == 0:
		c.Text, c.Class = "✗"+nbsp+"no", "bad"
	case s.Recovered < n:
		c.Text, c.Class = fmt.Sprintf("%d of %d", s.Recovered, n), "mixed"
	}
	return c
}

func share(name, about string, more bool, of func(sim.Summary) sim.Estimate) measure {
	return measure{
		column: column{name, about}, more: more,
		of:   func(s sim.Summary) (sim.Estimate, bool) { return of(s), true },
		cell: func(_ sim.Summary, e sim.Estimate) cell { return estimated(e, percent) },
	}
}

func timed(name, about string, of func(sim.Summary) (sim.Estimate, bool)) measure {
	return measure{
		column: column{name, about}, of: of,
		cell: func(s sim.Summary, e sim.Estimate) cell {
			if _, ok := of(s); !ok {
				return cell{Text: "–"}
			}
			return lasting(e)
		},
	}
}

func estimated(e sim.Estimate, text func(float64) string) cell {
	c := cell{Text: text(e.Mean)}
	if e.Half > 0 {
		c.More = "±" + nbsp + text(e.Half)
	}
	return c
}

// lasting returns an estimate in seconds, both figures in the same unit.
func lasting(e sim.Estimate) cell {
	return estimated(e, func(v float64) string {
		if e.Mean >= 0.9995 && e.Mean < 999.5 && v < 1 {
			return trimmed(v, 2) + nbsp + "s"
		}
		return seconds(v)
	})
}

func faulted(p Page) bool {
	return p.any(func(r sim.Result) bool { return r.Recovery.Measured })
}

// any reports whether something is true of any result.
func (p Page) any(is func(sim.Result) bool) bool {
	return slices.ContainsFunc(p.Summaries, func(s sim.Summary) bool { return slices.ContainsFunc(s.Results, is) })
}

// conclusion returns the table in a sentence.
func conclusion(p Page) string {
	if !faulted(p) {
		return ""
	}
	var never []string
	back, quickest := 0, -1
	for i, s := range p.Summaries {
		switch {
		case len(s.Results) == 0:
		case s.Recovered == 0:
			never = append(never, s.Contender.Name)
		case s.Recovered == len(s.Results):
			back++
			if quickest < 0 || s.Recovery.Mean < p.Summaries[quickest].Recovery.Mean {
				quickest = i
			}
		}
	}
	n := len(p.Summaries)
	every := ""
	if p.Seeds > 1 {
		every = " with every seed"
	}
	switch {
	case quickest < 0 && len(never) == n:
		return "None recovered before the end."
	case quickest < 0:
		return "None recovered" + every + "."
	}
	took := seconds(p.Summaries[quickest].Recovery.Mean)
	var quick []string
	for _, s := range p.Summaries {
		if s.Recovered == len(s.Results) && s.Recovered > 0 && seconds(s.Recovery.Mean) == took {
			quick = append(quick, s.Contender.Name)
		}
	}
	first := fmt.Sprintf("%d of %d recovered%s, the quickest in %s (%s)", back, n, every, took, strings.Join(quick, ", "))
	if back > 1 && len(quick) == back {
		first = fmt.Sprintf("%d of %d recovered%s, in %s", back, n, every, took)
	}
	if n == 1 {
		first = "It recovered" + every + ", in " + took
	}
	if len(never) > 0 {
		first += "; " + strings.Join(never, ", ") + " did not before the end"
	}
	return first + "."
}
