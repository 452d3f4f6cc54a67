package torture

import (
	"fmt"
	"slices"
	"strings"
)

// An outcome is what a client did in a case. Its text is the rest of a sentence that begins with "it".
type outcome string

// Rules have the outcomes of a case, by the grade that a client gets for them. The verdict of the case and its text
// are made of them, and of nothing else.
type rules map[Grade][]outcome

// grade returns the grade of an outcome. A test sees that each outcome of a judge has one.
func (r rules) grade(o outcome) Grade {
	for grade, list := range r {
		if slices.Contains(list, o) {
			return grade
		}
	}
	panic(fmt.Sprintf("no rule for a client that %s", o))
}

func (r rules) and(more rules) rules {
	both := rules{}
	for _, some := range []rules{r, more} {
		for grade, list := range some {
			both[grade] = slices.Concat(both[grade], list)
		}
	}
	return both
}

// text is the rules as the rest of a sentence that begins with "the client".
func (r rules) text() string {
	var parts []string
	for _, g := range []struct {
		grade Grade
		verb  string
	}{{Pass, "passes"}, {Warn, "is warned"}, {Fail, "fails"}, {NotApplicable, "has no grade"}} {
		var list []string
		for _, o := range r[g.grade] {
			list = append(list, string(o))
		}
		if len(list) > 0 {
			parts = append(parts, g.verb+" if it "+strings.Join(list, ", or "))
		}
	}
	return strings.Join(parts, "; ")
}

// What clients do. The judges find it out, and the rules of the cases grade it. Those of one topic stand in its file.
const (
	didNotEnd       outcome = "does not end before the case does"
	stillWaited     outcome = "still waits when the case ends"
	stillTried      outcome = "still tries when the case ends"
	nothingCame     outcome = "sends no request"
	noRetries       outcome = "makes no retries at all"
	oneAttempt      outcome = "makes one attempt (which shows nothing)"
	tooFew          outcome = "makes too few retries to judge"
	tooFewCalls     outcome = "makes too few calls to judge"
	callFailed      outcome = "reports a failure"
	tookTheAnswer   outcome = "takes the 200"
	reportedSuccess outcome = "reports success without a good answer"
)
