package lullhttp

import (
	"math"
	"testing"
	"time"
)

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
