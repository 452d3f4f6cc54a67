package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// A column has two lines of heading, a cell for each summary, and a meaning, which package sim computes.
type column struct {
	above, head   string
	cell          func(sim.Summary) string
	name, meaning string // meaning is empty if that of another column includes it
}

// text returns the cell of a summary, "-" if no run had begun.
func (c column) text(m sim.Summary) string {
	if len(m.Results) == 0 {
		return "-"
	}
	return c.cell(m)
}

func columnsFor(s sim.Scenario, all []sim.Summary) (columns []column) {
	add := func(ok bool, some ...column) {
		if ok {
			columns = append(columns, some...)
		}
	}
	recovers := slices.ContainsFunc(all, func(m sim.Summary) bool { return recoveryCell(m) != "-" })
	several := slices.ContainsFunc(all, func(m sim.Summary) bool { return len(m.Results) > 1 })
	twice := slices.ContainsFunc(all, func(m sim.Summary) bool { return duplicates(m) > 0 })
	messages := onlyMessages(s)
	atOnce := len(s.Topics) == 0 && !slices.ContainsFunc(s.Fleets, func(f sim.Fleet) bool { return f.Arrivals.Kind != sim.AtOnce }) // it ends when every caller was served
	add(!messages && recovers, backColumn)
	add(!messages, successColumn, perCallColumn)
	add(slices.ContainsFunc(s.Fleets, func(f sim.Fleet) bool { return f.Fallback > 0 }), answeredColumn)
	add(!messages && !several, worstColumn) // else there is no room
	add(messages, handledColumn, perMessageColumn)
	add(!atOnce, peakColumn)
	add(atOnce, peakRateColumn)
	add(messages, handlingColumn) // that calls succeed and are refused is another matter
	add(len(s.Fleets) > 0, heldColumn(all))
	add(!messages, p99Column, wastedColumn, refusedColumn)
	add(atOnce, endColumn)
	add(len(s.Topics) > 0, deadColumn, leftColumn, caughtUpColumn)
	add(slices.ContainsFunc(s.Fleets, func(f sim.Fleet) bool { return f.Reload.Times > 0 }), oldestColumn)
	add(pooled(s), dialsColumn)
	add(slices.ContainsFunc(s.Fleets, func(f sim.Fleet) bool { return f.Link.On }), lostColumn, memoryColumn)
	add(twice || mustNotRepeat(s), twiceColumn)
	return columns
}

var (
	backColumn = column{"back", "after", recoveryCell, "back after",
		"time from the end of the last fault to the moment from which on, to the end of the run, of the calls of any five windows " +
			"95 % of the share succeed that did before the first fault, as far as chance allows to say; \"2/5\" is how many of the seeds " +
			"came back, if not all"}
	successColumn  = column{"", "success", success, "success", "share of calls that succeeded, of those that ended"}
	answeredColumn = column{"", "answered", func(m sim.Summary) string {
		answered := func(r sim.Result) int64 { return r.Totals.Succeeded + r.Totals.Degraded }
		ended := func(r sim.Result) int64 { return r.Totals.Calls - r.Totals.Unfinished }
		return percentOf(float64(total(m, answered)) / float64(max(1, total(m, ended))))
	}, "answered", "share of calls that succeeded or for which the caller had another answer, of those that ended"}
	perCallColumn = column{"attempts", "per call", func(m sim.Summary) string { return estimated(m, m.Amplification, 2) }, "per call",
		"attempts for each call"}
	worstColumn = column{"worst", "10 s", func(m sim.Summary) string { return fmt.Sprintf("%.2f", m.WorstTenSeconds.Mean) }, "worst 10 s",
		"attempts for each call in the worst ten seconds from the first fault on"}
	peakColumn = column{"peak /", "normal", peakCell, "peak",
		"attempts per second in the busiest window, as a multiple of normal: the mean before the first fault"}
	// peakRateColumn is for a scenario that has no normal time.
	peakRateColumn = column{"peak", "per s", func(m sim.Summary) string {
		return abbreviated(total(m, func(r sim.Result) float64 { return r.Totals.PeakRate }) / float64(max(1, len(m.Results))))
	}, "peak", "attempts per second in the busiest window"}
	p99Column     = column{"", "p99", latencyCell, "p99", "time of calls that succeeded, from their first attempt on"}
	wastedColumn  = column{"", "wasted", func(m sim.Summary) string { return shareCell(m, m.Wasted) }, "wasted", "share of attempts that were worked on for a caller that had gone"}
	refusedColumn = column{"", "refused", func(m sim.Summary) string { return shareCell(m, m.Refused) }, "refused",
		"share of calls that made no attempt, because the caller's own circuit breaker or limit said no"}
	twiceColumn = column{"done", "twice", countCell(duplicates), "done twice",
		"operations carried out again that had been carried out before, by retries or by users who came back; of all seeds"}
	oldestColumn = column{"", "oldest", oldestCell, "oldest",
		"the longest time that a user waited, from the first call to the success or to giving up; of all seeds"}
	endColumn = column{"all", "done", func(m sim.Summary) string {
		return inWords(meanOf(m, func(r sim.Result) float64 { return float64(r.Totals.Last) }))
	}, "all done", "when the last call ended"}
)

