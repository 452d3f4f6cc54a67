package lullnats

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

// A Broker is a durable pull consumer of a stream. It is a queue.Broker, and safe for
// concurrent use as that says.
//
// It is no queue.Pauser: it never asks for a message that it does not return, so a
// consumer that is paused has nothing to give back. (The server's own pause would stop
// all that share the durable consumer.)
type Broker struct {
	client
	c     Config
	lease time.Duration // of each delivery, as the server has it
	batch int           // the most that the server gives at once
	poll  time.Duration // how long a request waits for a message
	next  string        // the subject of requests for messages
	only  bool          // one message is out at a time

	mu     sync.Mutex
	ahead  time.Duration // how far the server's clock may be ahead of this one, at most
	looked time.Time     // when that was found
}

// Open connects to the queue that c names. It asks Check, and fails with all that is
// missing or different, marked with lull.Permanent, if anything is: what Check does not accept breaks a
// promise of the Broker. An error that is not marked means that the server could not be asked.
func Open(ctx context.Context, js jetstream.JetStream, c Config) (*Broker, error) {
	c, err := c.checked()
	if err != nil {
		return nil, lull.Permanent(err)
	}
	k, err := newClient(js)
	if err != nil {
		return nil, lull.Permanent(err)
	}
	before := time.Now()
	there, err := k.look(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := there.problems(c).Err(); err != nil {
		return nil, lull.Permanent(fmt.Errorf("lullnats: the queue %s of %s is not as it must be: %w", c.Consumer, c.Stream, err))
	}
	info := there.consumer
	b := &Broker{
		client: k, c: c,
		lease: info.Config.AckWait - restart,
		only:  info.Config.MaxAckPending == 1,
		batch: 1000,
		next:  k.prefix + "CONSUMER.MSG.NEXT." + c.Stream + "." + c.Consumer,
	}
	if n := info.Config.MaxAckPending; n > 0 {
		b.batch = min(b.batch, n)
	}
	if n := info.Config.MaxRequestBatch; n > 0 {
		b.batch = min(b.batch, n)
	}
	// A lease is counted from when the message was asked for, so the request must be short.
	b.poll = min(max(b.lease/4, 25*time.Millisecond), 5*time.Second)
	if d := info.Config.MaxRequestExpires; d > 0 {
		b.poll = min(b.poll, d)
	}
	b.saw(before, info.TimeStamp)
	return b, nil
}

// Capabilities is part of queue.Broker.
func (b *Broker) Capabilities() queue.Capabilities {
	can := queue.Capabilities{
		MaxDelay:     MaxDelay,
		FreeDefer:    b.c.Schedules,
		Counts:       queue.ByBroker,
		Leases:       true,
		Extends:      true,
		Deduplicates: true,
	}
	if b.only {
		can.Order = queue.Total
	}
	if b.c.Schedules {
		can.Counts = queue.ByAdapter
	}
	return can
}

// receipt is what a delivery is settled with.
type receipt struct {
	reply   string // the subject of acknowledgements
	subject string // of the message
	origin  string // what the stream called the message when it was sent: its alone
	header  nats.Header
	meta    meta

	mu      sync.Mutex
	lease   time.Time
	settled bool
}

// until is when the lease ends, if it has not, and the delivery was not settled.
func (r *receipt) until() (time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.settled || !time.Now().Before(r.lease) {
		return time.Time{}, queue.ErrLost
	}
	return r.lease, nil
}

// ends says that the lease ends then, or has been found to end earlier.
func (r *receipt) ends(t time.Time, earlier bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !earlier || t.Before(r.lease) {
		r.lease = t
	}
}

func (r *receipt) settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settled = true
}

// delivery is a message that has come, asked for at that time.
func (b *Broker) delivery(m *nats.Msg, asked time.Time) (*queue.Delivery, error) {
	at, err := parseReply(m.Reply)
	if err != nil {
		return nil, err
	}
	r := &receipt{reply: m.Reply, subject: m.Subject, header: m.Header, meta: at, lease: asked.Add(b.lease)}
	r.origin = id(at.stream, at.seq, at.stored)
	d := &queue.Delivery{ID: sentAs(m.Header, r.origin), Attempt: at.delivered, Enqueued: at.stored, Lease: r.lease, Body: m.Data, Receipt: r}
	if at.delivered == 1 {
		d.FirstSeen = time.Now().UTC()
	}
	if was, ok := movedOf(m.Header); ok {
		d.ID, d.Enqueued, d.FirstSeen, d.FirstFailed = was.ID, was.Enqueued, was.Seen, was.Failed
		r.origin = was.Origin
		d.Attempt += was.Attempts
	}
	d.Headers, d.Group = fromHeader(m.Header)
	return d, nil
}
