package lullhttp

import (
	"encoding/json"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

var hintNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// header makes a Header as net/http would, from names and values in turn.
func header(kv ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(kv); i += 2 {
		h.Add(kv[i], kv[i+1])
	}
	return h
}

func wait(d time.Duration, source string) Hint { return Hint{After: d, Source: source} }

var noHint = Hint{}

func checkHint(t *testing.T, status int, want Hint, kv ...string) {
	t.Helper()
	got, ok := ParseHint(header(kv...), status, hintNow)
	if got != want || ok != (want.Source != "") {
		t.Errorf("status %d, %q: got %+v, %v, want %+v", status, kv, got, ok, want)
	}
}

func TestHintStop(t *testing.T) {
	for _, kv := range [][]string{
		{"x-should-retry", "false"},
		{"x-should-retry", "False"},
		{"x-should-retry", "false", "Retry-After", "1"},
		{"x-should-retry", "true", "x-should-retry", "false"},
		{"x-should-retry", "nonsense", "x-should-retry", "false"},
	} {
		checkHint(t, 503, Hint{Stop: true, Source: "X-Should-Retry"}, kv...)
	}
	checkHint(t, 503, Hint{Stop: true, Source: "Stripe-Should-Retry"}, "Stripe-Should-Retry", "false")
	checkHint(t, 503, Hint{Stop: true, Source: "Stripe-Should-Retry"}, "Stripe-Should-Retry", "false", "x-should-retry", "true")
	// gRFC A6: negative or unparsable both mean no.
	for _, v := range []string{"-1", "-2147483648", "", "x", "1.5", "+5", "007", "00", "-0", " 5", "5 ", "0x5", "2147483648", "9223372036854775808", "12abc"} {
		checkHint(t, 503, Hint{Stop: true, Source: "Grpc-Retry-Pushback-Ms"}, "grpc-retry-pushback-ms", v, "Retry-After", "1")
	}
	checkHint(t, 503, Hint{Stop: true, Source: "Grpc-Retry-Pushback-Ms"}, "grpc-retry-pushback-ms", "5", "grpc-retry-pushback-ms", "5")
}

func TestHintShouldRetry(t *testing.T) {
	checkHint(t, 409, Hint{Retry: true, Source: "X-Should-Retry"}, "x-should-retry", "true")
	checkHint(t, 409, Hint{Retry: true, Source: "Stripe-Should-Retry"}, "stripe-should-retry", "true")
	checkHint(t, 409, Hint{Retry: true, After: 3 * time.Second, Source: "Retry-After"}, "x-should-retry", "true", "Retry-After", "3")
	for _, v := range []string{"", "1", "0", "no", "yes", "true;", "truefalse"} {
		checkHint(t, 409, noHint, "x-should-retry", v)
	}
}

func TestHintPushback(t *testing.T) {
	src := "Grpc-Retry-Pushback-Ms"
	checkHint(t, 503, wait(0, src), src, "0")
	checkHint(t, 503, wait(250*time.Millisecond, src), src, "250", "Retry-After", "9")
	checkHint(t, 503, wait(math.MaxInt32*time.Millisecond, src), src, "2147483647")
}

// Each field alone, and each before all that come after it.
func TestHintPrecedence(t *testing.T) {
	order := []struct {
		key, value string
		want       time.Duration
	}{
		{"Grpc-Retry-Pushback-Ms", "1000", 1 * time.Second},
		{"Retry-After", "2", 2 * time.Second},
		{"Retry-After-Ms", "3000", 3 * time.Second},
		{"X-Ms-Retry-After-Ms", "4000", 4 * time.Second},
		{"X-Amz-Retry-After", "5000", 5 * time.Second},
		{"Ratelimit", `"default";r=0;t=6`, 6 * time.Second},
		{"Ratelimit-Reset", "7", 7 * time.Second},
		{"X-Ratelimit-Reset-After", "8", 8 * time.Second},
		{"X-Ratelimit-Reset-Ms", "9000", 9 * time.Second},
		{"X-Ratelimit-Reset", "10", 10 * time.Second},
		{"X-Rate-Limit-Reset", "11", 11 * time.Second},
		{"X-Ratelimit-Reset-Requests", "12s", 12 * time.Second},
		{"Anthropic-Ratelimit-Requests-Reset", "2026-03-01T12:00:13Z", 13 * time.Second},
	}
	var all []string
	for i := len(order) - 1; i >= 0; i-- {
		o := order[i]
		all = append(all, o.key, o.value)
		checkHint(t, 429, wait(o.want, o.key), o.key, o.value)
		checkHint(t, 429, wait(o.want, o.key), all...)
	}
	// A malformed one is passed over.
	for _, bad := range []string{"-1", "1.5.2", "soon", ""} {
		checkHint(t, 429, wait(3*time.Second, "Retry-After-Ms"), "Retry-After", bad, "Retry-After-Ms", "3000")
		checkHint(t, 429, wait(4*time.Second, "X-Ms-Retry-After-Ms"), "Retry-After-Ms", bad, "X-Ms-Retry-After-Ms", "4000")
	}
}

func TestHintMillis(t *testing.T) {
	for v, want := range map[string]time.Duration{
		"0": 0, "1": time.Millisecond, "1500": 1500 * time.Millisecond,
		"0.5": 500 * time.Microsecond, "27.25": 27250 * time.Microsecond,
		"0.0000001":                 1,         // rounded up
		"0.0000000001":              1,         // more digits than are kept
		"1.9999999999999999999":     2_000_000, // rounded up
		"9223372036854":             9223372036854 * time.Millisecond,
		"9223372036855":             math.MaxInt64, // saturated
		"9223372036854.99999999999": math.MaxInt64,
	} {
		checkHint(t, 503, wait(want, "Retry-After-Ms"), "retry-after-ms", v)
	}
	for _, v := range []string{"", "-1", "+1", ".5", "5.", "1e3", "1,5", "5ms", "NaN", "Infinity", "Sun, 01 Mar 2026 12:00:30 GMT"} {
		checkHint(t, 503, noHint, "retry-after-ms", v)
	}
}

// An intermediary may join the values of a repeated field in one line (RFC 9110, 5.3).
func TestHintJoinedValuesCountAsRepeated(t *testing.T) {
	const date, later = "Sun, 01 Mar 2026 12:01:00 GMT", "Sunday, 01-Mar-26 12:02:00 GMT"
	for v, want := range map[string]time.Duration{
		"1, 1": time.Second, "5, 30": 30 * time.Second, "30,60": time.Minute, "60 ,\t30": time.Minute, "bad, 7": 7 * time.Second, "7, ": 7 * time.Second, ",7": 7 * time.Second,
		date + ", 5": time.Minute, "5, " + date: time.Minute, date + "," + date: time.Minute, date + ", " + later: 2 * time.Minute, later + ",5, " + date: 2 * time.Minute,
		"Sun Mar  1 12:01:00 2026, 5": time.Minute,
	} {
		checkHint(t, 503, wait(want, "Retry-After"), "Retry-After", v)
	}
	for _, v := range []string{",", ", ", "a, b", "Sun, 01 Mar 2026 12:01:00", "Sun,", "Sun, Mon", "Sun, 5", "1.5, 2.5"} {
		checkHint(t, 503, noHint, "Retry-After", v)
	}
	checkHint(t, 503, wait(7*time.Millisecond, "Retry-After-Ms"), "Retry-After-Ms", "7, 5")
	checkHint(t, 503, wait(time.Minute, "X-Ratelimit-Reset"), "X-RateLimit-Reset", "30, 1772366460", "X-RateLimit-Remaining", "5, 0")
	checkHint(t, 503, wait(time.Minute, "X-Ratelimit-Reset"), "X-RateLimit-Reset", date+", 30", "X-RateLimit-Remaining", "0, 0")
	checkHint(t, 503, noHint, "X-RateLimit-Reset", "30, 30", "X-RateLimit-Remaining", "5, 5")
}

// A cache says by Age how old the response is that it has stored, and with it its Date. What
// it says of a quota is out of date, but for a point in time. Retry-After in seconds counts from when
// the response is received (RFC 9110, 10.2.3).
func TestHintOfAStoredResponse(t *testing.T) {
	at := func(d time.Duration) string { return hintNow.Add(d).Format(http.TimeFormat) }
	epoch := func(d time.Duration) string { return strconv.FormatInt(hintNow.Add(d).Unix(), 10) }
	for _, age := range []time.Duration{time.Second, 10 * time.Second, 5 * time.Minute, time.Hour, 30 * 24 * time.Hour} {
		stored := []string{"Date", at(-age), "Age", strconv.Itoa(int(age.Seconds()))}
		for _, c := range []struct {
			status int
			want   Hint
			field  []string
		}{
			{503, wait(20*time.Second, "Retry-After"), []string{"Retry-After", at(20 * time.Second)}},
			{503, wait(20*time.Second, "Retry-After"), []string{"Retry-After", hintNow.Add(20 * time.Second).Format("Monday, 02-Jan-06 15:04:05 GMT")}},
			{503, wait(20*time.Second, "Retry-After"), []string{"Retry-After", hintNow.Add(20 * time.Second).Format(time.ANSIC)}},
			{503, wait(0, "Retry-After"), []string{"Retry-After", at(-time.Second)}},
			{503, wait(20*time.Second, "Retry-After"), []string{"Retry-After", "20"}},
			{503, wait(20*time.Millisecond, "Retry-After-Ms"), []string{"Retry-After-Ms", "20"}},
			{429, wait(20*time.Second, "X-Ratelimit-Reset"), []string{"X-RateLimit-Reset", epoch(20 * time.Second)}},
			{429, wait(20*time.Second, "Ratelimit-Reset"), []string{"RateLimit-Reset", epoch(20 * time.Second)}},
			{429, wait(20*time.Second, "X-Ratelimit-Reset"), []string{"X-RateLimit-Reset", hintNow.Add(20 * time.Second).Format(time.RFC3339)}},
			{429, wait(20*time.Second, "X-Ratelimit-Reset"), []string{"X-RateLimit-Reset", at(20 * time.Second)}},
			{429, noHint, []string{"X-RateLimit-Reset", "20"}},
			{429, noHint, []string{"X-RateLimit-Reset-After", "20.5"}},
			{429, noHint, []string{"X-RateLimit-Reset-Tokens", "20s"}},
			{429, noHint, []string{"RateLimit-Reset", "20"}},
			{429, noHint, []string{"RateLimit", `"a";r=0;t=20`}},
		} {
			checkHint(t, c.status, c.want, append(c.field, stored...)...)
		}
	}
	in20 := []string{"Retry-After", at(20 * time.Second)}
	for name, c := range map[string]struct {
		date, age string
		want      time.Duration
	}{
		"a fresh one out of a cache":           {at(0), "0", 20 * time.Second},
		"the server's clock is behind":         {at(-5*time.Minute - 10*time.Second), "10", 5*time.Minute + 20*time.Second},
		"no Date":                              {"", "10", 20 * time.Second},
		"Age is a list, of which one counts":   {at(-10 * time.Second), "10, 300", 20 * time.Second},
		"a cache that has put in its own time": {at(0), "3600", 20 * time.Second},
		"and its clock is behind":              {at(-3 * time.Second), "3600", 23 * time.Second},
		"Age is no number":                     {at(-10 * time.Second), "-10", 30 * time.Second},
		"Age is endless":                       {at(-10 * time.Second), "99999999999999999999", 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			kv := append(in20[:2:2], "Age", c.age)
			if c.date != "" {
				kv = append(kv, "Date", c.date)
			}
			checkHint(t, 503, wait(c.want, "Retry-After"), kv...)
		})
	}
	checkHint(t, 429, wait(20*time.Second, "Ratelimit-Reset"), "RateLimit-Reset", "20", "Age", "0")
}

