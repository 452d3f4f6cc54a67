package lullhttp

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// DefaultTimeoutHeader is the request header with the time for which the client still waits for the
// response to begin, in milliseconds. Hosts whose responses have AnnounceHeader get it. It is a
// duration and not a point in time, since clocks differ. As with grpc-timeout, the time on the
// network is not counted.
const DefaultTimeoutHeader = "Lull-Timeout"

// AnnounceHeader is the response header of a server that reads DefaultTimeoutHeader. Its value is
// "1". NewHandler and package admission send it.
const AnnounceHeader = "Lull"

var announcement = []string{"1"}

// FormatTimeout returns d as a value of DefaultTimeoutHeader. It rounds up to milliseconds: a
// server that gives up early wastes its work.
func FormatTimeout(d time.Duration) string {
	if d <= 0 {
		return "0"
	}
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 {
		ms++
	}
	return strconv.FormatInt(int64(ms), 10)
}

type formattedTimeout struct {
	d    time.Duration
	text string
}

// formatTimeout is FormatTimeout without an allocation for the usual time.
func (t *Transport) formatTimeout(d time.Duration) string {
	if d <= t.usualTimeout.d && t.usualTimeout.d-d < time.Millisecond && t.usualTimeout.d%time.Millisecond == 0 {
		return t.usualTimeout.text
	}
	return FormatTimeout(d)
}

// ParseTimeout returns how long the client of a request still waits for the response to begin, from
// Lull-Timeout, X-Envoy-Expected-Rq-Timeout-Ms (Envoy) and Grpc-Timeout. Of several the shortest
// counts. Malformed values are ignored. Zero with true means that the time is up. Header keys must
// be canonical.
func ParseTimeout(h http.Header) (time.Duration, bool) {
	return parseTimeout(h, DefaultTimeoutHeader)
}

func parseTimeout(h http.Header, ours string) (left time.Duration, ok bool) {
	for _, key := range [...]string{ours, "X-Envoy-Expected-Rq-Timeout-Ms"} {
		for _, v := range h[key] {
			d, is := parseDigits(v, time.Millisecond)
			if d == 0 && key != ours {
				is = false // Envoy's routes without a timeout
			}
			if is && (!ok || d < left) {
				left, ok = d, true
			}
		}
	}
	for _, v := range h["Grpc-Timeout"] {
		if d, is := parseGRPCTimeout(v); is && (!ok || d < left) {
			left, ok = d, true
		}
	}
	return left, ok
}

var grpcUnits = [...]struct {
	letter string
	unit   time.Duration
}{
	{"H", time.Hour}, {"M", time.Minute}, {"S", time.Second},
	{"m", time.Millisecond}, {"u", time.Microsecond}, {"n", time.Nanosecond},
}

// parseGRPCTimeout reads one to eight digits and a unit (PROTOCOL-HTTP2 of gRPC).
func parseGRPCTimeout(v string) (time.Duration, bool) {
	for _, u := range grpcUnits {
		if digits, ok := strings.CutSuffix(v, u.letter); ok && len(digits) <= 8 {
			return parseDigits(digits, u.unit)
		}
	}
	return 0, false
}
