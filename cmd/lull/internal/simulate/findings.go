package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/lab/sim"
)

// muchLoad is how many attempts per call are worth a finding.
const muchLoad = 1.5

// findings returns sentences: which policies recovered first and which did not, which
// sent most attempts, and which repeated operations that they must not.
func findings(s sim.Scenario, all []sim.Summary) []string {
	if onlyMessages(s) {
		return messageFindings(s, all)
	}
	var back, not, undecided []sim.Summary
	for _, m := range all {
		measured, cut := 0, 0
		for _, r := range m.Results {
			if r.Interrupted && !r.Recovery.Recovered {
				cut++
			} else if r.Recovery.Measured {
				measured++
			}
		}
		switch {
		case cut > 0:
			undecided = append(undecided, m)
		case measured == 0:
		case m.Recovered == measured:
			back = append(back, m)
		default:
			not = append(not, m)
		}
	}
	var lines []string
	if len(back) > 0 {
		slices.SortStableFunc(back, func(a, b sim.Summary) int { return cmp.Compare(a.Recovery.Mean, b.Recovery.Mean) })
		lines = append(lines, term.List("Back to normal, the soonest first: ", named(back, func(m sim.Summary) string {
			return fmt.Sprintf("%s (%s)", m.Contender.Name, inWords(time.Duration(m.Recovery.Mean*float64(time.Second))))
		}))...)
	}
	if len(not) > 0 {
		lines = append(lines, term.List("Not back when the run ended: ", named(not, stillFailing))...)
	}
	if again := slices.DeleteFunc(slices.Clone(all), func(m sim.Summary) bool { return relapses(m) == 0 }); len(again) > 0 {
		lines = append(lines, term.List("Back for a time, and worse again: ", named(again, relapsed))...)
	}
	if len(undecided) > 0 {
		lines = append(lines, term.List("Stopped too early to tell whether they recover: ", named(undecided, func(m sim.Summary) string { return m.Contender.Name }))...)
	}
	if len(back)+len(not)+len(undecided) == 0 && len(all) > 0 {
		best := slices.Clone(all)
		slices.SortStableFunc(best, func(a, b sim.Summary) int { return cmp.Compare(b.Success.Mean, a.Success.Mean) })
		lines = append(lines, term.List("Calls that succeed, the most first: ", named(best, func(m sim.Summary) string {
			return fmt.Sprintf("%s (%s)", m.Contender.Name, percentOf(m.Success.Mean))
		}))...)
	}
	lines = append(lines, loudest("Most attempts for each call: ", all)...)
	return append(lines, duplicateFindings(s, all)...)
}

// messageFindings returns sentences about messages: with which policies fewest died, and
// which sent most attempts.
func messageFindings(s sim.Scenario, all []sim.Summary) []string {
	dead := func(m sim.Summary) (n int64) {
		for _, r := range m.Results {
			for _, t := range r.Topics {
				n += t.Dead
			}
		}
		return n
	}
	best := slices.Clone(all)
	slices.SortStableFunc(best, func(a, b sim.Summary) int { return cmp.Compare(dead(a), dead(b)) })
	lines := term.List("Dead letters, the fewest first: ", named(best, func(m sim.Summary) string {
		return fmt.Sprintf("%s (%s)", m.Contender.Name, grouped(float64(dead(m))))
	}))
	lines = append(lines, loudest("Most attempts for each message: ", all)...)
	return append(lines, duplicateFindings(s, all)...)
}

// loudest names the policies that made many attempts.
func loudest(what string, all []sim.Summary) []string {
	loud := slices.DeleteFunc(slices.Clone(all), func(m sim.Summary) bool { return m.Amplification.Mean < muchLoad })
	if len(loud) == 0 {
		return nil
	}
	slices.SortStableFunc(loud, func(a, b sim.Summary) int { return cmp.Compare(b.Amplification.Mean, a.Amplification.Mean) })
	return term.List(what, named(loud, func(m sim.Summary) string {
		return fmt.Sprintf("%s (%.1f)", m.Contender.Name, m.Amplification.Mean)
	}))
}

// relapses returns how often things were normal and then were not, over all seeds.
func relapses(m sim.Summary) int {
	n := 0
	for _, r := range m.Results {
		n += r.Recovery.Relapses
	}
	return n
}

// relapsed names a policy with relapses: when it was back for the first time, and how often it
// was worse again.
func relapsed(m sim.Summary) string {
	first, seeds := time.Duration(0), 0
	for _, r := range m.Results {
		if r.Recovery.Relapses > 0 {
			first += r.Recovery.First
			seeds++
		}
	}
	text := fmt.Sprintf("%s (first after %s, %s", m.Contender.Name, inWords(first/time.Duration(seeds)), term.Counted(relapses(m), "relapse"))
	if len(m.Results) > 1 {
		text += fmt.Sprintf(" with %d of %d seeds", seeds, len(m.Results))
	}
	return text + ")"
}

// stillFailing names a policy that did not recover, and how bad it was at the end.
func stillFailing(m sim.Summary) string {
	final, n := 0.0, 0
	for _, r := range m.Results {
		if r.Recovery.Measured && !r.Recovery.Recovered {
			final += r.Recovery.Final
			n++
		}
	}
	text := fmt.Sprintf("%s (%s succeed at the end", m.Contender.Name, percentOf(final/float64(max(1, n))))
	if len(m.Results) > 1 {
		text += fmt.Sprintf(", %d of %d seeds", n, len(m.Results))
	}
	return text + ")"
}

func duplicateFindings(s sim.Scenario, all []sim.Summary) []string {
	var twice []sim.Summary
	for _, m := range all {
		if duplicates(m) > 0 {
			twice = append(twice, m)
		}
	}
	if len(twice) == 0 {
		if mustNotRepeat(s) {
			return []string{"Nobody carried out an operation twice."}
		}
		return nil
	}
	return term.List("Operations carried out more than once: ", named(twice, func(m sim.Summary) string {
		return fmt.Sprintf("%s (%s)", m.Contender.Name, grouped(float64(duplicates(m))))
	}))
}

// named returns a text for each summary.
func named(all []sim.Summary, text func(sim.Summary) string) []string {
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = text(m)
	}
	return names
}