func TestHintDateIsMeasuredByTheServersClock(t *testing.T) {
	in := func(d time.Duration) string { return hintNow.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		name, date, retryAfter string
		want                   time.Duration
	}{
		{"clocks agree", in(0), in(time.Minute), time.Minute},
		{"no date", "", in(time.Minute), time.Minute},
		{"ours is 5 minutes slow", in(5 * time.Minute), in(6 * time.Minute), time.Minute},
		{"ours is 5 minutes fast", in(-5 * time.Minute), in(-4 * time.Minute), time.Minute},
		{"local time taken for GMT", in(14 * time.Hour), in(14*time.Hour + time.Minute), time.Minute},
		{"implausible date", in(-25 * time.Hour), in(time.Minute), time.Minute},
		{"malformed date", "yesterday", in(time.Minute), time.Minute},
		{"past by the server's clock", in(time.Hour), in(time.Minute), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			kv := []string{"Retry-After", c.retryAfter}
			if c.date != "" {
				kv = append(kv, "Date", c.date)
			}
			checkHint(t, 503, wait(c.want, "Retry-After"), kv...)
		})
	}
	// A number of seconds needs no clock.
	checkHint(t, 503, wait(time.Minute, "Retry-After"), "Retry-After", "60", "Date", in(time.Hour))
	// An epoch is a date as well.
	checkHint(t, 429, wait(time.Minute, "X-Ratelimit-Reset"), "X-RateLimit-Reset", "1772366760", "Date", in(5*time.Minute))
}

