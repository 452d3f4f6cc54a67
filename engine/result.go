package engine

import "time"

// A Result is how a call went, for drivers.
type Result struct {
	Reason   Reason
	Attempts int           // 0 if the call was refused before the first
	Elapsed  time.Duration // 0 for a first attempt that succeeded, unless the driver times every call
	Verdict  Verdict       // on the last attempt; the zero Verdict if none was made
	RetryAt  time.Duration // CircuitOpen only: how long until the breaker may admit a probe
	Cause    error         // what ended the caller's context, if that ended the call
	Slot     int           // HedgedCall: the attempt whose result, or whose failure, is the call's
}
