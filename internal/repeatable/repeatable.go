// Package repeatable has what a request of HTTP itself says of being carried out twice.
package repeatable

import "net/http"

// KeyHeaders are the headers by which a server recognises that a request is sent again, in their canonical form. net/http
// knows the same two.
var KeyHeaders = [...]string{"Idempotency-Key", "X-Idempotency-Key"}

// IsKeyed reports whether the server will recognise a repetition of a request with header h. The name of a header without a
// value counts: as in net/http it makes the request replayable, and is not sent.
func IsKeyed(h http.Header) bool {
	for _, key := range KeyHeaders {
		if _, ok := h[key]; ok {
			return true
		}
	}
	return false
}

// IsIdempotent reports whether carrying a request with that method out twice is the same as once (RFC 9110, 9.2.2). An empty
// method is GET.
func IsIdempotent(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}
