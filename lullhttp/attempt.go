package lullhttp

import (
	"math"
	"net/http"
	"strings"
)

// DefaultHedgeHeader is the request header of a hedge, so that servers can shed it first. Its value
// is a Boolean of RFC 9651, "?1".
const DefaultHedgeHeader = "Lull-Hedge"

// ParseHedge reports whether DefaultHedgeHeader marks a request as a hedge. "1" and "true" count as
// well. Header keys must be canonical, as net/http makes them.
func ParseHedge(h http.Header) bool {
	for _, v := range h[DefaultHedgeHeader] {
		if v == "?1" || v == "1" || strings.EqualFold(v, "true") {
			return true
		}
	}
	return false
}

// attemptHeaders are the fields in which clients send the number of the attempt.
var attemptHeaders = [...]struct {
	key   string
	first int    // the number of a first attempt
	param string // the member with the number, if the value is a list
	comma string // that separates the members of the list
	equal string // that separates a member's name from its value
}{
	{key: DefaultAttemptHeader, first: 1},
	{key: "X-Envoy-Attempt-Count", first: 1},
	{key: "Grpc-Previous-Rpc-Attempts"},
	{"Amz-Sdk-Request", 1, "attempt", ";", "="}, // attempt=2; max=3
	{key: "X-Stainless-Retry-Count"},
	{"X-Goog-Api-Client", 1, "gccl-attempt-count", " ", "/"}, // gccl-invocation-id/... gccl-attempt-count/2 gl-go/1.26
}

// ParseAttempt returns which attempt of its client a request is, from 1. It reads Lull-Attempt,
// X-Envoy-Attempt-Count (Envoy), Grpc-Previous-Rpc-Attempts (gRFC A6), Amz-Sdk-Request (AWS SDKs),
// X-Stainless-Retry-Count (OpenAI, Anthropic and others) and X-Goog-Api-Client (Google Cloud
// Storage). Each layer knows its own retries only, so of several the highest counts. A request
// without a readable number is a first attempt. Header keys must be canonical, as net/http makes
// them.
//
// A client can send any number. It gains nothing by a higher one.
func ParseAttempt(h http.Header) int {
	n := 1
	for i := range attemptHeaders {
		f := &attemptHeaders[i]
		for _, v := range h[f.key] {
			if f.param != "" {
				v = namedMember(v, f.param, f.comma, f.equal)
			}
			if d, ok := parseDigits(v, 1); ok {
				n = max(n, int(min(d, math.MaxInt32-1))+1-f.first)
			}
		}
	}
	return n
}

// namedMember returns the value of the named member of a list such as "attempt=2; max=3".
func namedMember(list, name, comma, equal string) string {
	for part := range strings.SplitSeq(list, comma) {
		if key, value, ok := strings.Cut(strings.TrimSpace(part), equal); ok && strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}
