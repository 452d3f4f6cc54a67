package simulate

import (
	"fmt"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/lab/sim"
)

// muchLoad is how many attempts per call are worth a finding.
const muchLoad = 1.5

// findings returns sentences: which policies recovered first and which did not, or with which fewest messages died; which
// sent most attempts, and which repeated operations that they must not.
func findings(s sim.Scenario, all []sim.Summary) (lines term.Sentences) {
	list := func(intro string, of func(sim.Summary) (value float64, text string, ok bool)) bool {
		return lines.List(intro, term.Ranked(all, func(m sim.Summary) (float64, string, bool) {
			value, text, ok := of(m)
			if text != "" {
				text = " (" + text + ")"
			}
			return value, m.Contender.Name + text, ok
		})...)
	}
	unit := "call"
	if onlyMessages(s) {
		unit = "message"
		list("Dead letters, the fewest first: ", func(m sim.Summary) (float64, string, bool) {
			return float64(dead(m)), grouped(float64(dead(m))), true
		})
	} else {
		back := list("Back to normal, the soonest first: ", func(m sim.Summary) (float64, string, bool) {
			return m.Recovery.Mean, inWords(seconds(m.Recovery.Mean)), fateOf(m) == isBack
		})
		not := list("Not back when the run ended: ", func(m sim.Summary) (float64, string, bool) {
			return 0, atTheEnd(m), fateOf(m) == notBack
		})
		list("Back for a time, and worse again: ", func(m sim.Summary) (float64, string, bool) {
			return 0, relapsed(m), relapses(m) > 0
		})
		cut := list("Stopped too early to tell whether they recover: ", func(m sim.Summary) (float64, string, bool) {
			return 0, "", fateOf(m) == undecided
		})
		if !back && !not && !cut {
			list("Calls that succeed, the most first: ", func(m sim.Summary) (float64, string, bool) {
				return -m.Success.Mean, percentOf(m.Success.Mean), true
			})
		}
	}
	list("Most attempts for each "+unit+": ", func(m sim.Summary) (float64, string, bool) {
		return -m.Amplification.Mean, fmt.Sprintf("%.1f", m.Amplification.Mean), m.Amplification.Mean >= muchLoad
	})
	twice := list("Operations carried out more than once: ", func(m sim.Summary) (float64, string, bool) {
		return 0, grouped(float64(duplicates(m))), duplicates(m) > 0
	})
	if !twice && mustNotRepeat(s) {
		lines = append(lines, "Nobody carried out an operation twice.")
	}
	return lines
}

// A fate is what became of a policy after the last fault.
type fate int

const (
	undisturbed fate = iota // there is nothing to recover from
	isBack                  // with every seed
	notBack                 // with some seed
	undecided               // a run was stopped before that
)

func fateOf(m sim.Summary) fate {
	measured := 0
	for _, r := range m.Results {
		switch {
		case r.Interrupted && !r.Recovery.Recovered:
			return undecided
		case r.Recovery.Measured:
			measured++
		}
	}
	switch measured {
	case 0:
		return undisturbed
	case m.Recovered:
		return isBack
	}
	return notBack
}

func relapses(m sim.Summary) int {
	return total(m, func(r sim.Result) int { return r.Recovery.Relapses })
}

func relapsed(m sim.Summary) string {
	first, seeds := time.Duration(0), 0
	for _, r := range m.Results {
		if r.Recovery.Relapses > 0 {
			first += r.Recovery.First
			seeds++
		}
	}
	if seeds == 0 {
		return ""
	}
	text := fmt.Sprintf("first after %s, %s", inWords(first/time.Duration(seeds)), term.Counted(relapses(m), "relapse"))
	if len(m.Results) > 1 {
		text += fmt.Sprintf(" with %d of %d seeds", seeds, len(m.Results))
	}
	return text
}

func atTheEnd(m sim.Summary) string {
	final, n := 0.0, 0
	for _, r := range m.Results {
		if r.Recovery.Measured && !r.Recovery.Recovered {
			final += r.Recovery.Final
			n++
		}
	}
	text := percentOf(final/float64(max(1, n))) + " succeed at the end"
	if len(m.Results) > 1 {
		text += fmt.Sprintf(", %d of %d seeds", n, len(m.Results))
	}
	return text
}
