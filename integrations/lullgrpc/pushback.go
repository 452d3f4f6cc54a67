package lullgrpc

import (
	"math"
	"net/http"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/lullgo/lull/internal/grpcstatus"
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
	status, _ := proto.Marshal(st.Proto()) // what it cannot have is no wait
	return h.Stop, max(h.After, grpcstatus.RetryDelayIn(status))
}

// formatPushback returns the value that asks for a wait of d, rounded up to milliseconds. A
// negative d gives the value that forbids another attempt.
func formatPushback(d time.Duration) string {
	if d < 0 {
		return "-1"
	}
	return lullhttp.FormatTimeout(min(d, math.MaxInt32*time.Millisecond))
}
