package lullhttp

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
)

// checkWait are the invariants of every parser: never negative, nothing with a
// refusal, and the same again.
func checkWait(t *testing.T, s string, parse func(string) (time.Duration, bool)) (time.Duration, bool) {
	t.Helper()
	d, ok := parse(s)
	if d < 0 || !ok && d != 0 {
		t.Fatalf("%q = %v, %v", s, d, ok)
	}
	if d2, ok2 := parse(s); d2 != d || ok2 != ok {
		t.Fatalf("%q = %v, %v and then %v, %v", s, d, ok, d2, ok2)
	}
	return d, ok
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// saturated is n units, or the largest Duration.
func saturated(n string, unit time.Duration) time.Duration {
	v, _ := new(big.Int).SetString(n, 10)
	v.Mul(v, big.NewInt(int64(unit)))
	if !v.IsInt64() {
		return math.MaxInt64
	}
	return time.Duration(v.Int64())
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{
		"120", "0", "-1", "1.5", "", "9223372036", "9223372037", "99999999999999999999999",
		"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
		"Sun, 06 Nov 1994 08:49:60 GMT", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 9999 08:49:37 GMT", "Sun, 06 Nov 0000 08:49:37 GMT",
	} {
		f.Add(s, int64(784111777))
	}
	f.Fuzz(func(t *testing.T, s string, unix int64) {
		now := time.Unix(unix, 0)
		d, ok := checkWait(t, s, func(s string) (time.Duration, bool) { return ParseRetryAfter(s, now) })
		if isDigits(s) {
			if want := saturated(s, time.Second); !ok || d != want {
				t.Fatalf("%q = %v, %v, want %v", s, d, ok, want)
			}
			return
		}
		if !ok {
			return
		}
		// What is accepted beside digits is a date, which net/http reads the same
		// way, except for a leap second and a year of two digits.
		want, err := http.ParseTime(strings.Replace(s, ":60 ", ":59 ", 1))
		if err != nil {
			t.Fatalf("%q was accepted as a date, but %v", s, err)
		}
		got, _ := parseHTTPDate(s, now)
		if got.Equal(want) || got.Equal(want.Add(time.Second)) && strings.Contains(s, ":60 ") {
			return
		}
		if strings.Count(s, "-") != 2 || (got.Year()-want.Year())%100 != 0 && !strings.Contains(s, "31-Dec-") {
			t.Fatalf("%q = %v, net/http says %v", s, got, want)
		}
	})
}

func FuzzRateLimit(f *testing.F) {
	for _, s := range []string{
		`"default";r=0;t=30`, `"a";r=0;t=30, "b";r=5;t=60`, `"a";r=0;t=999999999999999`, `"a\"\\";r=0;pk=:aGk=:;t=1`,
		`"a";r=0;t=1;x=1.5;y=tok;z=?1;d=@1;e=%"%c3"`, `limit=100, remaining=0, reset=30`, `default;r=0`, `"a";r=-1`, ``, `,`, `"`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, ok := checkWait(t, s, func(s string) (time.Duration, bool) { return parseRateLimit([]string{s}) })
		if ok && (!strings.Contains(s, `"`) || !strings.Contains(s, "r=") || !strings.Contains(s, "t=")) {
			t.Fatalf("%q was accepted", s)
		}
		// A trailing comma spoils any list, and a good member saves none.
		if _, ok := parseRateLimit([]string{s + ","}); ok {
			t.Fatalf("%q with a trailing comma was accepted", s)
		}
		if good := `"x";r=0;t=1`; ok {
			if _, ok := parseRateLimit([]string{s, good}); !ok {
				t.Fatalf("%q was refused beside %s", s, good)
			}
		}
	})
}