func TestHintKeysAreCanonical(t *testing.T) {
	keys := []string{hdrShouldRetry, hdrStripeShouldRetry, hdrPushback, hdrRateLimit, hdrDate, hdrAge}
	for _, w := range waitHeaders {
		keys = append(keys, w.key)
	}
	for _, r := range resetHeaders {
		keys = append(keys, r.reset, r.remaining)
	}
	for _, k := range keys {
		check.Equal(t, http.CanonicalHeaderKey(k), k, "%q would never be found: its canonical form", k)
	}
}

func TestHintAllocates(t *testing.T) {
	for name, h := range map[string]http.Header{
		"none":        header("Content-Type", "text/plain", "Date", "Sun, 01 Mar 2026 12:00:00 GMT", "Content-Length", "12"),
		"seconds":     header("Retry-After", "5"),
		"date":        header("Retry-After", "Sun, 01 Mar 2026 12:00:30 GMT", "Date", "Sun, 01 Mar 2026 12:00:00 GMT"),
		"ratelimit":   header("RateLimit", `"a";r=0;t=5;pk=:aGk=:, "b";r=5`),
		"epoch":       header("X-RateLimit-Reset", "1772366760", "X-RateLimit-Remaining", "0"),
		"duration":    header("x-ratelimit-reset-tokens", "6m0s"),
		"time":        header("anthropic-ratelimit-tokens-reset", "2026-03-01T12:00:13Z"),
		"stored":      header("Retry-After", "Sun, 01 Mar 2026 12:00:30 GMT", "Date", "Sun, 01 Mar 2026 11:00:00 GMT", "Age", "3600"),
		"joined":      header("Retry-After", "5, 5", "X-RateLimit-Remaining", "0, 0"),
		"malformed":   header("Retry-After", "soon", "RateLimit", "limit=1", "X-RateLimit-Reset", "later"),
		"don't retry": header("x-should-retry", "false"),
	} {
		for _, status := range []int{503, 429} {
			check.Equal(t, testing.AllocsPerRun(100, func() { ParseHint(h, status, hintNow) }), 0, "%s, status %d: allocations", name, status)
		}
	}
}

