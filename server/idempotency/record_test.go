package idempotency

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// Stores keep the encoding for days: it must not change under them.
func TestRecordEncodingIsStable(t *testing.T) {
	for _, test := range []struct {
		rec  Record
		want string
	}{
		{Record{}, "01 00 00 00 00"},
		{Record{BodyOmitted: true}, "01 01 00 00 00"},
		{Record{Status: 201, Body: []byte("hi")}, "01 00 c901 00 02 6869"},
		{Record{Header: http.Header{"A": {strings.Repeat("x", 100)}}}, "01 00 00 01 01 41 01 64 " + strings.Repeat("78", 100) + " 00"},
		{Record{Status: 201, Body: []byte(strings.Repeat("x", 100))}, "01 00 c901 00 64 " + strings.Repeat("78", 100)},
		{Record{Status: 999, Header: http.Header{"B": {"2"}, "A": {"", "1"}}}, "01 00 e707 02 01 41 02 00 01 31 01 42 01 01 32 00"},
	} {
		b := must.Have(test.rec.MarshalBinary())
		want, _ := hex.DecodeString(strings.ReplaceAll(test.want, " ", ""))
		want = binary.BigEndian.AppendUint32(want, crc32.Checksum(want, crc32.MakeTable(crc32.Castagnoli)))
		check.Equal(t, hex.EncodeToString(b), hex.EncodeToString(want), "%+v, encoded", test.rec)
		var back Record
		if err := back.UnmarshalBinary(b); err != nil || !same(back, test.rec) {
			t.Errorf("%+v came back as %+v, %v", test.rec, back, err)
		}
	}
}

func same(a, b Record) bool {
	return a.Status == b.Status && a.BodyOmitted == b.BodyOmitted && bytes.Equal(a.Body, b.Body) &&
		maps.EqualFunc(a.Header, b.Header, func(x, y []string) bool { return len(x) == 0 && len(y) == 0 || reflect.DeepEqual(x, y) })
}

func TestRecordStatus(t *testing.T) {
	for _, status := range []int{-1, 1, 99, 1000, 1 << 40} {
		if _, err := (Record{Status: status}).MarshalBinary(); err == nil || !strings.Contains(err.Error(), "Status") {
			t.Errorf("a record of status %d: %v", status, err)
		}
	}
	for _, status := range []int{0, 100, 999} {
		b, err := (Record{Status: status}).MarshalBinary()
		var back Record
		if err != nil || back.UnmarshalBinary(b) != nil || back.Status != status || back.Header != nil {
			t.Errorf("a record of status %d: %v, read as %d", status, err, back.Status)
		}
	}
}

func TestDamagedRecords(t *testing.T) {
	whole := must.Have(Record{Status: 201, Header: http.Header{"A": {"1", "2"}, "B": {"3"}}, Body: []byte("body")}.MarshalBinary())
	refused := func(what string, b []byte) {
		t.Helper()
		r := Record{Status: 200}
		if err := r.UnmarshalBinary(b); err == nil || r.Status != 200 {
			t.Errorf("%s (% x) is taken for a record: %+v", what, b, r)
		}
	}
	for n := range whole {
		refused("a record that is cut off", whole[:n])
	}
	refused("a record with something after it", append(whole[:len(whole):len(whole)], 0))
	for i := range whole {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			refused("a record with another bit", b)
		}
	}
	for what, b := range map[string][]byte{
		"version 0":                 {0, 0, 0, 0, 0},
		"version 2":                 {2, 0, 0, 0, 0},
		"an unknown flag":           {1, 2, 0, 0, 0},
		"status 99":                 {1, 0, 99, 0, 0},
		"status 1000":               {1, 0, 0xe8, 7, 0, 0},
		"status beyond int":         {1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0},
		"a varint with a zero":      {1, 0, 0x80, 0, 0, 0},
		"a varint without end":      {1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"more fields than bytes":    {1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xf, 0},
		"more values than bytes":    {1, 0, 0, 1, 1, 'A', 0xff, 0xff, 3, 0},
		"names out of order":        {1, 0, 0, 2, 1, 'B', 0, 1, 'A', 0, 0},
		"a name twice":              {1, 0, 0, 2, 1, 'A', 0, 1, 'A', 0, 0},
		"a body longer than it is":  {1, 0, 0, 0, 5, 'a'},
		"a body that is not there":  {1, 0, 0, 0, 5},
		"a body shorter than it is": {1, 0, 0, 0, 1, 'a', 'b'},
	} {
		refused(what, seal(b))
	}
	if err := new(Record).UnmarshalBinary(seal([]byte{1, 0, 0, 0, 0})); err != nil {
		t.Errorf("the shortest record: %v", err) // or the others are refused for their checksum
	}
}

func FuzzRecord(f *testing.F) {
	for _, r := range []Record{{}, {BodyOmitted: true}, {Status: 200, Body: []byte("x")}, {Status: 404, Header: http.Header{"A": {"1", ""}, "B": nil}}} {
		b, _ := r.MarshalBinary()
		f.Add(b[:len(b)-sumSize])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = seal(data)
		var r Record
		if err := r.UnmarshalBinary(data); err != nil {
			if r.Status != 0 || r.Header != nil || r.Body != nil || r.BodyOmitted {
				t.Errorf("% x is refused, and changes the record", data)
			}
			return
		}
		b, err := r.MarshalBinary()
		if err != nil || !bytes.Equal(b, data) {
			t.Errorf("% x is read as %+v and written as % x, %v", data, r, b, err)
		}
	})
}

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
