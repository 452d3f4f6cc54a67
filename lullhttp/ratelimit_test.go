package lullhttp

import (
	"strings"
	"testing"
	"time"
)

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
			// RateLimit-Policy does not matter for the next attempt, but its syntax is
			// the same.
			if !wellFormed(c[1]) {
				t.Errorf("%s: %s is well-formed", c[0], c[1])
			}
			continue
		}
		seen++
		want, hasHint := waits[c[1]]
		if d, ok := parseRateLimit([]string{c[1]}); d != want || ok != hasHint {
			t.Errorf("%s: %s = %v, %v, want %v, %v", c[0], c[1], d, ok, want, hasHint)
		}
		if !wellFormed(c[1]) {
			t.Errorf("%s: %s is well-formed", c[0], c[1])
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

// wellFormed walks a List of Strings, whatever its parameters.
func wellFormed(s string) bool {
	p := fieldParser{s: s}
	for more, ok := true, true; more; {
		if !p.str() {
			return false
		}
		for p.accept(';') {
			if _, ok = p.key(); !ok {
				return false
			}
			if p.accept('=') {
				if _, ok = p.value(); !ok {
					return false
				}
			}
		}
		if more, ok = p.nextMember(); !ok {
			return false
		}
	}
	return true
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
