package lullhttp

import (
	"math"
	"net/http"
	"strconv"
	"strings"
)

// contentRange is the value of a Content-Range field of a 206 (RFC 9110, 14.4). Both positions are
// inclusive, in bytes.
type contentRange struct {
	first, last int64
	complete    int64 // the length of the whole; -1: unknown ("*")
}

// parseContentRange returns false for anything but a range of bytes that is possible.
func parseContentRange(s string) (contentRange, bool) {
	unit, rest, _ := strings.Cut(s, " ")
	positions, complete, _ := strings.Cut(rest, "/")
	first, last, _ := strings.Cut(positions, "-")
	r := contentRange{complete: -1}
	var ok [3]bool
	r.first, ok[0] = parsePosition(first)
	r.last, ok[1] = parsePosition(last)
	if ok[2] = complete == "*"; !ok[2] {
		r.complete, ok[2] = parsePosition(complete)
	}
	if !strings.EqualFold(unit, "bytes") || ok != [3]bool{true, true, true} || r.last < r.first || r.complete >= 0 && r.last >= r.complete {
		return contentRange{}, false
	}
	return r, true
}

// parsePosition reads 1*DIGIT below the largest int64, so that the next position is one, too.
func parsePosition(s string) (int64, bool) {
	if strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n < math.MaxInt64
}

// strongETag returns the entity tag of a response if it has exactly one, and that is strong and
// well-formed (RFC 9110, 8.8.3); otherwise "". Only a strong one proves that two bodies are the
// same byte by byte.
func strongETag(h http.Header) string {
	v := h["Etag"]
	if len(v) != 1 || len(v[0]) < 2 || v[0][0] != '"' || v[0][len(v[0])-1] != '"' {
		return ""
	}
	for _, c := range []byte(v[0][1 : len(v[0])-1]) {
		if c <= ' ' || c == '"' || c == 0x7f {
			return ""
		}
	}
	return v[0]
}
