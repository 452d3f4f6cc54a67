package lullhttp

import (
	"encoding/json"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// rfcNow is some time before the instant of RFC 9110's examples.
var rfcNow = time.Date(1994, 11, 6, 8, 47, 37, 0, time.UTC)

func vectors(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
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
		u, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return u
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