func FuzzResetValue(f *testing.F) {
	for _, s := range []string{
		"30", "0.25", "1772366460", "1772366460.5", "1772366460000", "6m0s", "1s", "120ms", "2d3h", "15µs", "-1", "1e3", "1s1m",
		"2026-03-01T12:01:00Z", "2026-03-01T12:01Z", "Sun, 01 Mar 2026 12:01:00 GMT", "99999999999999999999h", "1.", ".1", "1..s", "9227000000000",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c := clock{now: hintNow}
		for _, unit := range []time.Duration{time.Second, time.Millisecond} {
			d, ok := checkWait(t, s, func(s string) (time.Duration, bool) { return c.parseReset(s, unit) })
			if isDigits(s) && len(s) <= 9 && (!ok || d != saturated(s, unit)) {
				t.Fatalf("%q = %v, %v, want %v", s, d, ok, saturated(s, unit))
			}
		}
		d, ok := checkWait(t, s, parseDuration)
		if std, err := time.ParseDuration(s); ok && err == nil {
			// Each part is rounded up here and cut off there.
			if d < std || d > std+time.Duration(len(s)) {
				t.Fatalf("parseDuration(%q) = %v, time.ParseDuration says %v", s, d, std)
			}
		}
		d, ok = checkWait(t, s, func(s string) (time.Duration, bool) { return parseDecimal(s, time.Millisecond) })
		if isDigits(s) && (!ok || d != saturated(s, time.Millisecond)) {
			t.Fatalf("parseDecimal(%q) = %v, %v", s, d, ok)
		}
		if ok && len(s) < 15 && d != math.MaxInt64 {
			want, _ := new(big.Rat).SetString(s)
			want.Mul(want, big.NewRat(int64(time.Millisecond), 1))
			got := new(big.Rat).SetInt64(int64(d))
			if diff := got.Sub(got, want); diff.Sign() < 0 || diff.Cmp(big.NewRat(1, 1)) >= 0 {
				t.Fatalf("parseDecimal(%q) = %v, off by %v ns", s, d, diff)
			}
		}
	})
}

