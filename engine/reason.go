package engine

import "fmt"

// A Reason is why a call ended.
type Reason uint8

const (
	// Success: the last attempt did.
	Success Reason = iota
	// Permanent: another attempt would have failed the same way, or
	// nothing was known of the error.
	Permanent
	// Overloaded: the server asked not to retry.
	Overloaded
	// NotIdempotent: repeating the operation might have done it twice.
	NotIdempotent
	// NotReplayable: the request cannot be made a second time.
	NotReplayable
	// AttemptsExhausted: the policy allows no more.
	AttemptsExhausted
	// CircuitOpen: the breaker refused the call, or opened while it went on.
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
	// Unanswered: the attempt timed out, and the dependency has answered none quickly that
	// began later (Policy.Timeouts).
	Unanswered
	// Throttled: the client's own throttle did not let the attempt pass
	// (Policy.Throttle).
	Throttled
	// TooManyLate: of the recent calls too many are late for another attempt to run beside
	// those of the call (Policy.Hedge.Share). No call ends for this reason.
	TooManyLate
	// TooManyHedges: too many hedges are in flight for another (Policy.Hedge.InFlight). No
	// call ends for this reason.
	TooManyHedges
	// RetriedAbove: the call is made on behalf of a request that is itself a retry
	// (Policy.Nested).
	RetriedAbove
	// Panicked: the operation did, or ended its goroutine (runtime.Goexit). Observers learn
	// of it; there is no Result and no Error, for the panic is raised again.
	Panicked
	// Crashed: the consumers that had a message died again and again, at last when they had
	// no other one.
	Crashed
	// Resumed: the retry that was granted is made by a call of its own (State.Resume).
	Resumed
	// Expired: a message's own time is over, or is over before it could come again.
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
	TooManyLate:       {"too_many_late", "too many of the recent calls are late"},
	TooManyHedges:     {"too_many_hedges", "too many hedges are in flight"},
	RetriedAbove:      {"retried_above", "made on behalf of a retry, which is not retried once more"},
	Panicked:          {"panicked", "operation panicked"},
	Crashed:           {"crashed", "the consumers that had it died"},
	Resumed:           {"resumed", "the retry is made by another call"},
	Expired:           {"expired", "the message's own time is over"},
	TooLarge:          {"too_large", "the broker has no room for what a retry adds to the message"},
}

// String is the reason as a label for logs and metrics, such as "budget_exhausted".
func (r Reason) String() string {
	if r < reasons {
		return reasonWords[r].label
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// Meaning is the reason in words, such as "retry budget exhausted".
func (r Reason) Meaning() string {
	if r < reasons {
		return reasonWords[r].meaning
	}
	return r.String()
}

// GaveUp reports whether a call that ended for this reason had done all that it should: its
// attempts, its budget or its time were used up, the circuit was open, the throttle was closed,
// or the server asked to stop or to wait for too long. A caller further up must not retry it,
// since retries would multiply. It is false where a caller further up may know better: the
// operation could not be repeated safely, nothing is known of the failure, or there was no room
// here.
func (r Reason) GaveUp() bool {
	switch r {
	case AttemptsExhausted, BudgetExhausted, Deadline, CircuitOpen, Throttled,
		Overloaded, HintTooLong, Unanswered, RetriedAbove:
		return true
	}
	return false
}
