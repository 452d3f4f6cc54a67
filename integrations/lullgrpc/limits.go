package lullgrpc

import (
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/grpcstatus"
)

// This file has the failures that gRPC itself reports with the code of something else. The status
// does not show who made it, so its text decides. A text never makes a failure repeatable: a server
// may have passed it on from a call of its own.

// Texts of grpc-go about HTTP/2 and HTTP.
const (
	flowControlReset = "stream terminated by RST_STREAM with error code: FLOW_CONTROL_ERROR"
	calmGoAway       = "received prior goaway: code: ENHANCE_YOUR_CALM"
	http429          = "unexpected HTTP status code received from server: 429 "
)

// madeByGRPC returns v, the verdict on st, as it is if gRPC itself has made st. A status with
// details or with a pushback comes from a server.
func madeByGRPC(v lull.Verdict, f Failure, st *status.Status) lull.Verdict {
	if f.Trailer[pushbackKey] != nil || len(st.Proto().GetDetails()) > 0 {
		return v
	}
	switch text := st.Message(); {
	case st.Code() == codes.Unavailable && (strings.Contains(text, http429) || strings.Contains(text, calmGoAway)):
		v.Kind = lull.KindRateLimited
	case st.Code() != codes.ResourceExhausted || v.Kind != lull.KindRateLimited:
	case grpcstatus.TooLarge(text) && f.Trailer["content-type"] != nil: // trailers alone: the server has answered
		v.Kind = lull.KindPermanent
	case grpcstatus.TooLarge(text), strings.Contains(text, flowControlReset):
		return notRepeated(f.NeverSent)
	}
	return v
}

// notRepeated is the verdict on a failure that is not the request's fault, and still is not repeated. It
// counts neither for nor against the dependency.
func notRepeated(neverSent bool) lull.Verdict {
	return lull.Verdict{Kind: lull.KindUnclassified, Code: engine.CodeUnclassified, NeverSent: neverSent}
}

// isReady reports whether a call on the connection would be sent at once.
func isReady(cc *grpc.ClientConn) bool { return cc != nil && cc.GetState() == connectivity.Ready }
