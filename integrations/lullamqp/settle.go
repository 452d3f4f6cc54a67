package lullamqp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/sleep"
	"github.com/lullgo/lull/queue"
)

type receipt struct {
	s        *session
	d        amqp.Delivery
	record   record
	attempt  int
	received time.Time

	mu      sync.Mutex
	settled bool
	copy    *outgoing       // the message that was published in place of this one
	answer  *call[struct{}] // the acknowledgement that was sent to the server
	abandon *time.Timer     // gives the delivery back if no further Settle comes
}

// outgoing is a message that takes the place of one that is out.
type outgoing struct {
	s   queue.Settlement
	pub *publication
}

// abandonAfter is how long to wait for another Settle after a failed one. A Consumer tries for half a
// minute. Without this limit the message would stay out until the connection ends.
const abandonAfter = queue.GiveBackAfter

// Settle is part of queue.Broker.
//
// A message that moves is published anew, to the delay levels, the queue or that of the dead letters, and acknowledged when
// the broker has confirmed the new one. If the connection is lost in between, both exist, with one Delivery.ID.
// RabbitMQ does not confirm acknowledgements: nil means that one was sent on a working connection. If the connection breaks
// before the server has carried it out, the message is delivered once more. Close waits until all are carried out.
//
// The properties of a message must fit into a frame. A dead letter for which there is no room has its
// headers shortened. A Retry fails with queue.ErrTooLarge. A Defer does not wait, and fails if there is
// no room for that either.
func (q *Broker) Settle(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, ok := d.Receipt.(*receipt)
	if !ok {
		return lull.Permanent(errors.New("lullamqp: the delivery is of another broker"))
	}
	s, err := s.Within(d, s.After, MaxDelay, q.config.Queue)
	if err != nil {
		return err
	}
	return q.settle(ctx, r, s)
}

func (q *Broker) settle(ctx context.Context, r *receipt, s queue.Settlement) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.abandon != nil {
		r.abandon.Stop()
	}
	if r.settled || q.lost(r) {
		return queue.ErrLost
	}
	err := q.carryOut(ctx, r, s)
	switch {
	case err == nil:
		q.settled(r)
		return nil
	case q.lost(r):
		return fmt.Errorf("%w: %w", queue.ErrLost, err)
	}
	r.abandon = time.AfterFunc(q.abandonAfter, func() { q.abandon(r) })
	return err
}

// lost reports whether r's channel has ended, and with it the delivery.
func (q *Broker) lost(r *receipt) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return r.s.ended || r.s.ch.IsClosed()
}

// settled records that r is no longer out. It is called with r.mu held.
func (q *Broker) settled(r *receipt) {
	r.settled = true
	q.mu.Lock()
	defer q.mu.Unlock()
	r.s.out--
	q.dropIfStopped(r.s)
}

// carryOut carries out s. It is called with r.mu held.
func (q *Broker) carryOut(ctx context.Context, r *receipt, s queue.Settlement) error {
	if s.Outcome == queue.Retry && q.native(r, s.After) {
		return r.send(ctx, func() error { return r.d.Reject(true) })
	}
	if s.Outcome != queue.Ack && s.Outcome != queue.Drop && r.answer == nil {
		err := q.replace(ctx, r, s)
		if err != nil {
			return err
		}
	}
	return r.send(ctx, func() error { return r.d.Ack(false) })
}

// send sends the server the outcome of the delivery. If that blocks, because the server does not
// read, a later call waits for it: sending it twice would end the channel.
func (r *receipt) send(ctx context.Context, what func() error) error {
	if r.answer == nil {
		r.answer = startRun(func() error {
			r.s.acks.RLock()
			defer r.s.acks.RUnlock()
			defer func() { r.s.ackTimes.note(time.Now()) }()
			return what()
		})
	}
	_, err := r.answer.wait(ctx)
	if err != nil && err != ctx.Err() {
		return fmt.Errorf("lullamqp: acknowledge: %w", err)
	}
	return err
}

// native reports whether the server's own delay after one more failure is long enough.
func (q *Broker) native(r *receipt, after time.Duration) bool {
	n := q.config.Native
	if n == (Native{}) {
		return false
	}
	failures, _ := integer(r.d.Headers["x-delivery-count"])
	if !r.d.Redelivered {
		failures = 0
	}
	return after <= min(n.Min*time.Duration(min(max(failures, 0), 1_000_000)+1), n.Max)
}

