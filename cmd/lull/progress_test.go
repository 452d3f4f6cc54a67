package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestProgressIsPlainAndRareWhereThereIsNoTerminal(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	env := surroundings{stderr: &out, getenv: func(string) string { return "" }}
	p := newProgress(env, false, func() time.Time { return now })
	for second := range 35 {
		now = time.Unix(int64(second), 0)
		p.show(howFar{done: second / 10, runs: 5, share: float64(second) / 50, events: int64(second) * 2_000_000})
	}
	p.end()
	const want = `simulating: 20.0 %, 1 of 5 runs, 2M events/s, 40 s left
simulating: 40.0 %, 2 of 5 runs, 2M events/s, 30 s left
simulating: 60.0 %, 3 of 5 runs, 2M events/s, 20 s left
`
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}

func TestProgressWritesOverItselfOnATerminal(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := &progress{out: &out, terminal: true, now: func() time.Time { return now }, start: now, last: now}
	for i := range 101 {
		now = time.Unix(0, int64(i)*int64(10*time.Millisecond))
		p.show(howFar{runs: 1, share: float64(i) / 100})
	}
	p.end()
	text := out.String()
	if n := strings.Count(text, "\r"); n != 11 || strings.Contains(text, "\n") || !strings.HasSuffix(text, "\r"+clearRest) {
		t.Errorf("%d lines in a second, want 10 and one to clear: %q", n, text)
	}
}

func TestQuietSaysNothing(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := newProgress(surroundings{stderr: &out, getenv: func(string) string { return "" }}, true, func() time.Time { return now })
	now = now.Add(time.Hour)
	p.show(howFar{share: 0.5})
	p.end()
	if out.Len() > 0 {
		t.Errorf("said %q", out.String())
	}
}
