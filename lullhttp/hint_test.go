package lullhttp

import (
	"math"
	"net/http"
	"strconv"
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
		"stored":      header("Retry-After", "Sun, 01 Mar 2026 12:00:30 GMT", "Date", "Sun, 01 Mar 2026 11:00:00 GMT", "Age", "3600"),
		"joined":      header("Retry-After", "5, 5", "X-RateLimit-Remaining", "0, 0"),
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
