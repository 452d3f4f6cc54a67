package lull

import (
	"context"

	"github.com/lullgo/lull/engine"
)

// The reasons as errors: errors.Is(err, ErrBudgetExhausted) reports whether a call made no
// further attempt for that reason.
var (
	ErrPermanent         error = reasonError(FailedPermanent)
	ErrOverloaded        error = reasonError(ServerSaidStop)
	ErrNotIdempotent     error = reasonError(UnsafeToRepeat)
	ErrNotReplayable     error = reasonError(CannotReplay)
	ErrAttemptsExhausted error = reasonError(AttemptsExhausted)
	ErrCircuitOpen       error = reasonError(CircuitOpen)
	ErrHintTooLong       error = reasonError(HintTooLong)
	ErrDeadline          error = reasonError(DeadlineReached)
	ErrBudgetExhausted   error = reasonError(BudgetExhausted)
	ErrLimited           error = reasonError(Limited)
	ErrUnanswered        error = reasonError(Unanswered)
	ErrThrottled         error = reasonError(HeldBack)
	ErrRetriedAbove      error = reasonError(RetriedAbove)
)

// reasonError is a reason as an error.
type reasonError Reason

func (e reasonError) Error() string { return Reason(e).Meaning() }

// errOf is the reason as an error; nil for Succeeded.
func errOf(r Reason) error {
	switch r {
	case Succeeded:
		return nil
	case CallerCanceled:
		return context.Canceled
	}
	return reasonError(r)
}

// reasonTable has for each reason why there was no further attempt, and the setting that
// would change it.
var reasonTable = [engine.Reasons]struct{ why, setting string }{
	Succeeded:         {"", ""},
	FailedPermanent:   {"", ""}, // Error.why knows more
	ServerSaidStop:    {"the server asked not to", ""},
	UnsafeToRepeat:    {"it is not idempotent and may have been carried out", "NotIdempotent; in HTTP, an Idempotency-Key makes it safe"},
	CannotReplay:      {"the request cannot be made a second time", "in HTTP, Request.GetBody"},
	AttemptsExhausted: {"the policy allows no more attempts", "Policy.Attempts"},
	CircuitOpen:       {"", ""},
	HintTooLong:       {"", ""},
	DeadlineReached:   {"no time is left before the deadline", "Policy.Deadline, or the caller's context"},
	BudgetExhausted:   {"the retry budget is exhausted", "Policy.Budget"},
	Limited:           {"the concurrency limit has no room", "Policy.Limit"},
	CallerCanceled:    {"the caller's context has ended", ""},
	Unanswered:        {"the dependency answered no other call meanwhile", "Policy.Timeouts"},
	HeldBack:          {"the client's own throttle held it back", "Policy.Throttle"},
	TooManyLate:       {"too many of the recent calls are late for another attempt beside", "Policy.Hedge.Share"},
	TooManyHedges:     {"too many hedges are in flight for another", "Policy.Hedge.InFlight"},
	RetriedAbove:      {"it was made for a request that is itself a retry", "Policy.Nested"},
	Panicked:          {"it panicked", ""},
	engine.Crashed:    {"the consumers that had it died", ""},
	engine.Resumed:    {"the retry is made by another call", ""},
}
