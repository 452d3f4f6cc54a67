package lull

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullgo/lull/engine"
)

// An Error describes how a call failed: how often it was tried and for how long, why no further
// attempt was made, and the last real error.
//
// errors.Is and errors.As see the last error through it, and errors.Is sees the reason:
// errors.Is(err, ErrBudgetExhausted). A call that ran out of time is also a
// context.DeadlineExceeded; one whose caller went away is also the cause of the caller's context.
type Error struct {
	Dependency string
	Operation  string // empty if the call named none
	Attempts   int    // attempts made; 0 if the call was refused before the first
	Elapsed    time.Duration
	Reason     Reason
	Verdict    Verdict       // what the classifier made of Last; the server's hint is Verdict.After; the zero Verdict if there was no attempt
	RetryAt    time.Duration // CircuitOpen only: how long until the breaker may admit a probe
	OpenFor    time.Duration // CircuitOpen only: for how long the breaker has been open, or half-open
	OpenedBy   error         // CircuitOpen only: the last failure before or while it was open, if the driver had an error
	Last       error         // the last attempt's error; nil if none was made
	Cause      error         // Canceled, Deadline: what ended the caller's context, if that did

	// OutcomeUnknown: the operation may have been carried out, and must not be carried out twice.
	// Find out whether it was before you repeat it (docs/errors.md). It is also set if a call of
	// lull that failed below had that outcome.
	OutcomeUnknown bool

	classifier string // the driver's option that the text names; empty: WithClassifier
	final      bool   // Unanswered only: the policy repeats no timeout
}

// Error returns what happened, why no further attempt was made, which setting would change
// that, and the last real error: `payments: charge: failed after 2 attempts (130ms); not
// repeated, because the retry budget is exhausted (Policy.Budget): connection refused`.
func (e *Error) Error() string {
	if e == nil {
		return nilError
	}
	text := e.Dependency + ": "
	if e.Operation != "" {
		text += e.Operation + ": "
	}
	text += e.attempts() + e.explanation()
	if e.Cause != nil && !errors.Is(e.Last, e.Cause) && e.Cause != errOf(e.Reason) {
		text += ": " + e.Cause.Error()
	}
	if e.Last != nil {
		text += ": " + e.Last.Error()
	}
	if e.OpenedBy != nil {
		text += "; the last failure: " + e.OpenedBy.Error()
	}
	return text
}

func (e *Error) attempts() string {
	what, number := "failed", "attempts"
	switch {
	case e.Attempts == 0:
		return "not attempted"
	case e.Reason == engine.Success:
		what = "succeeded"
	case e.Reason == engine.Canceled:
		what = "canceled"
	case e.Verdict.Code == engine.CodeTimeout:
		what = "timed out"
	case e.Verdict.Kind == KindRateLimited:
		what = "rate-limited"
	}
	if e.Attempts == 1 {
		number = "attempt"
	}
	return fmt.Sprintf("%s after %d %s (%v)", what, e.Attempts, number, roundElapsed(e.Elapsed))
}

func (e *Error) explanation() string {
	why, setting := e.why()
	if why == "" {
		return ""
	}
	if setting != "" {
		setting = " (" + setting + ")"
	}
	if e.Attempts == 0 {
		return ", because " + why + setting
	}
	return "; not repeated, because " + why + setting
}

// why returns the reason in words, and the setting that would change it.
func (e *Error) why() (why, setting string) {
	switch e.Reason {
	case engine.Permanent:
		switch {
		case e.Verdict.CallerSide() && e.Verdict.Code != engine.CodeRetriedBelow:
			return "it has failed on the caller's side", ""
		case e.Verdict.Kind == KindUnclassified && e.Verdict.Code != engine.CodeUnclassified && e.Verdict.Code != "":
			return "it is not known whether another attempt would help", "lull.Transient, " + cmp.Or(e.classifier, "lull.WithClassifier")
		case e.Verdict.Kind == KindUnclassified:
			return "nothing is known of this error", "lull.Transient, " + cmp.Or(e.classifier, "lull.WithClassifier")
		case e.Verdict.Code == engine.CodeRetriedBelow:
			return "the call below has made the retries", "lull.Transient"
		}
		return "another attempt would fail the same way", ""
	case engine.CircuitOpen:
		return e.circuit(), "Policy.Breaker"
	case engine.HintTooLong:
		return "the server asked to wait for " + e.Verdict.After.String(), "Policy.HintLimit"
	case engine.Unanswered:
		if e.final {
			return "the policy repeats no timeout", "Policy.Timeouts"
		}
	case engine.BudgetExhausted:
		if e.Verdict.Code == engine.CodeTimeout {
			return reasonTable[engine.BudgetExhausted].why, "Policy.Budget, Policy.Timeouts"
		}
	}
	if row, known := reasonTable[e.Reason]; known {
		return row.why, row.setting
	}
	return e.Reason.Meaning(), ""
}

