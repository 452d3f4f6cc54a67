package lullhttp

import (
	"math"
	"net/http"
	"testing"
	"time"
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

func TestHintRepeatedFieldTakesTheLongest(t *testing.T) {
	checkHint(t, 503, wait(30*time.Second, "Retry-After"), "Retry-After", "5", "Retry-After", "30", "Retry-After", "20", "Retry-After", "bad")
	checkHint(t, 503, wait(time.Minute, "Retry-After"), "Retry-After", "5", "Retry-After", "Sun, 01 Mar 2026 12:01:00 GMT")
	checkHint(t, 503, noHint, "Retry-After", "5, 30")
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
	keys := []string{hdrShouldRetry, hdrStripeShouldRetry, hdrPushback, hdrRateLimit, hdrDate}
	for _, w := range waitHeaders {
		keys = append(keys, w.key)
	}
	for _, r := range resetHeaders {
		keys = append(keys, r.reset, r.remaining)
	}
	for _, k := range keys {
		if c := http.CanonicalHeaderKey(k); c != k {
			t.Errorf("%q would never be found: its canonical form is %q", k, c)
		}
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
		"malformed":   header("Retry-After", "soon", "RateLimit", "limit=1", "X-RateLimit-Reset", "later"),
		"don't retry": header("x-should-retry", "false"),
	} {
		for _, status := range []int{503, 429} {
			if n := testing.AllocsPerRun(100, func() { ParseHint(h, status, hintNow) }); n != 0 {
				t.Errorf("%s, status %d: %v allocations, want 0", name, status, n)
			}
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
			got, ok := preferHint(c.header, c.header.Source != "", Problem{Hint: c.problem})
			if got != c.want || ok != (c.want.Source != "") {
				t.Errorf("got %+v, %v, want %+v", got, ok, c.want)
			}
		})
	}
}

func BenchmarkParseHint(b *testing.B) {
	for _, c := range []struct {
		name   string
		status int
		h      http.Header
	}{
		{"503None", 503, header("Content-Type", "text/plain", "Date", "Sun, 01 Mar 2026 12:00:00 GMT")},
		{"429None", 429, header("Content-Type", "text/plain", "Date", "Sun, 01 Mar 2026 12:00:00 GMT")},
		{"503Seconds", 503, header("Retry-After", "5")},
		{"503Date", 503, header("Retry-After", "Sun, 01 Mar 2026 12:00:30 GMT", "Date", "Sun, 01 Mar 2026 12:00:00 GMT")},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ParseHint(c.h, c.status, hintNow)
			}
		})
	}
}