func TestPreferHint(t *testing.T) {
	stop := Hint{Stop: true, Source: "problem type"}
	stopHeader := Hint{Stop: true, Source: "X-Should-Retry"}
	w5, w9 := wait(5*time.Second, "Retry-After"), wait(9*time.Second, "problem retry_after")
	yes := Hint{Retry: true, Source: "X-Should-Retry"}
	for _, c := range []struct {
		name                  string
		header, problem, want Hint
	}{
		{"neither", noHint, noHint, noHint},
		{"header", w5, noHint, w5},
		{"body", noHint, w9, w9},
		{"header first", w5, w9, w5},
		{"stop in the body", w5, stop, stop},
		{"stop in the header", stopHeader, w9, stopHeader},
		{"yes, and the body says when", yes, w9, Hint{Retry: true, After: 9 * time.Second, Source: "problem retry_after"}},
		{"yes", yes, noHint, yes},
		{"yes and no", yes, stop, stop},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := preferHint(c.header, c.header.Source != "", ProblemDetails{Hint: c.problem})
			if got != c.want || ok != (c.want.Source != "") {
				t.Errorf("got %+v, %v, want %+v", got, ok, c.want)
			}
		})
	}
}

// rfcNow is some time before the instant of RFC 9110's examples.
var rfcNow = time.Date(1994, 11, 6, 8, 47, 37, 0, time.UTC)

func vectors(t *testing.T, name string, into any) {
	t.Helper()
	b := must.Have(os.ReadFile("testdata/" + name))
	must.Succeed(json.Unmarshal(b, into))
}

func TestRule03RetryAfterVectors(t *testing.T) {
	var v struct {
		Instant      time.Time
		Accept       []string
		DelaySeconds [][2]any `json:"delay_seconds"`
		Reject       []string
	}
	vectors(t, "retry_after.json", &v)
	if len(v.Accept) != 3 || len(v.DelaySeconds) == 0 || len(v.Reject) == 0 {
		t.Fatalf("the vectors are not as expected: %+v", v)
	}
	for _, s := range v.Accept {
		now := v.Instant.Add(-2 * time.Minute)
		if d, ok := ParseRetryAfter(s, now); !ok || d != 2*time.Minute {
			t.Errorf("ParseRetryAfter(%q) = %v, %v, want 2m", s, d, ok)
		}
		if d, ok := ParseRetryAfter(s, v.Instant.Add(time.Hour)); !ok || d != 0 {
			t.Errorf("ParseRetryAfter(%q), an hour late, = %v, %v, want 0", s, d, ok)
		}
	}
	for _, c := range v.DelaySeconds {
		want := time.Duration(c[1].(float64)) * time.Second
		if d, ok := ParseRetryAfter(c[0].(string), rfcNow); !ok || d != want {
			t.Errorf("ParseRetryAfter(%q) = %v, %v, want %v", c[0], d, ok, want)
		}
	}
	for _, s := range v.Reject {
		if d, ok := ParseRetryAfter(s, rfcNow); ok || d != 0 {
			t.Errorf("ParseRetryAfter(%q) = %v, %v, want it refused", s, d, ok)
		}
	}
}

func TestRule03RetryAfterNumbers(t *testing.T) {
	const forever = time.Duration(math.MaxInt64)
	for s, want := range map[string]time.Duration{
		"0":                              0,
		"1":                              time.Second,
		"007":                            7 * time.Second,
		"86400":                          24 * time.Hour,
		"9223372036":                     9223372036 * time.Second,
		"9223372037":                     forever,
		"9999999999":                     forever,
		"18446744073709551617":           forever, // 2^64+1
		"170141183460469231731687303716": forever,
		strings.Repeat("9", 4000):        forever,
		strings.Repeat("0", 4000) + "5":  5 * time.Second,
	} {
		if d, ok := ParseRetryAfter(s, rfcNow); !ok || d != want {
			t.Errorf("ParseRetryAfter(%.40q) = %v, %v, want %v", s, d, ok, want)
		}
	}
	for _, s := range []string{
		"", " ", "-1", "-0", "+1", "1.0", "1e3", "0x10", "1 ", " 1", "1,2", "1s", "٣", "１", "NaN", "Inf", "soon", "1_000",
	} {
		if d, ok := ParseRetryAfter(s, rfcNow); ok || d != 0 {
			t.Errorf("ParseRetryAfter(%q) = %v, %v, want it refused", s, d, ok)
		}
	}
}

