package lullgrpc

import (
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// An Error is the failure of a call that lull has given up. The status package finds a status in
// it: that of the last attempt, with its details. If there was no attempt, it is UNAVAILABLE when
// the circuit was open or the concurrency limit was reached. If the caller's context ended, it is
// CANCELLED or DEADLINE_EXCEEDED. errors.Is and errors.As find the [*lull.Error] in it, with the
// number of attempts and the reason why there was no other.
//
// A status that is an answer (NOT_FOUND, for example), or of which nothing is known, is returned as
// it is, without an Error around it.
type Error struct {
	Call   *lull.Error
	status *status.Status
}

// Error returns the text of the call's error.
func (e *Error) Error() string { return e.Call.Error() }

// Unwrap returns the call's error.
func (e *Error) Unwrap() error { return e.Call }

// GRPCStatus returns the status that the status package sees.
func (e *Error) GRPCStatus() *status.Status { return e.status }

// failure returns the error of a call with result r, whose last attempt ended with last.
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

// codeOfReason returns the code for the end of a call. UNKNOWN: use that of the last attempt.
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

// requestIDs are the keys under which servers send the ID of a request.
var requestIDs = [...]string{"x-request-id", "request-id", "x-correlation-id"}

// errorWithID is the error of a call that a server has answered, with the ID by which the server
// knows the call. Only observers get it.
type errorWithID struct {
	error
	id string
}

func (a errorWithID) Unwrap() error     { return a.error }
func (a errorWithID) RequestID() string { return a.id } // for event.NewLog

// withRequestID adds the ID of the request to err, if there is one: from the trailer, or from the
// detail google.rpc.RequestInfo.
func withRequestID(err error, trailer metadata.MD) error {
	if err == nil {
		return nil
	}
	for _, key := range requestIDs {
		if ids := trailer[key]; len(ids) > 0 && ids[0] != "" {
			return errorWithID{err, ids[0]}
		}
	}
	if st, ok := status.FromError(err); ok && len(st.Proto().GetDetails()) > 0 {
		for _, d := range st.Details() {
			if info, is := d.(*errdetails.RequestInfo); is && info.GetRequestId() != "" {
				return errorWithID{err, info.GetRequestId()}
			}
		}
	}
	return err
}