// heldColumn shows what callers hold, as a multiple of none's if none is among the contenders.
func heldColumn(all []sim.Summary) column {
	i := slices.IndexFunc(all, func(m sim.Summary) bool { return m.Contender.Name == "none" && m.Held.Mean > 0 })
	if i < 0 {
		return column{"calls", "held", func(m sim.Summary) string { return trimmed(m.Held.Mean, 3) }, "calls held",
			"calls in progress, on average: what callers hold while a call runs or waits"}
	}
	return column{"time", "held", func(m sim.Summary) string { return fmt.Sprintf("%.2f×", m.Held.Mean/all[i].Held.Mean) }, "time held",
		"how long callers held their calls, in attempts and in waits together: a multiple of none's"}
}

// Columns of messages, which are calls in the figures of package sim.
var (
	handledColumn    = column{"", "handled", success, "handled", "share of messages that were handled, of those that were handled or are dead"}
	perMessageColumn = column{"attempts", "per msg", perCallColumn.cell, "per msg", "attempts for each message"}
	handlingColumn   = column{"", "p99", latencyCell, p99Column.name, "time from the sending of a message to the end of its handling"}
	deadColumn       = column{"dead", "letters", countCell(dead), "dead", "messages that were given up on, of all seeds"}
	leftColumn       = column{"not", "done", countCell(ofTopics(func(t sim.TopicResult) int64 { return t.Left })), "not done", "messages that were still there at the end, of all seeds"}
	caughtUpColumn   = column{"caught", "up after", caughtUpCell, "caught up",
		"time from the end of the last fault until every message that was sent before it was handled or dead"}
)

// onlyMessages reports whether nobody but producers of messages does anything.
func onlyMessages(s sim.Scenario) bool { return len(s.Fleets) == 0 && len(s.Topics) > 0 }

func total[N int | int64 | float64](m sim.Summary, of func(sim.Result) N) (sum N) {
	for _, r := range m.Results {
		sum += of(r)
	}
	return sum
}

func ofTopics(of func(sim.TopicResult) int64) func(sim.Summary) int64 {
	return func(m sim.Summary) int64 {
		return total(m, func(r sim.Result) (n int64) {
			for _, t := range r.Topics {
				n += of(t)
			}
			return n
		})
	}
}

var dead = ofTopics(func(t sim.TopicResult) int64 { return t.Dead })

func countCell(of func(sim.Summary) int64) func(sim.Summary) string {
	return func(m sim.Summary) string { return grouped(float64(of(m))) }
}

// caughtUpCell is the mean of the longest of the topics, "never" if one was not in time, and "-" if there is no fault.
func caughtUpCell(m sim.Summary) string {
	never := false
	sum := meanOf(m, func(r sim.Result) float64 {
		var longest time.Duration
		for _, t := range r.Topics {
			longest = max(longest, t.CaughtUp)
			never = never || !t.Caught
		}
		return float64(longest)
	})
	switch {
	case !slices.ContainsFunc(m.Results, func(r sim.Result) bool { return r.Recovery.Measured }):
		return "-"
	case never:
		return "never"
	}
	return inWords(sum)
}

func mustNotRepeat(s sim.Scenario) bool {
	return slices.ContainsFunc(s.Fleets, func(f sim.Fleet) bool { return f.NotIdempotent })
}

