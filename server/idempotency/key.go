package idempotency

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
)

const (
	maxKeyLimit = 1024 // the most that Config.MaxKey may be
	scopeLen    = 22   // 128 bits in base64
)

// keyOf returns the key in h, or why it has no usable key.
func (m *Middleware) keyOf(h http.Header) (key string, bad details) {
	values := h["Idempotency-Key"]
	if len(values) == 0 {
		return "", m.details(ProblemKeyMissing)
	}
	key, ok := ParseKey(values[0])
	switch {
	case len(values) > 1:
		bad = m.details(ProblemKeyInvalid)
		bad.Detail = "There is more than one Idempotency-Key."
	case !ok:
		bad = m.details(ProblemKeyInvalid)
	case len(key) > m.config.MaxKey:
		bad = m.tooLong(ProblemKeyTooLong, int64(m.config.MaxKey))
	}
	return key, bad
}

// ParseKey reads the value of an Idempotency-Key field: a String of Structured
// Fields (RFC 9651, 3.3.3), printable ASCII in double quotes where \ quotes " and \
// only, or, since most clients send it so, the same without quotes. Both forms of
// one key are equal. Spaces around the value are not part of it.
//
// A bare key has no spaces, quotes, commas, semicolons or backslashes: with them it
// could be a quoted one that was damaged, a list, or an item with parameters. (A
// parameter would be well-formed, but the draft defines none.) A key is not empty.
func ParseKey(value string) (key string, ok bool) {
	value = strings.Trim(value, " \t")
	if value == "" || value[0] != '"' {
		for i := range len(value) {
			if c := value[i]; c <= ' ' || c > '~' || c == '"' || c == '\\' || c == ',' || c == ';' {
				return "", false
			}
		}
		return value, value != ""
	}
	if len(value) < 3 || value[len(value)-1] != '"' {
		return "", false
	}
	inner := value[1 : len(value)-1]
	escapes := false
	for i := 0; i < len(inner); i++ {
		switch c := inner[i]; {
		case c == '\\':
			i++
			if i == len(inner) || inner[i] != '"' && inner[i] != '\\' {
				return "", false
			}
			escapes = true
		case c < ' ' || c > '~' || c == '"':
			return "", false
		}
	}
	if escapes {
		inner = unescape(inner)
	}
	return inner, true
}

// unescape takes away the backslash of each pair.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// StoreKey returns the key of the store's entry for a caller's key: 22
// letters made of the scope, a colon, and the key. It is for operators who look for
// an entry; the scope cannot be read from it.
func StoreKey(scope, key string) string {
	h := sha256.Sum256([]byte(scope))
	b := make([]byte, 0, scopeLen+1+len(key))
	b = base64.RawURLEncoding.AppendEncode(b, h[:16])
	b = append(b, ':')
	return string(append(b, key...))
}

// callerOf is Claim.Caller for a StoreKey of scope: its scope's part.
func callerOf(scope, storeKey string) string {
	if scope == "" {
		return ""
	}
	return storeKey[:scopeLen]
}