func (e *Error) circuit() string {
	text := "the circuit breaker is open"
	switch {
	case e.OpenFor > 0:
		text = "the circuit breaker has been open for " + roundElapsed(e.OpenFor).String()
	case e.Attempts > 0:
		text = "the circuit breaker has opened"
	}
	if e.RetryAt > 0 {
		text += ", and the next probe is in " + roundElapsed(e.RetryAt).String()
	}
	return text
}

func roundElapsed(d time.Duration) time.Duration {
	switch {
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	case d > time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d
}

// Unwrap returns the last real error.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Last
}

// nilError is the text of a nil *Error in a variable of type error, which is not nil.
const nilError = "a nil *lull.Error was returned as an error: declare the variable as error, and return nil"

// Is reports whether target is the reason of e, or the cause of the caller's context.
func (e *Error) Is(target error) bool {
	if e == nil {
		return false
	}
	if reason := errOf(e.Reason); reason != nil && target == reason {
		return true
	}
	if e.Reason == engine.Deadline && target == context.DeadlineExceeded {
		return true
	}
	return e.Cause != nil && errors.Is(e.Cause, target)
}

// Timeout reports whether the call, or its last attempt, ran out of time, as for net.Error.
func (e *Error) Timeout() bool {
	if e == nil {
		return false
	}
	var last interface{ Timeout() bool }
	return e.Reason == engine.Deadline || errors.As(e.Last, &last) && last.Timeout()
}

// The reasons as errors: errors.Is(err, ErrBudgetExhausted) reports whether a call made no
// further attempt for that reason.
var (
	ErrPermanent         error = reasonError(engine.Permanent)
	ErrOverloaded        error = reasonError(engine.Overloaded)
	ErrNotIdempotent     error = reasonError(engine.NotIdempotent)
	ErrNotReplayable     error = reasonError(engine.NotReplayable)
	ErrAttemptsExhausted error = reasonError(engine.AttemptsExhausted)
	ErrCircuitOpen       error = reasonError(engine.CircuitOpen)
	ErrHintTooLong       error = reasonError(engine.HintTooLong)
	ErrDeadline          error = reasonError(engine.Deadline)
	ErrBudgetExhausted   error = reasonError(engine.BudgetExhausted)
	ErrLimited           error = reasonError(engine.Limited)
	ErrUnanswered        error = reasonError(engine.Unanswered)
	ErrThrottled         error = reasonError(engine.Throttled)
	ErrTooManyWaiting    error = reasonError(engine.TooManyWaiting)
	ErrRetriedAbove      error = reasonError(engine.RetriedAbove)
)

type reasonError Reason

func (e reasonError) Error() string { return Reason(e).Meaning() }

// errOf returns the reason as an error; nil for Success.
func errOf(r Reason) error {
	switch r {
	case engine.Success:
		return nil
	case engine.Canceled:
		return context.Canceled
	}
	return reasonError(r)
}

// reasonTable has why there was no further attempt, and the setting that would change it. For other
// reasons their meaning is enough.
var reasonTable = map[Reason]struct{ why, setting string }{
	engine.Success:           {"", ""},
	engine.Overloaded:        {"the server asked not to", ""},
	engine.NotIdempotent:     {"it is not idempotent and may have been carried out", "NotIdempotent; in HTTP, an Idempotency-Key makes it safe"},
	engine.NotReplayable:     {"the request cannot be made a second time", "in HTTP, Request.GetBody"},
	engine.AttemptsExhausted: {"the policy allows no more attempts", "Policy.Attempts"},
	engine.Deadline:          {"no time is left before the deadline", "Policy.Deadline, or the caller's context"},
	engine.BudgetExhausted:   {"the retry budget is exhausted", "Policy.Budget"},
	engine.Limited:           {"the concurrency limit has no room", "Policy.Limit"},
	engine.Canceled:          {"the caller's context has ended", ""},
	engine.Unanswered:        {"the dependency answered no other call quickly meanwhile", "Policy.Timeouts; for a process with few calls: preset.CommandLine"},
	engine.Throttled:         {"the client's own throttle held it back", "Policy.Throttle"},
	engine.TooManyWaiting:    {"too many calls wait for a retry already", "Policy.Limit"},
	engine.RetriedAbove:      {"it was made for a request that is itself a retry", "Policy.Nested"},
}
