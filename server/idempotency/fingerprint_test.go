package idempotency

import (
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func of(method, target, scope, body string) Fingerprint {
	return fingerprint(httptest.NewRequest(method, target, nil), scope, []byte(body))
}

// What differs in any part is another request, and no part can be taken for another's.
func TestFingerprintsDiffer(t *testing.T) {
	seen := map[Fingerprint]int{}
	for i, f := range []Fingerprint{
		of("POST", "/pay", "alice", "100"),
		of("PATCH", "/pay", "alice", "100"),
		of("POST", "/pay/", "alice", "100"),
		of("POST", "/pay?", "alice", "100\n"),
		of("POST", "/pay?a", "alice", "100"),
		of("POST", "/pay%3Fa", "alice", "100"),
		of("POST", "/pay?a&b", "alice", "100"),
		of("POST", "/pay?b&a", "alice", "100"),
		of("POST", "/p%61y", "alice", "100"),
		of("POST", "/pay", "bob", "100"),
		of("POST", "/pay", "", "alice100"),
		of("POST", "/pay", "alice1", "00"),
		of("POST", "/pay", "alice100", ""),
		of("POST", "/payalice", "", "100"),
		of("POST", "/pay", "alice", "100 "),
		of("POST", "/pay", "alice", ""),
		of("POST", "/pay", "alice", strings.Repeat("100", 1<<18)),
	} {
		if j, ok := seen[f]; ok {
			t.Errorf("fingerprints %d and %d are equal", i, j)
		}
		seen[f] = i
	}
}

// What may change between attempts is not in it.
func TestFingerprintsAgree(t *testing.T) {
	a := httptest.NewRequest("POST", "http://a.example/pay?x=1", nil)
	b := httptest.NewRequest("POST", "https://b.example:8443/pay?x=1", nil)
	b.Header = http.Header{"X-Request-Id": {"2"}, "Lull-Attempt": {"2"}, "Traceparent": {"00-1"}, "Content-Type": {"text/plain"}}
	b.RemoteAddr, b.Proto = "192.0.2.7:1", "HTTP/2.0"
	if fingerprint(a, "alice", []byte("100")) != fingerprint(b, "alice", []byte("100")) {
		t.Error("the same request by another way has another fingerprint")
	}
}

// Entries must match what later versions make of the same request. The value is
// SHA-256 over the parts, each after its length in eight bytes.
func TestFingerprintIsStable(t *testing.T) {
	f := of("POST", "/pay?x=1", "alice", "100")
	if got, want := hex.EncodeToString(f[:]), "0219ee0c6c8c8a4378d4dfefd0ebc433de201b78c744d03b4f9b4249be261fe4"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