func TestRule03RetryAfterDates(t *testing.T) {
	at := func(s string) time.Time {
		return must.Have(time.Parse(time.RFC3339, s))
	}
	now := at("2026-03-01T12:00:00Z")
	for _, c := range []struct{ s, want string }{
		{"Sun, 01 Mar 2026 12:00:30 GMT", "2026-03-01T12:00:30Z"},
		{"Mon, 01 Mar 2026 12:00:30 GMT", "2026-03-01T12:00:30Z"}, // the name of the day is not checked
		{"Tue, 30 Jun 2026 23:59:60 GMT", "2026-07-01T00:00:00Z"}, // leap second
		{"Tuesday, 30-Jun-26 23:59:60 GMT", "2026-07-01T00:00:00Z"},
		{"Tue Jun 30 23:59:60 2026", "2026-07-01T00:00:00Z"},
		{"Sun Mar  1 12:00:30 2026", "2026-03-01T12:00:30Z"},
		{"Sun Mar 01 12:00:30 2026", "2026-03-01T12:00:30Z"},
		{"Tue, 29 Feb 2028 00:00:00 GMT", "2028-02-29T00:00:00Z"},
		{"Saturday, 01-Mar-76 11:59:59 GMT", "2076-03-01T11:59:59Z"}, // just under 50 years ahead
	} {
		got, ok := parseHTTPDate(c.s, now)
		if !ok || !got.Equal(at(c.want)) {
			t.Errorf("parseHTTPDate(%q) = %v, %v, want %v", c.s, got, ok, c.want)
		}
		if d, ok := ParseRetryAfter(c.s, now); !ok || d != at(c.want).Sub(now) {
			t.Errorf("ParseRetryAfter(%q) = %v, %v, want %v", c.s, d, ok, at(c.want).Sub(now))
		}
	}
	for _, s := range []string{
		"sun, 01 Mar 2026 12:00:30 GMT", // letter case counts
		"Sun, 01 mar 2026 12:00:30 GMT",
		"Sun, 01 Mar 2026 12:00:30 gmt",
		"Sun, 01 Mar 2026 12:00:30 UTC",
		"Sun, 01 Mar 2026 12:00:30 +0000",
		"Sun, 01 Mar 2026 12:00:30",
		"Sun, 1 Mar 2026 12:00:30 GMT",
		"Sun, 01 Mar 26 12:00:30 GMT",
		"Sun, 01-Mar-26 12:00:30 GMT", // the short day belongs to IMF-fixdate
		"Sunday, 01 Mar 2026 12:00:30 GMT",
		"Sun, 01 Mar 2026 24:00:00 GMT",
		"Sun, 01 Mar 2026 12:60:00 GMT",
		"Sun, 01 Mar 2026 12:00:61 GMT",
		"Sun, 00 Mar 2026 12:00:30 GMT",
		"Sun, 30 Feb 2026 12:00:30 GMT",
		"Sun, 29 Feb 2027 12:00:30 GMT",
		"Sun, 01 Foo 2026 12:00:30 GMT",
		"Foo, 01 Mar 2026 12:00:30 GMT",
		"Sun, 01 Mar 2026 12-00-30 GMT",
		"Sun, 01 Mar -026 12:00:30 GMT",
		"Sun, +1 Mar 2026 12:00:30 GMT",
		"Sun, 01 Mar 2026 12:00:30 GMT ",
		" Sun, 01 Mar 2026 12:00:30 GMT",
		"Sun Mar 1 12:00:30 2026",
		"Sun Mar   12:00:30 2026 ",
		"Sunday, 01-Mar-2026 12:00:30 GMT",
		"2026-03-01T12:00:30Z",
	} {
		if d, ok := ParseRetryAfter(s, now); ok || d != 0 {
			t.Errorf("ParseRetryAfter(%q) = %v, %v, want it refused", s, d, ok)
		}
	}
}

// RFC 9110: more than 50 years ahead means the most recent past year that ends
// in the same digits.
func TestRule03TwoDigitYears(t *testing.T) {
	for _, c := range []struct {
		year, digits int // the year it is, and the digits
		want         int
	}{
		{1994, 94, 1994}, {2026, 94, 1994}, {2026, 26, 2026}, {2026, 75, 2075}, {2026, 77, 1977},
		{2026, 0, 2000}, {2099, 0, 2100}, {2099, 99, 2099}, {2049, 99, 2099}, {2000, 99, 1999}, {2051, 1, 2101}, {2050, 1, 2001},
	} {
		now := time.Date(c.year, 6, 15, 12, 0, 0, 0, time.UTC)
		s := now.Format("Monday, 02-Jan-") + string(rune('0'+c.digits/10)) + string(rune('0'+c.digits%10)) + " 12:00:00 GMT"
		got, ok := parseHTTPDate(s, now)
		if !ok || got.Year() != c.want {
			t.Errorf("in %d, %q means %v, %v, want %d", c.year, s, got, ok, c.want)
		}
	}
	// Whatever the day, the year is in the 100 that end 50 years from now.
	for year := 1950; year < 2200; year++ {
		now := time.Date(year, 6, 15, 12, 0, 0, 0, time.UTC)
		for yy := range 100 {
			s := "Monday, 15-Jun-" + string(rune('0'+yy/10)) + string(rune('0'+yy%10)) + " 12:00:00 GMT"
			got, ok := parseHTTPDate(s, now)
			if !ok || got.After(now.AddDate(50, 0, 0)) || !got.After(now.AddDate(-50, 0, 0)) || got.Year()%100 != yy {
				t.Fatalf("in %d, %q means %v, %v", year, s, got, ok)
			}
		}
	}
}

