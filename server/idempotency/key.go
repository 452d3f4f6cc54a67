package idempotency

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
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

// A Scope identifies callers. Each caller has its own keys, so that none can get the
// response of another by guessing or overhearing its key. A Scope returns an identity
// that stays the same for all attempts of one request, and false for a caller that
// it does not know; such a request is answered with 400, and observers get
// RefusedNoCaller. A caller also has a share of the store's room ([MemoryStore]): it must not
// be possible to become many callers for nothing. An empty identity with true
// means, explicitly, that all these callers share their keys.
//
// It must be safe for concurrent use. It runs before the body is read.
type Scope func(r *http.Request) (identity string, ok bool)

// AuthorizationScope is the default Scope: a caller is its Authorization header. A
// request without the header has no caller, and gets 400.
//
// Two callers with different credentials never share a key. But a caller whose token is renewed
// between two attempts is a new caller, and is carried out. If yours are, or have no
// Authorization header (cookies, client certificates), give [WithScope] a function that returns
// the account that your authentication found.
//
// What reaches the store is a hash; no credential can be read from it, though one
// with few possible values can be guessed and compared.
func AuthorizationScope(r *http.Request) (string, bool) {
	identity := strings.Join(r.Header["Authorization"], "\x00")
	return identity, identity != ""
}

// SharedScope is a Scope for servers whose callers all may see each other's
// responses, or are one.
func SharedScope(*http.Request) (string, bool) { return "", true }

// fingerprint is the SHA-256 of method, target, the caller's scope, and the payload,
// each preceded by its length, so that none can pass for a part of its neighbour.
//
// The target is path and query as the client wrote them. The host is not in it, and neither are
// headers: a retry may go to another name, and proxies change headers. Here the scope is complete;
// the store's key has 128 bits of it. If two scopes share a key, the second gets a mismatch, not
// the first one's response.
func fingerprint(r *http.Request, scope string, payload []byte) Fingerprint {
	h := sha256.New()
	var n [8]byte
	part := func(s string) {
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	part(r.Method)
	part(r.URL.EscapedPath())
	part(r.URL.RawQuery)
	part(scope)
	binary.BigEndian.PutUint64(n[:], uint64(len(payload)))
	h.Write(n[:])
	h.Write(payload)
	var f Fingerprint
	h.Sum(f[:0])
	return f
}