// replace publishes the successor of r's message, and waits until the broker has it. It does not
// publish again what an earlier call has sent.
func (q *Broker) replace(ctx context.Context, r *receipt, s queue.Settlement) error {
	if c := r.copy; c != nil && c.s.Outcome == s.Outcome && c.s.After == s.After {
		err := c.pub.await(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		r.copy = nil // it did not arrive, as far as is known
	}
	exchange, key, m := q.successor(r, s)
	room := q.config.roomFor(units(s.After))
	pub, err := q.pub.start(ctx, exchange, key, m, room)
	if t, ok := errors.AsType[*tooLarge](err); ok && s.Outcome != queue.Retry {
		if s.Outcome == queue.DeadLetter {
			shorten(&m, s.Envelope, t.over)
		} else { // without a wait, no level adds headers
			now := s
			now.After = 0
			exchange, key, m = q.successor(r, now)
			room = roomToCount
		}
		pub, err = q.pub.start(ctx, exchange, key, m, room)
	}
	if err != nil {
		return err
	}
	r.copy = &outgoing{s: s, pub: pub}
	err = pub.await(ctx)
	if err != nil && ctx.Err() == nil {
		r.copy = nil
	}
	return err
}

// successor returns the message that replaces r's, and its exchange and routing key.
func (q *Broker) successor(r *receipt, s queue.Settlement) (exchange, key string, m amqp.Publishing) {
	next := r.record
	h := keptHeaders(r.d.Headers)
	m = republished(&r.d, h)
	if s.Outcome == queue.DeadLetter {
		h[queue.EnvelopeHeader] = s.Envelope.Encode()
		dead := record{id: rand.Text(), enqueued: time.Now(), group: next.group}
		dead.write(h)
		m.MessageId = cmp.Or(m.MessageId, dead.id)
		return "", q.config.DeadLetters, m
	}
	next.attempts, next.crashes = max(r.attempt-s.Uncount, 1), s.Crashes
	if s.Outcome == queue.Defer {
		next.attempts--
	}
	if next.firstSeen.IsZero() {
		next.firstSeen = r.received
	}
	if next.firstFailed.IsZero() {
		next.firstFailed = s.FirstFailed
	}
	next.write(h)
	m.MessageId = cmp.Or(m.MessageId, next.id)
	exchange, key = q.config.delayed(units(s.After))
	if key == q.config.Queue && !next.expires.IsZero() {
		m.Expiration = strconv.FormatInt(max(time.Until(next.expires).Milliseconds(), 1), 10)
	}
	return exchange, key, m
}

// abandon gives back a delivery that nobody will settle any more.
func (q *Broker) abandon(r *receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.settled || q.lost(r) {
		return
	}
	what := func() error { return r.d.Reject(true) }
	if c := r.copy; c != nil && sleep.IsOver(c.pub.done) && c.pub.err == nil {
		what = func() error { return r.d.Ack(false) }
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if r.send(ctx, what) == nil {
		q.settled(r)
	}
}

// Send is part of queue.Sender. The message is persistent. nil means that the broker has confirmed
// it: on a quorum queue, most of its members have it on disk. Outgoing.ID becomes the message's
// message-id. Delivery.ID is another, which is unique, as RabbitMQ discards no duplicates. A dead
// letter from a reading of this package is sent with the properties and headers that a retry keeps,
// its message-id too.
//
// The names of headers must not begin with Lull-Amqp-, nor be those that RabbitMQ writes or acts
// on: CC, BCC, x-death, x-first-death-*, x-last-death-*, x-delivery-count, x-acquired-count. The
// headers must fit into a frame, less 16 KB.
func (q *Broker) Send(ctx context.Context, o queue.Outgoing) error {
	return (&Sender{q.pub, q.config.Queue}).Send(ctx, o)
}

// A Sender puts messages into any queue, also one that another program declared. It is a
// queue.Sender, and safe for concurrent use.
type Sender struct {
	pub   *publisher
	queue string
}

var _ queue.Sender = (*Sender)(nil)

// Sender returns a sender to the queue with that name, which must exist.
func (c *Client) Sender(ctx context.Context, name string) (*Sender, error) {
	if err := c.queue(ctx, name); err != nil {
		return nil, err
	}
	return &Sender{newPublisher(c.out), name}, nil
}

// Send is part of queue.Sender. It works like Broker.Send.
func (s *Sender) Send(ctx context.Context, o queue.Outgoing) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	room := roomToMove
	m := amqp.Publishing{Headers: make(amqp.Table, len(o.Headers)+4), DeliveryMode: amqp.Persistent, Body: o.Body}
	r := record{id: rand.Text(), enqueued: time.Now(), group: o.Group}
	if o.Letter != nil {
		if was, ok := o.Letter.Receipt.(*letterReceipt); ok {
			m = republished(&was.d, keptHeaders(was.d.Headers))
			r.id, room = was.copyID, roomToCount
		}
	}
	h := m.Headers
	for name, value := range o.Headers {
		if reserved(name) {
			return lull.Permanent(fmt.Errorf("lullamqp: a message must not have a header %q: that is RabbitMQ's or this package's", name))
		}
		if name == "" || len(name) > 255 {
			return lull.Permanent(fmt.Errorf("lullamqp: the name of a header has %d bytes: want 1 to 255", len(name)))
		}
		h[name] = value
	}
	if len(o.ID) > 255 {
		return lull.Permanent(fmt.Errorf("lullamqp: Outgoing.ID has %d bytes: want up to 255", len(o.ID)))
	}
	r.write(h)
	m.MessageId = cmp.Or(m.MessageId, o.ID, r.id)
	if m.Timestamp.IsZero() {
		m.Timestamp = r.enqueued
	}
	err := s.pub.publish(ctx, "", s.queue, m, room)
	if errors.Is(err, ErrUnroutable) {
		return lull.Permanent(fmt.Errorf("lullamqp: send to %s: %w", s.queue, err))
	}
	return err
}
