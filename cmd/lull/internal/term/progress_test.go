package term

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestProgressWritesOverItselfOnATerminal(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := &Progress{out: &out, terminal: true, now: func() time.Time { return now }, start: now, last: now}
	for i := range 101 {
		now = time.Unix(0, int64(i)*int64(10*time.Millisecond))
		p.Show(func(took time.Duration) string { return took.String() })
	}
	p.End()
	text := out.String()
	if n := strings.Count(text, "\r"); n != 11 || strings.Contains(text, "\n") || !strings.HasSuffix(text, "\r"+ClearRest) {
		t.Errorf("%d lines in a second, want 10 and one to clear: %q", n, text)
	}
}

func TestQuietWritesNothing(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := NewProgress(&out, func(string) string { return "" }, true, func() time.Time { return now })
	now = now.Add(time.Hour)
	p.Show(func(took time.Duration) string { return took.String() })
	p.End()
	if out.Len() > 0 {
		t.Errorf("said %q", out.String())
	}
}