// The times that http.TimeFormat writes are read as net/http reads them.
func TestDatesAgreeWithNetHTTP(t *testing.T) {
	for i := range 20000 {
		want := time.Unix(int64(i)*150_001, 0).UTC()
		for _, layout := range []string{http.TimeFormat, time.ANSIC, "Monday, 02-Jan-06 15:04:05 GMT"} {
			s := want.Format(layout)
			if got, ok := parseHTTPDate(s, want); !ok || !got.Equal(want) {
				t.Fatalf("parseHTTPDate(%q) = %v, %v", s, got, ok)
			}
		}
	}
}

func TestResetForms(t *testing.T) {
	c := clock{now: hintNow} // 2026-03-01T12:00:00Z is 1772366400
	for s, want := range map[string]time.Duration{
		"0": 0, "30": 30 * time.Second, "0.25": 250 * time.Millisecond, "64.57": 64570 * time.Millisecond,
		"999999999":                     999999999 * time.Second, // the longest wait
		"1000000000":                    0,                       // an epoch, long past
		"1772366400":                    0,
		"1772366460":                    time.Minute,
		"1772366460.5":                  time.Minute + 500*time.Millisecond,
		"1772366460000":                 time.Minute,
		"1772366460250":                 time.Minute + 250*time.Millisecond,
		"1772366460250.5":               time.Minute + 250500*time.Microsecond,
		"99999999999":                   math.MaxInt64, // in the year 5138: more than a Duration holds
		"1s":                            time.Second,
		"120ms":                         120 * time.Millisecond,
		"6m0s":                          6 * time.Minute,
		"8.64s":                         8640 * time.Millisecond,
		"1h0m0.5s":                      time.Hour + 500*time.Millisecond,
		"1.9999999999s":                 2 * time.Second, // rounded up
		"2d3h":                          51 * time.Hour,
		"15µs":                          15 * time.Microsecond,
		"15us7ns":                       15*time.Microsecond + 7,
		"99999999999999999999h":         math.MaxInt64,
		"106751d23h47m17s":              math.MaxInt64, // less than a second more than a Duration holds
		"2026-03-01T12:01:00Z":          time.Minute,
		"2026-03-01T13:01:00+01:00":     time.Minute,
		"2026-03-01T12:01:00.5Z":        time.Minute + 500*time.Millisecond,
		"2026-03-01T12:01Z":             time.Minute, // Atlassian's
		"2026-03-01T11:59:00Z":          0,
		"Sun, 01 Mar 2026 12:01:00 GMT": time.Minute,
	} {
		if d, ok := c.parseReset(s, time.Second); !ok || d != want {
			t.Errorf("%q = %v, %v, want %v", s, d, ok, want)
		}
	}
	for s, want := range map[string]time.Duration{
		"0": 0, "1500": 1500 * time.Millisecond, "99999999999": 99999999999 * time.Millisecond,
		"1772366460000": time.Minute, "1.5": 1500 * time.Microsecond, "2s": 2 * time.Second,
	} {
		if d, ok := c.parseReset(s, time.Millisecond); !ok || d != want {
			t.Errorf("%q in milliseconds = %v, %v, want %v", s, d, ok, want)
		}
	}
	for _, s := range []string{
		"", "-1", "+1", ".5", "5.", "1.2.3", "1e3", "NaN", "soon", "1 s", "s",
		"1s1m", "1s2s", "1m1", "1x", "ms", "1..5s", "-1s", "+1s", "1s ", " 1s", "1S",
		"100000000000000", "99999999999999999999", // neither a wait nor a time that anybody means
		"2026-03-01", "2026-03-01T12:01:00", "2026-13-01T12:01:00Z", "2026-03-01 12:01:00Z",
		"Tue Feb 16 2021 09:02:42 GMT+0100 (Central European Standard Time)",
		"1\xff", "1\xffs", "1µ",
	} {
		if d, ok := c.parseReset(s, time.Second); ok || d != 0 {
			t.Errorf("%q = %v, %v, want it refused", s, d, ok)
		}
	}
}

// Fractions are exact, rounded up to the nanosecond, however long the unit is.
func TestFractionsOfLongUnits(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"0.0000000001h":                     360,
		"0.000000000001h":                   4, // 3.6
		"0.00000000000001d":                 1, // 0.864
		"0.00000000000000000001d":           1, // more digits than are kept
		"0.5d":                              12 * time.Hour,
		"0.999999999999999999d":             24 * time.Hour,
		"0.9999999999999999999999999999d":   24 * time.Hour,
		"0.000000000000000000000000000000s": 0,
		"0.001ns":                           1, // less than a nanosecond is one
	} {
		if got, ok := parseDuration(s); !ok || got != want {
			t.Errorf("%s = %d, %v, want %d", s, got, ok, want)
		}
	}
}

