//go:build servers && unix

package lullamqp

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lullgo/lull/queue"
)

// signal sends a signal to the server itself.
func (n *node) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.Dir, "pid"))
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must(t, err)
	must(t, syscall.Kill(pid, s))
}

// A server that has fallen silent delays nobody for longer than the context allows. Requests from
// that time are carried out once, when it continues.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	n := mortal(t, &forDeaths)
	config := declared(t, Config{})
	q, other := opened(t, config), opened(t, config)
	send(t, q, "retry", "ack", "dead")
	all := receive(t, q, 3)
	nothing(t, other, 100*time.Millisecond) // it has connected
	settlements := map[string]queue.Settlement{
		"retry": {Outcome: queue.Retry, After: 10 * time.Millisecond}, "ack": {Outcome: queue.Ack},
		"dead": {Outcome: queue.DeadLetter, Envelope: &queue.Envelope{Reason: "test", OriginalID: "dead"}},
	}
	n.signal(t, syscall.SIGSTOP)
	stopped := true
	defer func() {
		if stopped {
			n.signal(t, syscall.SIGCONT)
		}
	}()
	briefly := func(what string, f func(ctx context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		err := f(ctx)
		if ctx.Err() == nil && err == nil {
			return // an acknowledgement that was only written
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
	}
	began := time.Now()
	settled := map[string]bool{}
	for range 2 {
		for _, d := range all {
			body := string(d.Body)
			if !settled[body] {
				briefly(body, func(ctx context.Context) error {
					err := q.Settle(ctx, d, settlements[body])
					settled[body] = err == nil
					return err
				})
			}
		}
		briefly("Receive", func(ctx context.Context) error { _, err := other.Receive(ctx, queue.Want{Max: 10}); return err })
		briefly("Pause", func(ctx context.Context) error { return other.Pause(ctx, time.Time{}) })
		briefly("Letters", func(ctx context.Context) error { _, err := q.Letters(ctx); return err })
		briefly("Check", func(ctx context.Context) error { return q.client.Check(ctx, config) })
		fresh := opened(t, config)
		briefly("connecting", func(ctx context.Context) error { return fresh.Send(ctx, queue.Outgoing{}) })
	}
	if took := time.Since(began); took > time.Minute { // 16 calls of 200 ms
		t.Errorf("it took %v", took)
	}
	n.signal(t, syscall.SIGCONT)
	stopped = false
	for _, d := range all {
		if !settled[string(d.Body)] {
			settle(t, q, d, settlements[string(d.Body)])
		}
	}
	// The second Pause may be carried out just when the message is delivered for the second time.
	// Then that attempt was not made, and still counts (docs/queues.md).
	d := receive(t, other, 1)[0]
	if string(d.Body) != "retry" || d.Attempt < 2 || d.Attempt > 3 {
		t.Errorf("%s, attempt %d, want 2 or 3", d.Body, d.Attempt)
	}
	settle(t, other, d, queue.Settlement{Outcome: queue.Ack})
	nothing(t, other, time.Second)
	only(t, q)
}
