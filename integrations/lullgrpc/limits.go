package lullgrpc

import (
	"math"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// limited reports whether gRPC on this side made the RESOURCE_EXHAUSTED of a unary attempt, because
// a request or a reply is larger than is allowed here. That is no evidence about the server.
//
// The status itself does not show who made it, so limited looks at what has arrived. A server that
// refuses a call answers with trailers alone. They have the content type, which is otherwise in the
// header. A reply that is too large comes after a header. Without either, the request was too large
// to be sent, or the server has reset the stream (ENHANCE_YOUR_CALM). A server that fails after a
// header of its own has begun the work. It counts as one whose reply was too large, unless its
// status has details.
func (u *unary) limited(o *outcome, req any, err error, opts []grpc.CallOption) bool {
	st, _ := status.FromError(err)
	if st.Code() != codes.ResourceExhausted || !o.finished || o.neverSent() ||
		o.trailer["content-type"] != nil || o.trailer[pushbackKey] != nil || len(st.Proto().GetDetails()) > 0 {
		return false
	}
	switch {
	case u.tooLarge(req, opts):
		return true
	case !o.asked: // asked for the next time
		u.method.askHeader.Store(true)
		return true
	}
	return o.header != nil
}

// tooLarge reports whether the request may be larger than this side sends. gRPC compares the size
// as sent, which is smaller than the size here if it is compressed.
func (u *unary) tooLarge(req any, opts []grpc.CallOption) bool {
	limit := math.MaxInt32 // gRPC's own
	for _, each := range opts {
		if o, ok := each.(grpc.MaxSendMsgSizeCallOption); ok {
			limit = o.MaxSendMsgSize
		}
	}
	if u.cc != nil {
		if of := u.cc.GetMethodConfig(u.method.name).MaxReqSize; of != nil {
			limit = min(limit, *of)
		}
	}
	if limit == math.MaxInt32 {
		return false
	}
	m, ok := asProto(req)
	return !ok || proto.Size(m) > limit
}

// ready reports whether a call on the connection would be sent at once.
func ready(cc *grpc.ClientConn) bool { return cc != nil && cc.GetState() == connectivity.Ready }
