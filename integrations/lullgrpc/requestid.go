package lullgrpc

import (
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

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
