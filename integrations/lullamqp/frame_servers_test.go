//go:build servers

package lullamqp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
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
			must.Succeed(q.Send(testContext(t), queue.Outgoing{Body: []byte("first")}))
			settle(t, q, receive(t, q, 1)[0], queue.Settlement{Outcome: queue.Ack})
			in, out := q.client.in.value, q.client.out.value
			sent := maps.Clone(x.headers)
			sent["kind"], sent["n"] = "order", int32(5)
			publish(t, raw(t), "", q.config.Queue, amqp.Publishing{Headers: sent, MessageId: "poison", CorrelationId: "c", Body: []byte("poison")})

			policy := queue.Policy()
			policy.Attempts = 2
			policy.Backoff.Base, policy.Backoff.Cap = 50*time.Millisecond, 100*time.Millisecond
			policy.Breaker.Off = true
			d := must.Have(lull.NewDependency("service", policy, lull.WithRand(func() uint64 { return 1 << 62 })))
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
			must.Succeed(err)
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
			must.Succeed(<-run)
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
			must.Succeed(q.Send(testContext(t), queue.Outgoing{Body: l.Body, Headers: queue.LetterHeaders(l.Headers, &l.Envelope), Letter: l}))
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

// What is left of a message's own time goes with it through every kind of retry, with all that its
// sender has set. A retry beyond it is a dead letter.
func TestRule21MessagesExpire(t *testing.T) {
	t.Parallel()
	life := pace.Stretch(time.Minute)
	q := opened(t, declared(t, Config{}))
	ch := raw(t)
	sent := amqp.Publishing{
		Headers: amqp.Table{"n": int32(5)}, Expiration: strconv.FormatInt(life.Milliseconds(), 10), Priority: 3, CorrelationId: "c", ReplyTo: "r",
		MessageId: "m", Type: "t", AppId: "a", ContentType: "text/plain", ContentEncoding: "identity", DeliveryMode: amqp.Persistent, Body: []byte("a code"),
	}
	publish(t, ch, "", q.config.Queue, sent)
	d := receive(t, q, 1)[0]
	first := d.Expires
	if left := time.Until(first); left <= 0 || left > life {
		t.Fatalf("%v are left of %v", left, life)
	}
	for _, s := range []queue.Settlement{
		{Outcome: queue.Retry, After: 50 * time.Millisecond}, {Outcome: queue.Retry}, {Outcome: queue.Defer, After: 50 * time.Millisecond}, {Outcome: queue.Defer},
	} {
		settle(t, q, d, s)
		d = receive(t, q, 1)[0]
		if !d.Expires.Equal(first.Truncate(time.Millisecond)) {
			t.Errorf("after %+v it ends at %v, want %v", s, d.Expires, first)
		}
		m := d.Receipt.(*receipt).d
		if m.Priority != 3 || m.CorrelationId != "c" || m.ReplyTo != "r" || m.MessageId != "m" || m.Type != "t" || m.AppId != "a" ||
			m.ContentType != "text/plain" || m.ContentEncoding != "identity" || m.DeliveryMode != amqp.Persistent || m.Headers["n"] != int32(5) {
			t.Errorf("after %+v: %+v", s, m)
		}
		// One that is in its queue at once expires there, whoever reads it.
		if left, err := strconv.ParseInt(m.Expiration, 10, 64); s.After == 0 && (err != nil || left > life.Milliseconds()) {
			t.Errorf("after %+v its expiration is %q", s, m.Expiration)
		}
	}
	settle(t, q, d, queue.Settlement{Outcome: queue.Retry, After: life})
	l := only(t, q)
	if l.Reason != queue.ReasonExpired || l.Source != q.config.Queue || string(l.Body) != "a code" {
		t.Errorf("%+v", l)
	}
	// Its copies in a redrive have one message-id, and no end.
	for range 2 {
		must.Succeed(q.Send(testContext(t), queue.Outgoing{Body: l.Body, Headers: queue.LetterHeaders(l.Headers, &l.Envelope), Letter: l}))
	}
	for _, d := range receive(t, q, 2) {
		if m := d.Receipt.(*receipt).d; m.MessageId != "m" || !d.Expires.IsZero() || m.Expiration != "" {
			t.Errorf("redriven: %+v", m)
		}
		settle(t, q, d, queue.Settlement{Outcome: queue.Ack})
	}
}

// A message whose time ended while it waited is not handled.
func TestRule21MessagesExpireInTheLevels(t *testing.T) {
	t.Parallel()
	q := opened(t, declared(t, Config{}))
	publish(t, raw(t), "", q.config.Queue, amqp.Publishing{Expiration: "60000", Body: []byte("a code")})
	d := receive(t, q, 1)[0]
	d.Receipt.(*receipt).record.expires = time.Now() // it will be when the message is back
	d.Expires = time.Time{}
	settle(t, q, d, queue.Settlement{Outcome: queue.Retry, After: 100 * time.Millisecond})
	events, ended := running(t, q, func(context.Context, *queue.Message) error {
		t.Error("it was handled")
		return lull.Transient(errors.New("blip"))
	})
	if e := expect(t, events, queue.EventSettled, ended); e.Outcome != queue.DeadLetter || e.Reason != queue.ReasonExpired {
		t.Errorf("%+v", e)
	}
}

// only returns the only dead letter of q.
func only(t *testing.T, q *Broker) *queue.Letter {
	t.Helper()
	from := must.Have(q.Letters(testContext(t)))
	t.Cleanup(func() { from.Close(context.Background()) })
	all, err := from.Next(testContext(t), 10)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d letters, %v", len(all), err)
	}
	return all[0]
}
