package engine

import "fmt"

// A Reason is why a call ended.
type Reason uint8

const (
	// Success: the last attempt succeeded.
	Success Reason = iota
	// Permanent: another attempt would fail the same way, or nothing is known of the error.
	Permanent
	// Overloaded: the server asked not to retry.
	Overloaded
	// NotIdempotent: repeating the operation might do it twice.
	NotIdempotent
	// NotReplayable: the request cannot be made a second time.
	NotReplayable
	// AttemptsExhausted: the policy allows no more.
	AttemptsExhausted
	// CircuitOpen: the breaker refused the call, or opened during it.
	CircuitOpen
	// HintTooLong: the server asked to wait for longer than Policy.HintLimit.
	HintTooLong
	// Deadline: the deadline has passed, or the next wait would cross it.
	Deadline
	// BudgetExhausted: the dependency's retry budget did not pay for it.
	BudgetExhausted
	// Limited: the concurrency limit had no room.
	Limited
	// Canceled: the caller's context was cancelled.
	Canceled
	// Unanswered: the attempt timed out, and Policy.Timeouts does not allow to repeat it.
	Unanswered
	// Throttled: the client's own throttle held the attempt back (Policy.Throttle).
	Throttled
	// TooManyWaiting: so many calls wait for a retry that this one must not (Policy.Limit).
	TooManyWaiting
	// TooManyLate: too many of the recent calls are late, so none is hedged (Policy.Hedge.Share).
	// No call ends for this reason.
	TooManyLate
	// TooManyHedges: too many hedges are in flight (Policy.Hedge.InFlight). No call ends for this
	// reason.
	TooManyHedges
	// RetriedAbove: the call is made for a request that is itself a retry (Policy.Nested).
	RetriedAbove
	// Panicked: the operation panicked, or ended its goroutine (runtime.Goexit). Only observers
	// get this reason; the panic is raised again.
	Panicked
	// Crashed: the consumers of a message died again and again, at last when they had no other
	// one.
	Crashed
	// Resumed: another call makes the retry that was granted ([State.Resume]).
	Resumed
	// Expired: a message's own time is over, or would be before it came again.
	Expired
	// TooLarge: the broker has no room for what a retry adds to the message.
	TooLarge
	reasons
)

// Reasons is how many reasons there are.
const Reasons = int(reasons)

// reasonWords has for each reason its label, and what it means.
var reasonWords = [reasons]struct{ label, meaning string }{
	Success:           {"success", "the last attempt succeeded"},
	Permanent:         {"permanent", "permanent failure"},
	Overloaded:        {"overloaded", "server is overloaded and asked not to retry"},
	NotIdempotent:     {"not_idempotent", "operation is not idempotent and may have been carried out"},
	NotReplayable:     {"not_replayable", "request cannot be made a second time (a body without GetBody?)"},
	AttemptsExhausted: {"attempts_exhausted", "attempts exhausted"},
	CircuitOpen:       {"circuit_open", "circuit breaker is open"},
	HintTooLong:       {"hint_too_long", "server asked to wait for longer than the policy allows"},
	Deadline:          {"deadline", "no time left before the deadline"},
	BudgetExhausted:   {"budget_exhausted", "retry budget exhausted"},
	Limited:           {"limited", "concurrency limit reached"},
	Canceled:          {"canceled", "the caller has gone away"},
	Unanswered:        {"unanswered", "timed out while the dependency answered nobody else quickly"},
	Throttled:         {"throttled", "held back by the client's own throttle"},
	TooManyWaiting:    {"too_many_waiting", "too many calls wait for a retry already"},
	TooManyLate:       {"too_many_late", "too many of the recent calls are late"},
	TooManyHedges:     {"too_many_hedges", "too many hedges are in flight"},
	RetriedAbove:      {"retried_above", "made on behalf of a retry, which is not retried once more"},
	Panicked:          {"panicked", "operation panicked"},
	Crashed:           {"crashed", "the consumers that had it died"},
	Resumed:           {"resumed", "the retry is made by another call"},
	Expired:           {"expired", "the message's own time is over"},
	TooLarge:          {"too_large", "the broker has no room for what a retry adds to the message"},
}

// String returns the reason as a label for logs and metrics, such as "budget_exhausted".
func (r Reason) String() string {
	if r < reasons {
		return reasonWords[r].label
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// Meaning returns the reason in words, such as "retry budget exhausted".
func (r Reason) Meaning() string {
	if r < reasons {
		return reasonWords[r].meaning
	}
	return r.String()
}

// GaveUp reports whether a caller further up must not retry a call that ended for this reason,
// since retries would multiply: its attempts, budget or time were used up, the circuit was open,
// the throttle closed, too many calls waited, or the server asked to stop or to wait too long. It
// is false where a caller may know better: the operation could not be repeated safely, nothing is
// known of the failure, or there was no room here.
func (r Reason) GaveUp() bool {
	switch r {
	case AttemptsExhausted, BudgetExhausted, Deadline, CircuitOpen, Throttled,
		Overloaded, HintTooLong, Unanswered, RetriedAbove, TooManyWaiting:
		return true
	}
	return false
}
