package lull

import (
	"context"
	"errors"
	"fmt"
)

// A Reason says why a call ended.
type Reason uint8

const (
	// Succeeded: the last attempt did.
	Succeeded Reason = iota
	// FailedPermanent: another attempt would have failed the same way, or
	// nothing was known of the error.
	FailedPermanent
	// ServerSaidStop: the server asked not to retry.
	ServerSaidStop
	// UnsafeToRepeat: repeating the operation might have done it twice.
	UnsafeToRepeat
	// CannotReplay: the request cannot be made a second time.
	CannotReplay
	// AttemptsExhausted: the policy allows no more.
	AttemptsExhausted
	// CircuitOpen: the breaker refused the call, or opened while it went on.
	CircuitOpen
	// HintTooLong: the server asked to wait for longer than Policy.HintLimit.
	HintTooLong
	// DeadlineReached: the deadline has passed, or the next wait would cross it.
	DeadlineReached
	// BudgetExhausted: the dependency's retry budget did not pay for it.
	BudgetExhausted
	// Limited: the concurrency limit had no room.
	Limited
	// CallerCanceled: the caller's context was cancelled.
	CallerCanceled
	// Unanswered: the attempt timed out, and the dependency has answered none that
	// began later (Policy.Timeouts).
	Unanswered
	// HeldBack: the client's own throttle did not let the attempt pass
	// (Policy.Throttle).
	HeldBack
	// TooManyLate: of the recent calls too many are late for another attempt to run beside
	// those of the call (Policy.Hedge.Share). No call ends for this reason.
	TooManyLate
	// TooManyHedges: too many hedges are in flight for another (Policy.Hedge.InFlight). No
	// call ends for this reason.
	TooManyHedges
	// RetriedAbove: the call is made on behalf of a request that is itself a retry
	// (Policy.Nested).
	RetriedAbove
	// Panicked: the operation did, or ended its goroutine (runtime.Goexit). Observers are
	// told so; there is no Result and no Error, for the panic goes on up.
	Panicked
	reasons
)

// The reasons as errors: errors.Is(err, ErrBudgetExhausted) tells why a call
// that failed made no further attempt.
var (
	ErrPermanent         = errors.New("permanent failure")
	ErrOverloaded        = errors.New("server is overloaded and asked not to retry")
	ErrNotIdempotent     = errors.New("operation is not idempotent and may have been carried out")
	ErrNotReplayable     = errors.New("request cannot be made a second time (a body without GetBody?)")
	ErrAttemptsExhausted = errors.New("attempts exhausted")
	ErrCircuitOpen       = errors.New("circuit breaker is open")
	ErrHintTooLong       = errors.New("server asked to wait for longer than the policy allows")
	ErrDeadline          = errors.New("no time left before the deadline")
	ErrBudgetExhausted   = errors.New("retry budget exhausted")
	ErrUnanswered        = errors.New("timed out while the dependency answered nobody else")
	ErrThrottled         = errors.New("held back by the client's own throttle")
	ErrRetriedAbove      = errors.New("made on behalf of a retry, which is not retried once more")
	errPanicked          = errors.New("operation panicked")
	errTooManyLate       = errors.New("too many of the recent calls are late")
	errTooManyHedges     = errors.New("too many hedges are in flight")
	ErrLimited           = errors.New("concurrency limit reached")
)

// reasonTable has for each reason its name, its error, why there was no further attempt, and
// the setting that would change it.
var reasonTable = [reasons]struct {
	name         string
	err          error
	why, setting string
}{
	Succeeded:         {"success", nil, "", ""},
	FailedPermanent:   {"permanent", ErrPermanent, "", ""}, // Error.why knows more
	ServerSaidStop:    {"overloaded", ErrOverloaded, "the server asked not to", ""},
	UnsafeToRepeat:    {"not_idempotent", ErrNotIdempotent, "it is not idempotent and may have been carried out", "NotIdempotent; in HTTP, an Idempotency-Key makes it safe"},
	CannotReplay:      {"not_replayable", ErrNotReplayable, "the request cannot be made a second time", "in HTTP, Request.GetBody"},
	AttemptsExhausted: {"attempts_exhausted", ErrAttemptsExhausted, "the policy allows no more attempts", "Policy.Attempts"},
	CircuitOpen:       {"circuit_open", ErrCircuitOpen, "", ""},
	HintTooLong:       {"hint_too_long", ErrHintTooLong, "", ""},
	DeadlineReached:   {"deadline", ErrDeadline, "no time is left before the deadline", "Policy.Deadline, or the caller's context"},
	BudgetExhausted:   {"budget_exhausted", ErrBudgetExhausted, "the retry budget is exhausted", "Policy.Budget"},
	Limited:           {"limited", ErrLimited, "the concurrency limit has no room", "Policy.Limit"},
	CallerCanceled:    {"canceled", context.Canceled, "the caller's context has ended", ""},
	Unanswered:        {"unanswered", ErrUnanswered, "the dependency answered no other call meanwhile", "Policy.Timeouts"},
	HeldBack:          {"throttled", ErrThrottled, "the client's own throttle held it back", "Policy.Throttle"},
	TooManyLate:       {"too_many_late", errTooManyLate, "too many of the recent calls are late for another attempt beside", "Policy.Hedge.Share"},
	TooManyHedges:     {"too_many_hedges", errTooManyHedges, "too many hedges are in flight for another", "Policy.Hedge.InFlight"},
	RetriedAbove:      {"retried_above", ErrRetriedAbove, "it was made for a request that is itself a retry", "Policy.Nested"},
	Panicked:          {"panicked", errPanicked, "it panicked", ""},
}

// String is the reason as a label for logs and metrics, such as "budget_exhausted".
func (r Reason) String() string {
	if r < reasons {
		return reasonTable[r].name
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// GaveUp tells of a call that has failed although a retry might have mended it, and
// for which all has been done that should be: attempts, budget or time were at their
// end, the circuit was open or the throttle closed, the server said to stop, or to
// wait for too long. To retry it from further up would multiply. Where it has not
// been retried because that would not have been safe, because nothing is known of the
// failure, or for want of room here, others may know better.
func (r Reason) GaveUp() bool {
	switch r {
	case AttemptsExhausted, BudgetExhausted, DeadlineReached, CircuitOpen, HeldBack,
		ServerSaidStop, HintTooLong, Unanswered, RetriedAbove:
		return true
	}
	return false
}

// Err is the reason as a sentinel error; nil for Succeeded.
func (r Reason) Err() error {
	if r < reasons {
		return reasonTable[r].err
	}
	return nil
}