// recoveryCell is "12.3 s", "never", of several seeds "3/5 12.3 s", where few calls are made "18 ±40 s"; "-" if there is nothing to
// recover from, "few calls" if they are too few for a verdict, "?" if the run was interrupted before.
func recoveryCell(m sim.Summary) string {
	measured, cut, few := 0, 0, 0
	half := m.Recovery.Half
	for _, r := range m.Results {
		switch {
		case r.Recovery.Few:
			few++
		case r.Interrupted && !r.Recovery.Recovered:
			cut++
		case r.Recovery.Measured:
			measured++
			if r.Recovery.Within > exactly {
				half = max(half, r.Recovery.Within.Seconds())
			}
		}
	}
	took := inWords(seconds(m.Recovery.Mean))
	switch {
	case measured == 0 && cut > 0:
		return "?"
	case measured == 0 && few > 0:
		return "few calls"
	case measured == 0:
		return "-"
	case m.Recovered == 0:
		return "never"
	case m.Recovered < measured:
		return fmt.Sprintf("%d/%d %s", m.Recovered, measured, took)
	case half > 0:
		return fmt.Sprintf("%s ±%s s", trimmed(m.Recovery.Mean, 3), trimmed(half, 2))
	}
	return took
}

// exactly is how well a time to recover is known where enough calls are made.
const exactly = 5 * time.Second

func success(m sim.Summary) string { return shareCell(m, m.Success) }

// shareCell is a share and, for several seeds, the half width of its interval in points.
func shareCell(m sim.Summary, e sim.Estimate) string {
	text := percentOf(e.Mean)
	if len(m.Results) > 1 {
		text += fmt.Sprintf(" ±%.1f", 100*e.Half)
	}
	return text
}

// peakCell is "-" if the scenario has no normal time to compare with.
func peakCell(m sim.Summary) string {
	if m.PeakOverNormal.Mean == 0 {
		return "-"
	}
	return estimated(m, m.PeakOverNormal, 1)
}

// latencyCell is "-" if nothing succeeded.
func latencyCell(m sim.Summary) string {
	if m.P99.Mean == 0 {
		return "-"
	}
	text := inWords(seconds(m.P99.Mean))
	if len(m.Results) > 1 {
		text += fmt.Sprintf(" ±%.0f %%", 100*m.P99.Half/m.P99.Mean)
	}
	return text
}

// estimated is a mean and, for several seeds, the half width of its interval.
func estimated(m sim.Summary, e sim.Estimate, digits int) string {
	text := fmt.Sprintf("%.*f", digits, e.Mean)
	if len(m.Results) > 1 {
		text += fmt.Sprintf(" ±%.*f", digits, e.Half)
	}
	return text
}

func meanOf(m sim.Summary, of func(sim.Result) float64) time.Duration {
	return time.Duration(total(m, of) / float64(max(1, len(m.Results))))
}

// duplicates is the number of operations that were repeated, over all seeds.
func duplicates(m sim.Summary) int64 {
	return total(m, func(r sim.Result) int64 { return r.Totals.Duplicates })
}

func oldestCell(m sim.Summary) string {
	var longest time.Duration
	for _, r := range m.Results {
		longest = max(longest, r.Totals.Oldest)
	}
	return inWords(longest)
}

func pooled(s sim.Scenario) bool {
	on := func(n sim.Network) bool { return n.Pool.On }
	return slices.ContainsFunc(s.Fleets, func(f sim.Fleet) bool { return on(f.Network) }) ||
		slices.ContainsFunc(s.Topics, func(t sim.Topic) bool { return on(t.Consumers.Network) }) ||
		slices.ContainsFunc(s.Services, func(v sim.Service) bool {
			return slices.ContainsFunc(v.Calls, func(h sim.Hop) bool { return on(h.Network) })
		})
}

// Columns of connections.
var (
	dialsColumn = column{"dials", "per call", func(m sim.Summary) string {
		calls := total(m, func(r sim.Result) int64 { return r.Totals.Calls })
		if calls == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2f", float64(total(m, func(r sim.Result) int64 { return r.Connections.Dials }))/float64(calls))
	}, "dials", "connections that were dialled, for each call"}
	lostColumn = column{"conns", "lost", func(m sim.Summary) string {
		return grouped(float64(meanOf(m, func(r sim.Result) float64 { return float64(r.Totals.Disconnects) })))
	}, "conns lost", "connections that were lost"}
	memoryColumn = column{"out of", "memory", func(m sim.Summary) string {
		return grouped(float64(meanOf(m, func(r sim.Result) float64 { return float64(r.Totals.OutOfMemory) })))
	}, "out of memory", "hosts that crashed because their memory was full"}
)
