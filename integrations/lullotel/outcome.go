package lullotel

import (
	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/choice"
)

// An Outcome is the outcome of a call, as the label of its counters. There are fewer outcomes than
// reasons, which are counted as well.
type Outcome uint8

const (
	// SuccessFirst: the first attempt succeeded.
	SuccessFirst Outcome = iota
	// SuccessRetry: a later attempt succeeded, after the first or beside it.
	SuccessRetry
	// FailedTerminal: the call must not be repeated: it would have failed the same way, or might
	// have been done twice, or the server forbade it, or asked for too long a wait; or it panicked.
	FailedTerminal
	// FailedExhausted: all attempts that the policy allows were made.
	FailedExhausted
	// FailedBudget: the retry budget did not pay for another.
	FailedBudget
	// FailedDeadline: no time was left for another.
	FailedDeadline
	// FailedBreaker: the circuit was open, before the first attempt or before another.
	FailedBreaker
	// FailedLimited: the concurrency limit or the throttle of this process had no room, or too many
	// calls waited for a retry.
	FailedLimited
	// Canceled: the caller went away.
	Canceled
	outcomes
)

var outcomeNames = [outcomes]string{"success_first", "success_retry", "failed_terminal", "failed_exhausted",
	"failed_budget", "failed_deadline", "failed_breaker", "failed_limited", "canceled"}

// String returns the outcome as a label, such as "success_first".
func (o Outcome) String() string { return choice.Name("outcome", outcomeNames[:], o) }

// OutcomeOf returns the outcome of a call that ended for the given reason, by the given attempt
// (lull.Event.EndedAttempt; only used for a success).
func OutcomeOf(r lull.Reason, by int) Outcome {
	switch r {
	case engine.Success:
		if by > 1 {
			return SuccessRetry
		}
		return SuccessFirst
	case engine.AttemptsExhausted:
		return FailedExhausted
	case engine.BudgetExhausted:
		return FailedBudget
	case engine.Deadline:
		return FailedDeadline
	case engine.CircuitOpen:
		return FailedBreaker
	case engine.Limited, engine.Throttled, engine.TooManyWaiting:
		return FailedLimited
	case engine.Canceled:
		return Canceled
	}
	return FailedTerminal
}
