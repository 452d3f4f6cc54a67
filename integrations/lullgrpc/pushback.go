package lullgrpc

import (
	"math"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Metadata of gRPC's own retries (gRFC A6).
const (
	pushbackKey = "grpc-retry-pushback-ms"
	attemptsKey = "grpc-previous-rpc-attempts"
)

// hint is the server's request about the next attempt.
type hint struct {
	stop  bool          // there should be none
	after time.Duration // how long to wait for it; 0: not requested
}

// hintOf reads the trailer and the details of a failure. The trailer can forbid another attempt. Of
// two waits the longer one counts.
func hintOf(trailer metadata.MD, st *status.Status) hint {
	h := pushback(trailer[pushbackKey])
	if !h.stop {
		h.after = max(h.after, retryInfo(st))
	}
	return h
}

// pushback reads the values of grpc-retry-pushback-ms. A number of milliseconds in the proposal's
// form (an int32 in ASCII, no unneeded leading zeros) is a wait. A negative number, any other text,
// and several values forbid another attempt: the proposal takes everything that is not understood
// as a refusal.
func pushback(values []string) hint {
	switch len(values) {
	case 0:
		return hint{}
	case 1:
	default:
		return hint{stop: true}
	}
	text := values[0]
	if text == "" || text[0] == '0' && len(text) > 1 {
		return hint{stop: true}
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return hint{stop: true}
		}
	}
	ms, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return hint{stop: true}
	}
	return hint{after: time.Duration(ms) * time.Millisecond}
}

// formatPushback returns the value that asks for a wait of d, rounded up to milliseconds. A
// negative d gives the value that forbids another attempt.
func formatPushback(d time.Duration) string {
	if d < 0 {
		return "-1"
	}
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 {
		ms++
	}
	return strconv.FormatInt(min(int64(ms), math.MaxInt32), 10)
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
