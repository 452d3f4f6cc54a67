package lullgrpc

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// An Error is the failure of a call that lull has given up. To the status
// package it is the status of the last attempt, details and all; if there was no
// attempt, UNAVAILABLE when the circuit was open or the concurrency limit reached;
// and if the caller's context ended, CANCELLED or DEADLINE_EXCEEDED. errors.Is and
// errors.As find the [*lull.Error] in it, which tells how often the call was tried
// and why no further attempt was made.
//
// A status that is an answer (NOT_FOUND, say), or that nothing is known of, comes
// back as it is, without an Error around it: lull had nothing to do with it.
type Error struct {
	Call   *lull.Error
	status *status.Status
}

// Error says what the call's error says.
func (e *Error) Error() string { return e.Call.Error() }

// Unwrap gives the call's error.
func (e *Error) Unwrap() error { return e.Call }

// GRPCStatus is the status that gRPC sees.
func (e *Error) GRPCStatus() *status.Status { return e.status }

// failure is the error of a call that went as r says, and whose last attempt
// ended with last.
func failure(d *lull.Dependency, method string, r engine.Result, last error) error {
	var st *status.Status // of the last attempt
	if last != nil {
		var ok bool
		if st, ok = status.FromError(last); ok && r.Reason == engine.Permanent {
			return last
		} else if !ok {
			st = status.FromContextError(last)
		}
	}
	call, _ := d.Error(method, r, last).(*lull.Error)
	if code := codeOfReason(r, last == nil); st == nil || code != codes.Unknown && code != st.Code() {
		st = status.New(code, call.Error())
	}
	return &Error{Call: call, status: st}
}

// codeOfReason is the code that goes with the end of a call. UNKNOWN: that of its
// last attempt.
func codeOfReason(r engine.Result, noAttempt bool) codes.Code {
	switch {
	case r.Reason == engine.Canceled:
		return codes.Canceled
	case r.Reason == engine.Deadline && (r.Cause != nil || noAttempt):
		return codes.DeadlineExceeded
	case noAttempt:
		return codes.Unavailable
	}
	return codes.Unknown
}
