//go:build servers

package queuetest

import (
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/queue"
)

// Crashes that are not counted: poison is tried for ever.
func TestBrokenPoison(t *testing.T) {
	t.Parallel()
	s := serve(t, true)
	s.forget = true
	r := &recorder{TB: t}
	r.run(func(t testing.TB) {
		consumerPoison(newTester(t, s.target().withDefaults(), queue.Unordered), "exit", 0, 1, 3)
	})
	if !r.failed || !strings.Contains(r.text(), "is not a dead letter") {
		t.Errorf("poison that is tried for ever is not found: %q", r.said)
	}
}

// Messages that are lost on their way to another attempt.
func TestBrokenNothingLost(t *testing.T) {
	t.Parallel()
	s := serve(t, false)
	s.lose = true
	target := s.target().withDefaults()
	target.Messages, target.stall = 200, 4*time.Second
	target.Restart = nil
	r := &recorder{TB: t}
	r.run(func(t testing.TB) { nothingLost(t, target, queue.Unordered) })
	if !r.failed || !strings.Contains(r.text(), "nothing has happened") {
		t.Errorf("lost messages are not found: %q", r.said)
	}
}
