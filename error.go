package lull

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
)

// An Error says how a call failed: what it was, how often it was tried and for
// how long, why no further attempt was made, and the last real error.
//
// errors.Is and errors.As see the last error through it, and errors.Is sees the
// reason: errors.Is(err, ErrBudgetExhausted). A call that ran out of time is
// also a context.DeadlineExceeded; one whose caller went away is also whatever
// the caller's context gives as its cause.
type Error struct {
	Dependency string
	Operation  string // empty if the call named none
	Attempts   int    // attempts made; 0 if the call was refused before the first
	Elapsed    time.Duration
	Reason     Reason
	Verdict    Verdict       // what the classifier made of Last; the server's hint is Verdict.After; the zero Verdict if there was no attempt
	RetryAt    time.Duration // CircuitOpen only: how long until the breaker may admit a probe
	Last       error         // the last attempt's error; nil if none was made
	Cause      error         // CallerCanceled, DeadlineReached: what ended the caller's context, if that did
}

// Error reads like: `payments: charge: retry budget exhausted after 2 attempts
// in 130ms: connection refused`.
func (e *Error) Error() string {
	if e == nil {
		return nilError
	}
	var b strings.Builder
	b.WriteString(e.Dependency)
	b.WriteString(": ")
	if e.Operation != "" {
		b.WriteString(e.Operation)
		b.WriteString(": ")
	}
	if err := e.Reason.Err(); err != nil {
		b.WriteString(err.Error())
	} else {
		b.WriteString(e.Reason.String())
	}
	switch {
	case e.Reason == HintTooLong:
		b.WriteString(" (")
		b.WriteString(e.Verdict.After.String())
		b.WriteString(")")
	case e.Reason == CircuitOpen && e.RetryAt > 0:
		b.WriteString(" (next probe in ")
		b.WriteString(e.RetryAt.Round(time.Millisecond).String())
		b.WriteString(")")
	}
	switch e.Attempts {
	case 0:
		b.WriteString(" before the first attempt")
	case 1:
		b.WriteString(" after 1 attempt in ")
	default:
		b.WriteString(" after ")
		b.WriteString(strconv.Itoa(e.Attempts))
		b.WriteString(" attempts in ")
	}
	if e.Attempts > 0 {
		b.WriteString(roundElapsed(e.Elapsed).String())
	}
	if e.Cause != nil && !errors.Is(e.Last, e.Cause) && e.Cause != e.Reason.Err() {
		b.WriteString(": ")
		b.WriteString(e.Cause.Error())
	}
	if e.Last != nil {
		b.WriteString(": ")
		b.WriteString(e.Last.Error())
	}
	if e.Reason == FailedPermanent && e.Attempts > 0 && e.Verdict.Kind == KindUnclassified {
		b.WriteString(" (not retried, because nothing is known of this error: wrap it with lull.Transient, or give the dependency a lull.WithClassifier)")
	}
	return b.String()
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

// Unwrap gives the last real error.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Last
}

// nilError is the text of a nil *Error in a variable of type error, which is not nil.
const nilError = "a nil *lull.Error was returned as an error: declare the variable as error, and return nil"

// Is reports whether target is the reason of e, or what ended the caller's context.
func (e *Error) Is(target error) bool {
	if e == nil {
		return false
	}
	if reason := e.Reason.Err(); reason != nil && target == reason {
		return true
	}
	if e.Reason == DeadlineReached && target == context.DeadlineExceeded {
		return true
	}
	return e.Cause != nil && errors.Is(e.Cause, target)
}

// Timeout tells whether the call, or its last attempt, ran out of time, as
// net.Error and url.Error have it.
func (e *Error) Timeout() bool {
	if e == nil {
		return false
	}
	var last interface{ Timeout() bool }
	return e.Reason == DeadlineReached || errors.As(e.Last, &last) && last.Timeout()
}
