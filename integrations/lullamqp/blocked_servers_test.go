//go:build servers

package lullamqp

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

// A server that has run out of memory takes no messages. Senders get an error, and receivers are
// not delayed.
func TestServerWithoutMemory(t *testing.T) {
	t.Parallel()
	n, err := newNode("1MB")
	there(t, err)
	defer os.RemoveAll(n.Dir)
	must(t, n.Start())
	defer n.Kill()
	c := New(Dial(n.url()))
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		c.Close(ctx)
	}()
	config := Config{Queue: "orders"}
	must(t, c.Declare(testContext(t), config))
	q, err := c.open(config)
	must(t, err)
	// The server looks at its memory once a second, and informs the connections that have
	// published.
	await(t, "blocked", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		q.Send(ctx, queue.Outgoing{})
		return q.pub.link.blockedError() != nil
	})
	err = q.Send(testContext(t), queue.Outgoing{})
	if err == nil || lull.Classify(err).Kind != lull.KindTransient || !strings.Contains(err.Error(), "low on memory") {
		t.Errorf("Send: %v", err)
	}
	t.Log(err)
	// Messages that it had taken before can be received and acknowledged.
	if err := q.Pause(testContext(t), time.Now()); err != nil {
		t.Errorf("Pause: %v", err)
	}
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		got, err := q.Receive(ctx, queue.Want{Max: 1, Lease: time.Minute})
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil {
			t.Fatalf("Receive: %v", err)
		}
		settle(t, q, got[0], queue.Settlement{Outcome: queue.Ack})
	}
	if err := c.Check(testContext(t), config); err != nil {
		t.Errorf("Check: %v", err)
	}
}
