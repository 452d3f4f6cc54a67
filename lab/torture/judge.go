package torture

import (
	"fmt"
	"slices"
	"time"

	"github.com/lullgo/lull/lab/torture/internal/words"
)

// The judges. A lower bound is exact: a busy machine makes no client come early. An upper bound has slack. A fail is for what
// breaks a specification or does harm: a request carried out twice, a lost answer, a server that is not left alone. A warning is for
// what is allowed but not recommended.

// slack is added to each upper bound: the machine may be busy.
const slack = 4 * time.Second

// A finding is what a client did in a case. The rules of the case give it a grade.
type finding struct {
	outcome outcome
	why     string // the same with its figures
}

func did(o outcome, format string, args ...any) finding {
	return finding{o, fmt.Sprintf(format, args...)}
}

func either(is bool, then, otherwise outcome) outcome {
	if is {
		return then
	}
	return otherwise
}

func (s *Seen) verdict(t traits) Verdict {
	s.traits = t
	switch {
	case s.NoVerdict != "":
		return NotApplicable.Because("%s", s.NoVerdict)
	case s.Flood:
		return Fail.Because("it was ended after %s: it flooded the server", words.Plural(len(s.Attempts), "attempt"))
	case s.died != "":
		return Fail.Because("%s", s.died)
	case len(s.Attempts) == 0 && s.Accepted == 0 && s.Case.door != doorClosed:
		why := "nothing arrived"
		if len(s.Finished) > 0 && s.Finished[0].Text != "" {
			why += ": " + words.Short(s.Finished[0].Text)
		}
		return NotApplicable.Because("%s", why)
	}
	return s.graded()
}

func (s *Seen) graded() Verdict {
	f := s.finding()
	return Verdict{s.Case.rules.grade(f.outcome), f.why}
}

func (s *Seen) finding() finding {
	if s.Case.exempt != nil {
		if f, ok := s.Case.exempt(s); ok {
			return f
		}
	}
	return s.Case.judge(s)
}

// noRetry is the finding about a client that makes no retries at all.
func (s *Seen) noRetry() (finding, bool) {
	return did(noRetries, "the client makes no retries"), !s.retries
}

// answered reports whether an attempt of the first call had a good answer.
func (s *Seen) answered() bool {
	return slices.ContainsFunc(s.first(), func(a Attempt) bool { return a.Good })
}

// call returns what the client reported of the first call.
func (s *Seen) call() Finished {
	if len(s.Finished) == 0 {
		return Finished{Ended: "it never began"}
	}
	return s.Finished[0]
}

// mayOnlyBeBusy reports whether a busy machine can be why a client is warned.
func mayOnlyBeBusy(s *Seen) bool { return s.Late > usualLateness && s.graded().Grade == Warn }

var mustWork = rules{Pass: {tookTheAnswer}, Fail: {callFailed}}

func works(s *Seen) finding {
	if call := s.call(); !call.OK {
		return did(callFailed, "the call failed: %s", call.why())
	}
	return did(tookTheAnswer, "the call succeeded")
}