func FuzzProblem(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `[]`, `{"type":"a","title":"b","status":503,"detail":"c","instance":"d","retry_after":5}`,
		`{"retry_after":1e400}`, `{"retry_after":-1}`, `{"retry_after_ms":"5"}`, `{"status":1e3}`, `{"type":{"a":[1]}}`, `{"type":"` + ProblemOverloaded + `"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, ok := ParseProblem(body)
		var object map[string]any
		if valid := json.Unmarshal(body, &object) == nil && object != nil; !ok && (p != ProblemDetails{} || valid) {
			t.Fatalf("%q = %+v, false", body, p)
		}
		if !ok {
			return
		}
		if again, ok := ParseProblem(body); !ok || again != p {
			t.Fatalf("%q = %+v and then %+v, %v", body, p, again, ok)
		}
		switch {
		case p.Hint.After < 0, p.Hint.Stop != (p.Type == ProblemOverloaded), p.Hint.Retry, p.Type == "",
			p.Status != 0 && (p.Status < 100 || p.Status > 599),
			p.Hint.Source == "" && p.Hint != Hint{}:
			t.Fatalf("%q = %+v", body, p)
		}
	})
}

func FuzzHint(f *testing.F) {
	f.Add("Retry-After", "5", "X-Should-Retry", "false", 503)
	f.Add("Retry-After", "Sun, 01 Mar 2026 12:01:00 GMT", "Date", "Sun, 01 Mar 2026 12:00:00 GMT", 503)
	f.Add("X-Ratelimit-Reset", "1772366460", "X-Ratelimit-Remaining", "0", 403)
	f.Add("Retry-After", "5, Sun, 01 Mar 2026 12:01:00 GMT", "Age", "10, 20", 413)
	f.Add("Ratelimit", `"a";r=0;t=5`, "Grpc-Retry-Pushback-Ms", "-1", 429)
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string, status int) {
		h := http.Header{}
		h.Add(k1, v1)
		h.Add(k2, v2)
		for _, key := range []string{"Retry-After", "Retry-After-Ms", "Ratelimit", "X-Ratelimit-Reset", "Grpc-Retry-Pushback-Ms"} {
			h.Add(key, v1)
			checkAnyHint(t, h, status)
			h.Del(key)
		}
		checkAnyHint(t, h, status)
	})
}

// Joined in one line, values mean what they do in lines of their own, whatever stands between them.
func FuzzJoinedHint(f *testing.F) {
	const date = "Sun, 01 Mar 2026 12:01:00 GMT"
	f.Add("5", "30", "10")
	f.Add("bad", date, "Sunday, 01-Mar-26 12:02:00 GMT")
	f.Add("", "Sun Mar  1 12:01:00 2026", "Mon")
	f.Add("Sun, ", "01 Mar 2026 12:01:00 GMT, 5", ",")
	f.Fuzz(func(t *testing.T, a, b, age string) {
		now := clock{now: hintNow}
		for _, v := range []string{a, b} {
			if _, ok := now.parse(v, formRetryAfter); !ok {
				return
			}
		}
		apart := http.Header{"Retry-After": {a, b}, "Age": {age}}
		for _, between := range []string{",", ", ", " ,\t"} {
			joined := http.Header{"Retry-After": {a + between + b}, "Age": {age}}
			checkAnyHint(t, joined, 503)
			one, _ := ParseHint(apart, 503, hintNow)
			if other, _ := ParseHint(joined, 503, hintNow); other != one {
				t.Fatalf("%q is %+v, and %q %+v", apart, one, joined, other)
			}
		}
	})
}

func checkAnyHint(t *testing.T, h http.Header, status int) {
	t.Helper()
	hint, ok := ParseHint(h, status, hintNow)
	switch {
	case hint.After < 0,
		ok != (hint.Source != ""),
		!ok && hint != Hint{},
		hint.Stop && (hint.After != 0 || hint.Retry),
		ok && len(h[hint.Source]) == 0:
		t.Fatalf("ParseHint(%q, %d) = %+v, %v", h, status, hint, ok)
	}
	if again, ok2 := ParseHint(h, status, hintNow); again != hint || ok2 != ok {
		t.Fatalf("ParseHint(%q, %d) = %+v and then %+v", h, status, hint, again)
	}
	v := classifyResponse(status, hint, ok)
	if v.After < 0 || v.NeverSent || hint.Stop && (v.Kind == lull.KindTransient || v.Kind == lull.KindRateLimited) {
		t.Fatalf("classifyResponse(%d, %+v) = %+v", status, hint, v)
	}
}

// Whatever a client sends, a number of an attempt is at least one, and a time is never
// negative. What is written is read back, rounded up to the millisecond.
func FuzzRequestHeaders(f *testing.F) {
	f.Add("3", int64(0))
	f.Add("attempt=2; max=3", int64(1))
	f.Add("100m", int64(time.Hour))
	f.Add("99999999H", int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, s string, ns int64) {
		h := http.Header{"Lull-Attempt": {s}, "Amz-Sdk-Request": {s}, "Grpc-Previous-Rpc-Attempts": {s}, "Grpc-Timeout": {s}, DefaultTimeoutHeader: {s}}
		if n := ParseAttempt(h); n < 1 {
			t.Errorf("%q is attempt %d", s, n)
		}
		if d, ok := ParseTimeout(h); d < 0 || !ok && d != 0 {
			t.Errorf("%q leaves %v, %v", s, d, ok)
		}
		d := time.Duration(ns)
		got, ok := ParseTimeout(http.Header{DefaultTimeoutHeader: {FormatTimeout(d)}})
		if !ok || got < d || d > 0 && got-d >= time.Millisecond && got != math.MaxInt64 || d <= 0 && got != 0 {
			t.Errorf("%v is read as %v, %v", d, got, ok)
		}
	})
}

// A Content-Range that is read is a range of bytes that exists, and the same again when it is written.
func FuzzContentRange(f *testing.F) {
	for _, s := range []string{
		"bytes 0-9/10", "bytes 0-0/0", "bytes 5-9/*", "BYTES 0-0/1", "bytes */10", "bytes 9-0/10", "bytes 0-10/10", "bytes 0-9/9223372036854775807",
		"bytes -1-9/10", "bytes +1-9/10", "bytes 0-9", "lines 0-9/10", "bytes  0-9/10", "bytes 0-9/10, bytes 0-9/10", "", "bytes 00-09/10",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, ok := parseContentRange(s)
		if !ok {
			if r != (contentRange{}) {
				t.Fatalf("%q was refused with %+v", s, r)
			}
			return
		}
		if r.first < 0 || r.last < r.first || r.complete >= 0 && r.complete <= r.last || r.last+1 < 0 || r.complete < -1 {
			t.Fatalf("%q = %+v", s, r)
		}
		complete := "*"
		if r.complete >= 0 {
			complete = strconv.FormatInt(r.complete, 10)
		}
		again, ok := parseContentRange(fmt.Sprintf("bytes %d-%d/%s", r.first, r.last, complete))
		if !ok || again != r {
			t.Fatalf("%q = %+v, and then %+v, %v", s, r, again, ok)
		}
	})
}

// A strong ETag is one quoted string without spaces, and is returned as it came.
func FuzzStrongETag(f *testing.F) {
	for _, s := range []string{`"a"`, `""`, `W/"a"`, `w/"a"`, `"a`, `a`, `"`, `"a""b"`, `"a", "b"`, "\"\x7f\"", "\"\xff\"", `"a b"`, ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := strongETag(http.Header{"Etag": {s}})
		want := ""
		if len(s) >= 2 && s[0] == '"' && strings.IndexByte(s[1:], '"') == len(s)-2 && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) < 0 {
			want = s
		}
		if got != want {
			t.Fatalf("%q = %q, want %q", s, got, want)
		}
		if strongETag(http.Header{"Etag": {s, s}}) != "" {
			t.Fatalf("two of %q are one", s)
		}
	})
}
