package breaker

import (
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// What lies a window back counts for nothing, though nobody called meanwhile.
func TestRule11WindowsExpireOnRead(t *testing.T) {
	for _, idle := range []time.Duration{DefaultWindow, 3 * DefaultWindow, 8 * DefaultWindow, 1000 * DefaultWindow} {
		b := must.Have(New(rated(Config{})))
		run(b, 0, 19, Failure)
		if calls, failures, _ := b.Counts(0); calls != 19 || failures != 19 {
			t.Fatalf("Counts %d, %d, want 19, 19", calls, failures)
		}
		if calls, failures, slow := b.Counts(idle); calls != 0 || failures != 0 || slow != 0 {
			t.Errorf("after %v: Counts %d, %d, %d, want none", idle, calls, failures, slow)
		}
		run(b, idle, 19, Failure)
		if s := b.State(idle); s != Closed {
			t.Errorf("19 failures, %v of nothing, 19 failures: %v, want closed", idle, s)
		}
		run(b, idle, 1, Failure)
		if s := b.State(idle); s != Open {
			t.Errorf("after the twentieth: %v, want open", s)
		}
	}
}

// The open time and a probe's time pass unobserved as well.
func TestRule11StatesExpireOnRead(t *testing.T) {
	b, at := opened(t, rated(Config{}))
	if s, r := b.State(at-1), b.RetryAt(at-1); s != Open || r != at {
		t.Errorf("just before: %v, %v", s, r)
	}
	if s, r := b.State(at), b.RetryAt(at); s != HalfOpen || r != 0 {
		t.Errorf("at the end of the open time: %v, %v, want half-open, 0", s, r)
	}
	if b.state() != Open {
		t.Error("a reading made a transition")
	}
}
