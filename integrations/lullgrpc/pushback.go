package lullgrpc

import (
	"math"
	"net/http"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/lullgo/lull/lullhttp"
)

// Metadata of gRPC's own retries (gRFC A6).
const (
	pushbackKey = "grpc-retry-pushback-ms"
	attemptsKey = "grpc-previous-rpc-attempts"
)

// hintOf returns what the trailer and the details of a failure ask for: no other attempt, or a wait for it
// (0: not requested). Of two waits the longer one counts.
func hintOf(trailer metadata.MD, st *status.Status) (stop bool, after time.Duration) {
	h, _ := lullhttp.ParseHint(http.Header{"Grpc-Retry-Pushback-Ms": trailer[pushbackKey]}, 0, time.Time{})
	return h.Stop, max(h.After, retryInfo(st))
}

// formatPushback returns the value that asks for a wait of d, rounded up to milliseconds. A
// negative d gives the value that forbids another attempt.
func formatPushback(d time.Duration) string {
	if d < 0 {
		return "-1"
	}
	return lullhttp.FormatTimeout(min(d, math.MaxInt32*time.Millisecond))
}

// retryInfo returns the longest wait in the status's google.rpc.RetryInfo details. Malformed or
// negative waits are ignored.
func retryInfo(st *status.Status) time.Duration {
	var longest time.Duration
	for _, detail := range st.Proto().GetDetails() {
		var info errdetails.RetryInfo
		if !detail.MessageIs(&info) || detail.UnmarshalTo(&info) != nil {
			continue
		}
		if delay := info.GetRetryDelay(); delay.IsValid() {
			longest = max(longest, delay.AsDuration())
		}
	}
	return longest
}
