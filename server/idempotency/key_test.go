package idempotency

import (
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/check"
)

func TestParseKey(t *testing.T) {
	for value, want := range map[string]string{
		// The draft's own example.
		`"8e03978e-40d5-43e8-bc93-6894a57f9324"`: "8e03978e-40d5-43e8-bc93-6894a57f9324",
		`8e03978e-40d5-43e8-bc93-6894a57f9324`:   "8e03978e-40d5-43e8-bc93-6894a57f9324",
		`"a b"`:                                  "a b",
		`" a "`:                                  " a ",
		"\t \"a\" \t":                            "a",
		" a ":                                    "a",
		`"\""`:                                   `"`,
		`"\\"`:                                   `\`,
		`"\\\""`:                                 `\"`,
		`"a,b;c=1"`:                              "a,b;c=1",
		`:YWJj:`:                                 ":YWJj:", // not a String, but somebody's bare key
		`?1`:                                     "?1",
		`-1.5`:                                   "-1.5",
		`a'b`:                                    "a'b",
		`{x}`:                                    "{x}",
		`"~"`:                                    "~",
	} {
		if got, ok := ParseKey(value); !ok || got != want {
			t.Errorf("ParseKey(%q) = %q, %v, want %q", value, got, ok, want)
		}
	}
	for _, value := range []string{
		``, ` `, `"`, `""`, `"a`, `a"`, `"a""`, `"a"b"`, `"a" "b"`, `"a\"`, `"\"`, `"\a"`, `"a\`, `"a"x`, `"a";x`, `"a","b"`, `a,b`, `a;b`, `a b`, `a\b`, `'a b'`,
		"\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"\x80\"", "a\x00", "a\x7f", "\xff", "é", `"é"`, "a\nb", "\"a\nb\"", "a\tb", "\"a\tb\"",
	} {
		if got, ok := ParseKey(value); ok || got != "" {
			t.Errorf("ParseKey(%q) = %q, want it refused", value, got)
		}
	}
}

// quote is the serialization of a String (RFC 9651, 4.1.6).
func quote(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

func FuzzParseKey(f *testing.F) {
	for _, s := range []string{``, `"a"`, `a`, `"\""`, `"\\"`, `"a`, ` "a b" `, `a;b`, "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		key, ok := ParseKey(value)
		if !ok {
			check.Equal(t, key, "", "ParseKey(%q) refuses: key", value)
			return
		}
		for i := range len(key) {
			if key[i] < ' ' || key[i] > '~' {
				t.Errorf("ParseKey(%q) = %q: not printable ASCII", value, key)
			}
		}
		if key == "" || len(key) > len(value) {
			t.Errorf("ParseKey(%q) = %q", value, key)
		}
		if again, ok := ParseKey(quote(key)); !ok || again != key {
			t.Errorf("ParseKey(%q) = %q, and in quotes %q, %v", value, key, again, ok)
		}
		if trimmed := strings.Trim(value, " \t"); trimmed[0] == '"' {
			check.Equal(t, quote(key), trimmed, "ParseKey(%q) = %q, written", value, key)
		} else if key != trimmed {
			t.Errorf("ParseKey(%q) = %q", value, key)
		}
		check.Equal(t, len(StoreKey("scope", key)), scopeLen+1+len(key), "bytes of the store's key")
	})
}

func TestKeyOf(t *testing.T) {
	for _, test := range []struct {
		values []string
		want   string // the problem
	}{
		{nil, ProblemKeyMissing}, {[]string{}, ProblemKeyMissing}, {[]string{""}, ProblemKeyInvalid}, {[]string{"a"}, ""}, {[]string{"a", "a"}, ProblemKeyInvalid},
		{[]string{"abcd"}, ""}, {[]string{`"abcd"`}, ""}, {[]string{`"\"\"\"\""`}, ""}, {[]string{"abcde"}, ProblemKeyTooLong}, {[]string{`"abcde`}, ProblemKeyInvalid},
	} {
		m := &Middleware{config: Config{MaxKey: 4}}
		if _, got := m.keyOf(http.Header{"Idempotency-Key": test.values}); got.Type != test.want || strings.Contains(got.Detail, "more than one") != (len(test.values) > 1) {
			t.Errorf("%q: %+v, want %q", test.values, got, test.want)
		}
	}
}

// Entries must be found again by later versions.
func TestStoreKeyIsStable(t *testing.T) {
	for _, test := range [][3]string{
		{"", "k", "47DEQpj8HBSa-_TImW-5JA:k"}, // the beginning of SHA-256("")
		{"Bearer alice", "a:b", "nXzORh5LLwkKPWhrSuctJQ:a:b"},
	} {
		check.Equal(t, StoreKey(test[0], test[1]), test[2], "StoreKey(%q, %q)", test[0], test[1])
	}
}

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
	check.Equal(t, fingerprint(a, "alice", []byte("100")), fingerprint(b, "alice", []byte("100")), "fingerprint of the same request by another way")
}

// Entries must match what later versions make of the same request. The value is
// SHA-256 over the parts, each after its length in eight bytes.
func TestFingerprintIsStable(t *testing.T) {
	f := of("POST", "/pay?x=1", "alice", "100")
	check.Equal(t, hex.EncodeToString(f[:]), "0219ee0c6c8c8a4378d4dfefd0ebc433de201b78c744d03b4f9b4249be261fe4", "the fingerprint")
}
