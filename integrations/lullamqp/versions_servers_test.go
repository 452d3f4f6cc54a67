//go:build servers

package lullamqp

import (
	"errors"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// What the server does when a delivery is not acknowledged. The adapter relies on some of it: see
// the table in docs/queues.md.
func TestWhatTheServerCounts(t *testing.T) {
	t.Parallel()
	v := serverVersion(t)
	new := v.AtLeast(4, 3)
	t.Log(v)
	type counts struct{ delivered, acquired int64 }
	for _, c := range []struct {
		name        string
		end         func(d *amqp.Delivery, ch *amqp.Channel) error
		old, recent counts // after two
	}{
		{"nack", func(d *amqp.Delivery, _ *amqp.Channel) error { return d.Nack(false, true) }, counts{2, 0}, counts{0, 2}},
		{"reject", func(d *amqp.Delivery, _ *amqp.Channel) error { return d.Reject(true) }, counts{2, 0}, counts{2, 2}},
		{"channel", func(_ *amqp.Delivery, ch *amqp.Channel) error { return ch.Close() }, counts{2, 0}, counts{2, 2}},
	} {
		config := declared(t, Config{})
		send(t, opened(t, config), "hello")
		var last *amqp.Delivery
		for n := range 3 {
			ch := raw(t)
			var d amqp.Delivery
			await(t, "a message", func() (ok bool) {
				var err error
				d, ok, err = ch.Get(config.Queue, false)
				must.Succeed(err)
				return ok
			})
			last = &d
			check.Equal(t, d.Redelivered, n > 0, "%s: delivery %d is marked as redelivered", c.name, n+1)
			must.Succeed(c.end(&d, ch))
		}
		var got counts
		got.delivered, _ = integer(last.Headers["x-delivery-count"])
		got.acquired, _ = integer(last.Headers["x-acquired-count"])
		want := c.old
		if new {
			want = c.recent
		}
		check.Equal(t, got, want, "%s: counts after two", c.name)
		check.Equal(t, redeliveries(last), 2, "%s: redeliveries", c.name)
	}
}

// RabbitMQ has native retries from 4.3 on. Before that they are an error.
func TestNative(t *testing.T) {
	t.Parallel()
	v := serverVersion(t)
	config := Config{Queue: "native", Native: Native{Min: 300 * time.Millisecond, Max: time.Second}}
	if !v.AtLeast(4, 3) {
		c := client(t, rabbit(t).url())
		q := must.Have(c.open(config))
		_, received := q.Receive(testContext(t), queue.Want{Max: 1})
		for what, err := range map[string]error{
			"Declare": c.Declare(testContext(t), config), "Check": c.Check(testContext(t), config), "Receive": received,
			"Management.Check": management(t).Check(testContext(t), config),
		} {
			if !errors.Is(err, ErrNative) || lull.Classify(err).Kind != lull.KindPermanent {
				t.Errorf("%s on %v: %v", what, v, err)
			}
		}
		t.Log(received)
		if _, err := raw(t).QueueDeclarePassive("native", true, false, false, false, nil); !answered(err, amqp.NotFound) {
			t.Errorf("a queue was declared even so: %v", err)
		}
		return
	}
	q := opened(t, declared(t, config))
	if q.Capabilities().ExactDelay {
		t.Error("native delays are exact")
	}
	check.Equal(t, management(t).Check(testContext(t), config), nil, "management(t).Check(testContext(t), config)")
	send(t, q, "hello")
	d := receive(t, q, 1)[0]
	id := d.ID
	for i, c := range []struct {
		after  time.Duration
		native bool
	}{
		{100 * time.Millisecond, true},  // waits 300 ms
		{500 * time.Millisecond, true},  // 600
		{950 * time.Millisecond, false}, // longer than the third, 900
		{0, true},
	} {
		began := time.Now()
		settle(t, q, d, queue.Settlement{Outcome: queue.Retry, After: c.after})
		d = receive(t, q, 1)[0]
		took := time.Since(began)
		native := d.Receipt.(*receipt).d.Redelivered
		t.Logf("%v: came after %v, native %v", c.after, took.Round(time.Millisecond), native)
		if took < c.after || native != c.native {
			t.Errorf("after %v, want %v or more; native %v, want %v", took, c.after, native, c.native)
		}
		if d.ID != id || d.Attempt != i+2 {
			t.Errorf("attempt %d of %s, want %d of %s", d.Attempt, d.ID, i+2, id)
		}
	}
	settle(t, q, d, queue.Settlement{Outcome: queue.Defer})
	d = receive(t, q, 1)[0]
	check.Equal(t, d.Attempt, 5, "attempt after Defer")
	settle(t, q, d, queue.Settlement{Outcome: queue.Ack})
}