// Reset fields come with every response. They are a hint where the quota is
// what failed the request, and nowhere else.
func TestResetNeedsExhaustedQuota(t *testing.T) {
	reset := wait(30*time.Second, "X-Ratelimit-Reset")
	for _, c := range []struct {
		status    int
		remaining string // "absent" for none
		want      Hint
	}{
		{429, "absent", reset}, {429, "0", reset}, {429, "0.0", reset}, {429, "-3", reset}, {429, "?", reset},
		{429, "1", noHint}, {429, "0.5", noHint},
		{503, "0", reset}, {503, "absent", noHint}, {503, "?", noHint}, {503, "7", noHint},
		{403, "0", reset}, {403, "absent", noHint}, {403, "4999", noHint},
		{500, "0", noHint}, {502, "0", noHint}, {408, "0", noHint}, {404, "0", noHint},
	} {
		kv := []string{"X-RateLimit-Reset", "30"}
		if c.remaining != "absent" {
			kv = append(kv, "X-RateLimit-Remaining", c.remaining)
		}
		checkHint(t, c.status, c.want, kv...)
	}
}

// What services send, field by field.
func TestResetOfServices(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		kv     []string
		want   Hint
	}{
		"GitHub primary limit":          {403, []string{"x-ratelimit-limit", "60", "x-ratelimit-remaining", "0", "x-ratelimit-reset", "1772366460"}, wait(time.Minute, "X-Ratelimit-Reset")},
		"GitHub secondary limit":        {403, []string{"retry-after", "60", "x-ratelimit-remaining", "4000", "x-ratelimit-reset", "1772369000"}, wait(time.Minute, "Retry-After")},
		"GitLab":                        {429, []string{"RateLimit-Remaining", "0", "RateLimit-Reset", "1772366460"}, wait(time.Minute, "Ratelimit-Reset")},
		"old draft":                     {429, []string{"RateLimit-Limit", "10", "RateLimit-Remaining", "0", "RateLimit-Reset", "50"}, wait(50*time.Second, "Ratelimit-Reset")},
		"Discord":                       {429, []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1772366999.123", "X-RateLimit-Reset-After", "1.25"}, wait(1250*time.Millisecond, "X-Ratelimit-Reset-After")},
		"Okta":                          {429, []string{"X-Rate-Limit-Remaining", "0", "X-Rate-Limit-Reset", "1772366460"}, wait(time.Minute, "X-Rate-Limit-Reset")},
		"OpenAI, requests":              {429, []string{"x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "120ms", "x-ratelimit-remaining-tokens", "9000", "x-ratelimit-reset-tokens", "6m0s"}, wait(120*time.Millisecond, "X-Ratelimit-Reset-Requests")},
		"OpenAI, both":                  {429, []string{"x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "1s", "x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "6m0s"}, wait(6*time.Minute, "X-Ratelimit-Reset-Tokens")},
		"OpenAI, both, requests longer": {429, []string{"x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "6m0s", "x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "1s"}, wait(6*time.Minute, "X-Ratelimit-Reset-Requests")},
		"a window that ends now":        {429, []string{"x-ratelimit-remaining", "0", "x-ratelimit-reset", "0"}, wait(0, "X-Ratelimit-Reset")},
		"OpenAI, neither":               {429, []string{"x-ratelimit-remaining-requests", "5", "x-ratelimit-reset-requests", "1s", "x-ratelimit-remaining-tokens", "7", "x-ratelimit-reset-tokens", "6m0s"}, noHint},
		"Anthropic":                     {429, []string{"anthropic-ratelimit-requests-remaining", "49", "anthropic-ratelimit-requests-reset", "2026-03-01T12:00:01Z", "anthropic-ratelimit-input-tokens-remaining", "0", "anthropic-ratelimit-input-tokens-reset", "2026-03-01T12:01:00Z"}, wait(time.Minute, "Anthropic-Ratelimit-Input-Tokens-Reset")},
		"Reddit":                        {429, []string{"x-ratelimit-remaining", "0.0", "x-ratelimit-reset", "35"}, wait(35*time.Second, "X-Ratelimit-Reset")},
	} {
		t.Run(name, func(t *testing.T) { checkHint(t, c.status, c.want, c.kv...) })
	}
}

func TestRateLimitVectors(t *testing.T) {
	var v struct {
		Valid     [][2]string
		Malformed [][2]string `json:"malformed_ignore"`
	}
	vectors(t, "ratelimit_fields.json", &v)
	waits := map[string]time.Duration{`"problemPolicy";r=0;t=10`: 10 * time.Second}
	seen := 0
	for _, c := range v.Valid {
		if c[0] != "RateLimit" {
			continue // RateLimit-Policy does not matter for the next attempt
		}
		seen++
		want, hasHint := waits[c[1]]
		if d, ok := parseRateLimit([]string{c[1]}); d != want || ok != hasHint {
			t.Errorf("%s: %s = %v, %v, want %v, %v", c[0], c[1], d, ok, want, hasHint)
		}
	}
	for _, c := range v.Malformed {
		if c[0] != "RateLimit" {
			continue
		}
		seen++
		value, _, _ := strings.Cut(c[1], " (")
		// A good member beside it does not save the field.
		for _, line := range []string{value, `"x";r=0;t=5, ` + value, value + `, "x";r=0;t=5`} {
			if d, ok := parseRateLimit([]string{line}); ok {
				t.Errorf("RateLimit: %s = %v, want it ignored", line, d)
			}
		}
	}
	if seen < 7 {
		t.Errorf("only %d vectors of RateLimit", seen)
	}
}

func TestRateLimit(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  time.Duration
	}{
		{[]string{`"a";r=0;t=30`}, 30 * time.Second},
		{[]string{`  "a";r=0;t=30  `}, 30 * time.Second},
		{[]string{`"a";  r=0;  t=30`}, 30 * time.Second},
		{[]string{`"a";r=0;t=0`}, 0},
		{[]string{`"a";r=0;t=30, "b";r=0;t=90,"c";r=5;t=900`}, 90 * time.Second}, // only what is used up
		{[]string{`"a";r=0;t=30`, `"b";r=0;t=90`}, 90 * time.Second},             // two lines are one list
		{[]string{`"a";r=5;r=0;t=30`}, 30 * time.Second},                         // the last r counts
		{[]string{`"a";r=0;t=30;new;other=tok;x="s\"\\";y=1.5;z=?0;w=@9;v=%"%c3%bc"`}, 30 * time.Second},
		{[]string{`"a \"b\" \\ c";r=0;t=30`}, 30 * time.Second},
		{[]string{`"a";r=0;t=999999999999999`}, maxWait}, // saturated
		{[]string{`"a";r=0;pk=:cHsdsRa894==:;t=30`}, 30 * time.Second},
		{[]string{`"a";r=0;pk=::;t=30`}, 30 * time.Second},
	} {
		if d, ok := parseRateLimit(c.lines); !ok || d != c.want {
			t.Errorf("%q = %v, %v, want %v", c.lines, d, ok, c.want)
		}
	}
	for _, line := range []string{
		``, ` `, `"a"`, `"a";r=0`, `"a";r=1;t=30`,
		`"a";r=0;t=30,`, `,"a";r=0;t=30`, `"a";r=0;t=30 "b"`, `"a";r=0;t=30;`, `"a";;r=0;t=30`,
		`"a;r=0;t=30`, `a";r=0;t=30`, `("a");r=0;t=30`, `"a" ;r=0;t=30`, `"a";r =0;t=30`, `"a";r= 0;t=30`,
		`"a";R=0;T=30`, `"a";r=0.0;t=30`, `"a";r=0;t=30.0`, `"a";r=0;t=-1`, `"a";r=-0.5;t=3`, `"a";r="0";t=30`,
		`"a";r=0;t=1e3`, `"a";r=0;t=+5`, `"a";r=0;t=`, `"a";r=0;t`, `"a";r=0;t=30;pk=x`, `"a";r=0;t=30;pk="x"`, `"a";r=0;t=30;pk=:a:`, `"a";r=0;t=30;pk=:a===:`, `"a";r=0;t=30;pk=:ab`,
		`"a";r=0;t=1000000000000000`, // 16 digits are no Integer
		"\"a\x00\";r=0;t=30", "\"a\u00fc\";r=0;t=30", `"a\n";r=0;t=30`, `"a\`, `"a";r=0;t=30;x=%"%C3"`, `"a";r=0;t=30;x=%"%c`, `"a";r=0;t=30;x=?2`, `"a";r=0;t=30;x=@1.5`, `"a";r=0;t=30;x=1.`, `"a";r=0;t=30;x=-`, `"a";r=0;t=30;x=-.5`, `"a";r=0;t=30;x=1.2345`,
		`limit=100, remaining=0, reset=30`,
		`0, "a";r=0;t=30`,
		`"a";r=0;t=30, "b`, `"a";r=0;t=30, "b";`, `"a";r=0;t=30, "b";r=`, // a member that breaks off spoils those before it
	} {
		if d, ok := parseRateLimit([]string{line}); ok || d != 0 {
			t.Errorf("%q = %v, %v, want no hint", line, d, ok)
		}
	}
	if _, ok := parseRateLimit([]string{`"a";r=0;t=30`, `nonsense!`}); ok {
		t.Error("a malformed line did not spoil the field")
	}
}

// The structured field alone means that the quota is used up, at any status.
func TestRateLimitAtAnyStatus(t *testing.T) {
	for _, status := range []int{403, 429, 500, 503} {
		checkHint(t, status, wait(30*time.Second, "Ratelimit"), "RateLimit", `"a";r=0;t=30`)
		checkHint(t, status, noHint, "RateLimit", `"a";r=1;t=30`)
	}
}
