package term

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressWritesOverItselfOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := &Progress{out: &out, terminal: true, start: time.Now(), last: time.Now()}
		for range 101 {
			p.Show(func(took time.Duration) string { return took.String() })
			time.Sleep(10 * time.Millisecond)
		}
		p.End()
		text := out.String()
		if n := strings.Count(text, "\r"); n != 11 || strings.Contains(text, "\n") || !strings.HasSuffix(text, "\r"+ClearRest) {
			t.Errorf("%d lines in a second, want 10 and one to clear: %q", n, text)
		}
	})
}

func TestQuietWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, func(string) string { return "" }, true)
		time.Sleep(time.Hour)
		p.Show(func(took time.Duration) string { return took.String() })
		p.End()
		if out.Len() > 0 {
			t.Errorf("said %q", out.String())
		}
	})
}
