//go:build servers

package lullamqp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/queue"
)

// A server that has run out of memory takes no messages. Senders get an error, and receivers are
// not delayed.
func TestServerWithoutMemory(t *testing.T) {
	t.Parallel()
	n, err := newNode("1MB")
	there(t, err)
	defer os.RemoveAll(n.Dir)
	must.Succeed(n.Start())
	defer n.Kill()
	c := New(Dial(n.url()))
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		c.Close(ctx)
	}()
	config := Config{Queue: "orders"}
	must.Succeed(c.Declare(testContext(t), config))
	q := must.Have(c.open(config))
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
	check.Equal(t, q.Pause(testContext(t), time.Now()), nil, "Pause")
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
	check.Equal(t, c.Check(testContext(t), config), nil, "Check")
}

// short is a server with a consumer_timeout that a test can wait for. Two servers that other tests will need start beside
// it: a start is the work of one core.
func short(t *testing.T) (url string, timeout time.Duration) {
	n, err := newNode("1GB")
	there(t, err)
	t.Cleanup(func() { os.RemoveAll(n.Dir) })
	timeout = pace.Stretch(time.Second)
	must.Succeed(n.Set(fmt.Sprintf("{consumer_timeout,%d}", timeout.Milliseconds()), "{channel_tick_interval,100}"))
	var others sync.WaitGroup
	others.Go(server.start)
	others.Go(forConformance.start)
	err = n.Start()
	others.Wait()
	must.Succeed(err)
	t.Cleanup(n.Kill)
	return n.url(), timeout
}

// A real consumer_timeout. A handler that takes longer learns of it, with the reason, and so does
// the observer. Its message is not handled twice at once. A redrive skips letters, which are out for
// longer than that, and moves the others, each once. (Do not run it beside other tests: within its
// second the server and this process must get their turns. The three that are beside each other wait.)
func TestRealConsumerTimeout(t *testing.T) {
	url, timeout := short(t)
	of := func(name string) *Broker {
		c := client(t, url)
		must.Succeed(c.Declare(testContext(t), Config{Queue: name}))
		return must.Have(c.Open(testContext(t), Config{Queue: name}))
	}
	t.Run("handler", func(t *testing.T) {
		t.Parallel()
		q := of("slow")
		var at, most atomic.Int64
		cause := make(chan error, 10)
		events, ended := running(t, q, func(ctx context.Context, m *queue.Message) error {
			most.Store(max(most.Load(), at.Add(1)))
			defer at.Add(-1)
			if m.Attempt == 1 {
				<-ctx.Done()
				cause <- context.Cause(ctx)
			}
			return nil
		})
		send(t, q, "hello")
		why := func(err error) bool {
			return errors.Is(err, queue.ErrLeaseLost) && (strings.Contains(err.Error(), "timed out") || errors.Is(err, ErrCanceled))
		}
		if e := expect(t, events, queue.EventLeaseLost, ended); !why(e.Err) || e.Attempt != 1 {
			t.Errorf("lease_lost of attempt %d: %v", e.Attempt, e.Err)
		}
		if err := <-cause; !why(err) {
			t.Errorf("the handler's context ended because of: %v", err)
		}
		if e := expect(t, events, queue.EventSettled, ended); e.Outcome != queue.Ack || e.Attempt != 1 { // this process knows that it was handled
			t.Errorf("in the end: %+v", e)
		}
		check.Equal(t, most.Load(), 1, "runs of one message at a time")
	})
	t.Run("redrive", func(t *testing.T) {
		t.Parallel()
		q := of("letters")
		const n = 24
		ch := rawAt(t, url)
		for i := range n {
			e := queue.Envelope{Reason: []string{"wanted", "other"}[i%2], Source: "letters"}
			publish(t, ch, "", q.config.DeadLetters, amqp.Publishing{Headers: amqp.Table{queue.EnvelopeHeader: e.Encode()}, Body: fmt.Append(nil, i)})
		}
		readable(t, ch, q.config.DeadLetters, n)
		from := must.Have(q.Letters(testContext(t)))
		// Slow enough to take three times as long.
		c := queue.RedriveConfig{Rate: n / 2 / (3 * timeout.Seconds()), Filter: queue.Filter{Reason: "wanted"}}
		if p, err := queue.Redrive(testContext(t), from, q, c, nil); err != nil || p.Moved != n/2 || p.Seen != n {
			t.Errorf("%v, %v", p, err)
		}
		readable(t, ch, q.config.DeadLetters, n/2)
		readable(t, ch, q.config.Queue, n/2)
	})
	t.Run("gone", func(t *testing.T) {
		t.Parallel()
		// A letter that was removed without an answer is gone. The reading finds that out although
		// others, which are out for too long, keep ending the channels.
		q := of("gone")
		ch := rawAt(t, url)
		const n = 5
		numbered(t, ch, q.config.DeadLetters, n)
		from := must.Have(q.Letters(testContext(t)))
		defer from.Close(testContext(t))
		letters, err := from.Next(testContext(t), n)
		if err != nil || len(letters) != n {
			t.Fatalf("%d letters, %v", len(letters), err)
		}
		h := letters[0].Receipt.(*letterReceipt)
		must.Succeed(h.d.Ack(false))
		if err := h.channel.ch.Close(); err != nil { // after the server has read the acknowledgement
			t.Fatal(err)
		}
		for i, l := range letters {
			await(t, fmt.Sprintf("the removal of letter %d", i), func() bool {
				err := from.Remove(testContext(t), l)
				// Its connection may end too: the client may still have sent a call on a channel that the server ended
				// just then (504).
				if err != nil && lull.Classify(err).Kind != lull.KindTransient {
					t.Fatal(err)
				}
				return err == nil
			})
		}
		readable(t, ch, q.config.DeadLetters, 0)
	})
}
