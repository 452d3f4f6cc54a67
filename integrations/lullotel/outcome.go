package lullotel

import (
	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
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
	// Degraded: the call failed, and its fallback gave an answer (lull.DoOr).
	Degraded
	// FailedUnknown: nobody knows whether the operation was carried out, and it must not be carried
	// out twice (lull.Event.OutcomeUnknown). One that its caller canceled is Canceled.
	FailedUnknown
	// FailedTerminal: the call must not be repeated: it would have failed the same way, or the
	// server forbade it, or asked for too long a wait; or it panicked.
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

var outcomeNames = [outcomes]string{"success_first", "success_retry", "degraded", "failed_unknown", "failed_terminal", "failed_exhausted",
	"failed_budget", "failed_deadline", "failed_breaker", "failed_limited", "canceled"}

// String returns the outcome as a label, such as "success_first".
func (o Outcome) String() string { return choice.Name("outcome", outcomeNames[:], o) }

// OutcomeOf returns the outcome of the call of e, which is its CallEnded or FallbackEnded. A
// CallEnded with Fallback has the outcome that counts if the fallback fails, too.
func OutcomeOf(e *lull.Event) Outcome {
	switch {
	case e.Kind == event.FallbackEnded && e.Err == nil:
		return Degraded
	case e.OutcomeUnknown && e.Reason != engine.Canceled:
		return FailedUnknown
	}
	switch e.Reason {
	case engine.Success:
		if e.EndedAttempt > 1 {
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
