package engine

import "time"

// A Result is how a call went, for drivers.
type Result struct {
	Reason Reason
	// OutcomeUnknown: the operation may have been carried out, and must not be carried out twice
	// ([Verdict.OutcomeUnknown] of the last attempt, or of a call of lull that it made).
	OutcomeUnknown bool

	Attempts int           // 0 if the call was refused before the first
	Elapsed  time.Duration // 0 for a first attempt that succeeded, unless the driver times every call
	Verdict  Verdict       // on the last attempt; the zero Verdict if none was made
	RetryAt  time.Duration // CircuitOpen only: how long until the breaker may admit a probe
	Cause    error         // what ended the caller's context, if that ended the call
	Slot     int           // HedgedCall: the attempt whose result, or whose failure, is the call's
}

// Degrades reports whether a degraded answer is right after a call with this result: an older
// value, a default, a part of the whole. It is if the dependency is in trouble or held back, and
// wrong if the answer itself is an error, or if nobody knows what was done. Each reason is in one
// of these lists:
//
//	it does: attempts_exhausted budget_exhausted circuit_open deadline hint_too_long limited
//	         overloaded retried_above throttled too_many_waiting unanswered
//	never:   canceled crashed expired not_idempotent not_replayable panicked permanent resumed
//	         success too_large too_many_hedges too_many_late
//
// It is false for every reason if OutcomeUnknown is set.
func (r Result) Degrades() bool {
	return (r.Reason.GaveUp() || r.Reason == Limited) && !r.OutcomeUnknown
}
