package lull

import (
	"context"

	"github.com/lullgo/lull/engine"
)

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
	ErrRetriedAbove      error = reasonError(engine.RetriedAbove)
)

// reasonError is a reason as an error.
type reasonError Reason

func (e reasonError) Error() string { return Reason(e).Meaning() }

// errOf is the reason as an error; nil for Success.
func errOf(r Reason) error {
	switch r {
	case engine.Success:
		return nil
	case engine.Canceled:
		return context.Canceled
	}
	return reasonError(r)
}

// reasonTable has for each reason why there was no further attempt, and the setting that
// would change it.
var reasonTable = [engine.Reasons]struct{ why, setting string }{
	engine.Success:           {"", ""},
	engine.Permanent:         {"", ""}, // Error.why knows more
	engine.Overloaded:        {"the server asked not to", ""},
	engine.NotIdempotent:     {"it is not idempotent and may have been carried out", "NotIdempotent; in HTTP, an Idempotency-Key makes it safe"},
	engine.NotReplayable:     {"the request cannot be made a second time", "in HTTP, Request.GetBody"},
	engine.AttemptsExhausted: {"the policy allows no more attempts", "Policy.Attempts"},
	engine.CircuitOpen:       {"", ""},
	engine.HintTooLong:       {"", ""},
	engine.Deadline:          {"no time is left before the deadline", "Policy.Deadline, or the caller's context"},
	engine.BudgetExhausted:   {"the retry budget is exhausted", "Policy.Budget"},
	engine.Limited:           {"the concurrency limit has no room", "Policy.Limit"},
	engine.Canceled:          {"the caller's context has ended", ""},
	engine.Unanswered:        {"the dependency answered no other call quickly meanwhile", "Policy.Timeouts; for a process with few calls: preset.CommandLine"},
	engine.Throttled:         {"the client's own throttle held it back", "Policy.Throttle"},
	engine.TooManyLate:       {"too many of the recent calls are late for another attempt beside", "Policy.Hedge.Share"},
	engine.TooManyHedges:     {"too many hedges are in flight for another", "Policy.Hedge.InFlight"},
	engine.RetriedAbove:      {"it was made for a request that is itself a retry", "Policy.Nested"},
	engine.Panicked:          {"it panicked", ""},
	engine.Crashed:           {"the consumers that had it died", ""},
	engine.Resumed:           {"the retry is made by another call", ""},
	engine.Expired:           {"the message's own time is over", ""},
	engine.TooLarge:          {"the broker has no room for what a retry adds to the message", ""},
}
