package lullhttp

import (
	"context"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/grpcstatus"
)

const (
	hdrGRPCStatus  = "Grpc-Status"
	hdrGRPCMessage = "Grpc-Message"
)

// isGRPC reports whether resp is a response of gRPC: its status is in Grpc-Status, and not in the
// status line.
func isGRPC(resp *http.Response) bool {
	if resp.ProtoMajor < 2 || resp.StatusCode != http.StatusOK {
		return false
	}
	rest, is := strings.CutPrefix(resp.Header.Get("Content-Type"), "application/grpc")
	return is && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// grpcVerdict returns what a response of gRPC means. Its status is in the header if it has no body,
// else in the trailer. That is known here if the body ends without a byte: a unary call that has
// failed. Otherwise the response has begun, which is a success.
//
// It waits for the first byte only if the request was sent to its end. If not, the server may wait
// for more of it.
func (x *exchange) grpcVerdict(ctx context.Context, resp *http.Response) lull.Verdict {
	if h := resp.Header; len(h[hdrGRPCStatus]) > 0 {
		return classifyGRPC(h)
	}
	if body := x.bodyFlags(); body&bodySending != 0 && body&bodyEnded == 0 {
		return lull.Verdict{Kind: lull.KindSuccess}
	}
	within := peekTime
	if until, bounded := ctx.Deadline(); bounded {
		within = min(within, time.Until(until)/2)
	}
	if first, ended := peek(resp, peekBytes, true, within); !ended || len(first) > 0 {
		return lull.Verdict{Kind: lull.KindSuccess}
	}
	return classifyGRPC(resp.Trailer)
}

// classifyGRPC returns what the status in a header or a trailer means, as lullgrpc.Classify does.
func classifyGRPC(h http.Header) lull.Verdict {
	code, err := strconv.ParseUint(h.Get(hdrGRPCStatus), 10, 32)
	if err != nil {
		return lull.Verdict{Kind: lull.KindUnclassified, Code: engine.CodeUnclassified}
	}
	kind, name := grpcstatus.KindOf(uint32(code))
	details := h.Get("Grpc-Status-Details-Bin")
	hint, _ := ParseHint(http.Header{hdrPushback: h[hdrPushback]}, 0, time.Time{})
	v, hinted := grpcstatus.WithHint(lull.Verdict{Kind: kind, Code: name}, hint.Stop, max(hint.After, grpcstatus.RetryDelay(details)))
	if !hinted && code == grpcstatus.ResourceExhausted && details == "" && h[hdrPushback] == nil && grpcstatus.TooLarge(h.Get(hdrGRPCMessage)) {
		v.Kind = lull.KindPermanent
	}
	return v
}

// headerOf returns a copy of the header of a response, with the status of gRPC from the trailer if that
// has come.
func headerOf(resp *http.Response) http.Header {
	h := resp.Header.Clone()
	if body, peeked := resp.Body.(*prefetchedBody); peeked && isGRPC(resp) && body.isEmpty() {
		maps.Copy(h, resp.Trailer)
	}
	return h
}
