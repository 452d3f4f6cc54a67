//go:build servers

package lullamqp

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/queue"
)

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
		must(t, q.Send(testContext(t), queue.Outgoing{Body: l.Body, Headers: queue.LetterHeaders(l.Headers, &l.Envelope), Letter: l}))
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
	from, err := q.Letters(testContext(t))
	must(t, err)
	t.Cleanup(func() { from.Close(context.Background()) })
	all, err := from.Next(testContext(t), 10)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d letters, %v", len(all), err)
	}
	return all[0]
}
