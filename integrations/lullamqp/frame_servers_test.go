//go:build servers

package lullamqp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

// many returns n headers of 30 bytes.
func many(n int) amqp.Table {
	h := amqp.Table{}
	for i := range n {
		h[fmt.Sprintf("h-%08d", i)] = "0123456789abc"
	}
	return h
}

// A message whose headers nearly fill a frame, as other publishers send them, does not stay in its
// queue: it is retried if there is room for that, and else a dead letter, with headers that are
// shortened as little as is needed. No other message suffers: its client keeps its connections.
func TestRule21HeadersThatFillAFrame(t *testing.T) {
	t.Parallel()
	const frame = 131072
	blip, bad := lull.Transient(errors.New("blip")), lull.Permanent(errors.New("bad"))
	stop := lull.Permanent(errors.New("stop"))
	for name, x := range map[string]struct {
		headers  amqp.Table
		err      error
		reason   string
		attempts int
		short    bool
	}{
		"a long text, permanent":        {amqp.Table{"stack": strings.Repeat("é", 65_350)}, bad, "permanent", 1, true},
		"a long text, transient":        {amqp.Table{"stack": strings.Repeat("s", 130_700)}, blip, queue.ReasonTooLarge, 1, true},
		"room for a retry":              {amqp.Table{"stack": strings.Repeat("s", 125_000)}, blip, "attempts_exhausted", 2, false},
		"bytes":                         {amqp.Table{"stack": []byte(strings.Repeat("s", 130_700))}, bad, "permanent", 1, true},
		"a table":                       {amqp.Table{"stack": amqp.Table{"text": strings.Repeat("s", 130_700)}}, bad, "permanent", 1, true},
		"an array":                      {amqp.Table{"stack": []any{strings.Repeat("s", 130_700)}}, bad, "permanent", 1, true},
		"two":                           {amqp.Table{"a": strings.Repeat("s", 65_200), "b": strings.Repeat("s", 65_500)}, bad, "permanent", 1, true},
		"thousands":                     {many(4510), bad, "permanent", 1, true},
		"deferred, and it does not fit": {amqp.Table{"stack": strings.Repeat("s", 130_960)}, stop, queue.ReasonTooLarge, 1, true},
		"deferred for a shorter time":   {amqp.Table{"stack": strings.Repeat("s", 129_000)}, stop, "permanent", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := opened(t, declared(t, Config{}))
			must(t, q.Send(testContext(t), queue.Outgoing{Body: []byte("first")}))
			settle(t, q, receive(t, q, 1)[0], queue.Settlement{Outcome: queue.Ack})
			in, out := q.client.in.value, q.client.out.value
			sent := maps.Clone(x.headers)
			sent["kind"], sent["n"] = "order", int32(5)
			publish(t, raw(t), "", q.config.Queue, amqp.Publishing{Headers: sent, MessageId: "poison", CorrelationId: "c", Body: []byte("poison")})

			policy := queue.Policy()
			policy.Attempts = 2
			policy.Backoff.Base, policy.Backoff.Cap = 50*time.Millisecond, 100*time.Millisecond
			policy.Breaker.Off = true
			d, err := lull.NewDependency("service", policy, lull.WithRand(func() uint64 { return 1 << 62 }))
			must(t, err)
			ended := make(chan queue.Event, 1)
			ran := 0
			c, err := queue.New(q.config.Queue, q, d, func(context.Context, *queue.Message) error {
				if ran++; x.err == stop && ran == 1 {
					return queue.DeferFor(x.err, time.Hour)
				}
				return x.err
			}, queue.Config{Concurrency: 1}, queue.WithObserver(func(_ context.Context, e queue.Event) {
				if e.Kind == queue.EventSettled && e.Outcome == queue.DeadLetter || e.Kind == queue.EventSettleFailed {
					ended <- e
				}
			}))
			must(t, err)
			ctx, cancel := context.WithCancel(testContext(t))
			defer cancel()
			run := make(chan error, 1)
			go func() { run <- c.Run(ctx) }()
			var e queue.Event
			select {
			case e = <-ended:
			case <-ctx.Done():
				t.Fatal("it is no dead letter")
			}
			cancel()
			must(t, <-run)
			if e.Kind != queue.EventSettled || e.Reason != x.reason {
				t.Fatalf("%+v", e)
			}
			l := only(t, q)
			if l.Reason != x.reason || l.Attempts != x.attempts || ran < x.attempts || ran > 2 || string(l.Body) != "poison" || l.OriginalID != "poison" {
				t.Errorf("%.300v; the handler ran %d times", *l, ran)
			}
			said := len(l.Errors) > 0 && strings.Contains(l.Errors[0], "shortened")
			if said != x.short {
				t.Errorf("errors %q: want that headers are shortened: %t", l.Errors, x.short)
			}
			m := l.Receipt.(*letterReceipt).d
			size := headerFrame(&amqp.Publishing{Headers: m.Headers, MessageId: m.MessageId, CorrelationId: m.CorrelationId})
			if m.Headers["kind"] != "order" && name != "thousands" || m.Headers["n"] != int32(5) || m.CorrelationId != "c" || m.MessageId != "poison" || size > frame {
				t.Errorf("headers of %d bytes: %v, %v", size, m.Headers["kind"], m.Headers["n"])
			}
			if text, ok := x.headers["stack"].(string); ok && x.short {
				if got, _ := m.Headers["stack"].(string); len(got) < len(text)-12_000 || !strings.HasPrefix(text, got) || len(got) == len(text) {
					t.Errorf("%d of %d bytes are left", len(got), len(text))
				}
			}
			if q.client.in.value != in || q.client.out.value != out || in.IsClosed() || out.IsClosed() {
				t.Error("a connection was lost")
			}
			// What is a letter can go back.
			if err := q.Send(testContext(t), queue.Outgoing{Body: l.Body, Headers: queue.LetterHeaders(l.Headers, &l.Envelope), Letter: l}); err != nil {
				t.Error(err)
			}
		})
	}
}

// A deferral that does not wait, for want of room, keeps what is known of the message's crashes.
func TestShortDeferralKeepsCrashes(t *testing.T) {
	t.Parallel()
	q := opened(t, declared(t, Config{}))
	publish(t, raw(t), "", q.config.Queue, amqp.Publishing{Headers: amqp.Table{"stack": strings.Repeat("s", 129_000)}, Body: []byte("x")})
	settle(t, q, receive(t, q, 1)[0], queue.Settlement{Outcome: queue.Defer, After: time.Hour, Crashes: 4})
	d := receive(t, q, 1)[0]
	if d.Attempt != 1 || d.Lost != 0 || d.Crashes != 4 {
		t.Errorf("attempt %d, lost %d, crashes %d; want 1, 0, 4", d.Attempt, d.Lost, d.Crashes)
	}
	settle(t, q, d, queue.Settlement{Outcome: queue.Ack})
}
