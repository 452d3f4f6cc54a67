package idempotency

import (
	"crypto/sha256"
	"encoding/binary"
	"net/http"
)

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
