package lullnats

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

// A Broker is a durable pull consumer of a stream. It is a queue.Broker, with the concurrency that
// queue.Broker requires.
//
// It is no queue.Pauser: it never asks for a message that it does not return, so a paused consumer
// has nothing to give back. (The server's own pause would stop all that share the durable
// consumer.)
type Broker struct {
	client
	c       Config
	batch   int           // the most messages that the server gives at once
	longest time.Duration // how long a request may wait for a message; zero: any time
	maxAge  time.Duration // of the stream; zero: any
	next    string        // the subject of requests for messages
	checked bool          // everything was as it must be: see check

	mu         sync.Mutex
	lease      time.Duration       // of each delivery, by the server's last answer
	asked      time.Time           // the time of that answer's request
	out        map[uint64]*receipt // by sequence
	clockAhead time.Duration       // how far the server's clock may be ahead of this one, at most
	measured   time.Time           // the time of that measurement
}

// Open connects to the queue that c names. It calls Check. If anything is missing or different, it
// fails with a list that is marked with lull.Permanent. If the server cannot be asked now, the first Receive
// that reaches it checks.
func Open(ctx context.Context, js jetstream.JetStream, c Config) (*Broker, error) {
	k, c, err := connect(js, c)
	if err != nil {
		return nil, lull.Permanent(err)
	}
	b := &Broker{
		client: k, c: c, lease: c.ackWait() - restartError, out: map[uint64]*receipt{}, batch: 1000,
		next: k.prefix + "CONSUMER.MSG.NEXT." + c.Stream + "." + c.Consumer,
	}
	if err := refusal(ctx, b.check(ctx)); err != nil {
		return nil, err
	}
	return b, nil
}

// check checks once that everything is as it must be, and reads the consumer's settings. Only Open
// and Receive call it.
func (b *Broker) check(ctx context.Context) error {
	if b.checked {
		return nil
	}
	before := time.Now()
	p, err := b.verify(ctx, b.c)
	if err != nil {
		return err
	}
	info := p.consumer
	if n := info.Config.MaxAckPending; n > 0 {
		b.batch = min(b.batch, n)
	}
	if n := info.Config.MaxRequestBatch; n > 0 {
		b.batch = min(b.batch, n)
	}
	b.longest, b.maxAge = info.Config.MaxRequestExpires, p.stream.Config.MaxAge
	b.recordClock(before, info.TimeStamp)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lease, b.asked, b.checked = info.Config.AckWait-restartError, before, true
	return nil
}

// Capabilities is part of queue.Broker.
func (b *Broker) Capabilities() queue.Capabilities {
	return queue.Capabilities{
		MaxDelay:     MaxDelay,
		FreeDefer:    b.c.Schedules,
		Order:        b.c.Order,
		Losses:       b.c.Schedules, // elsewhere the server counts retries and losses alike
		Leases:       true,
		Extends:      true,
		Deduplicates: true,
	}
}

type receipt struct {
	reply      string // the subject of acknowledgements
	subject    string // of the message
	origin     string // the stream's name of the message when it was sent, which is unique
	header     nats.Header
	meta       meta
	expires    time.Time               // the end of the message's own time, by the server's clock; zero: never
	held       context.Context         // Delivery.Held
	cancelHeld context.CancelCauseFunc // ends it

	mu      sync.Mutex
	since   time.Time // the lease is counted from
	lease   time.Time
	settled bool
}

// until returns when the lease ends. It returns queue.ErrLost if the lease is over, or the delivery
// was settled.
func (r *receipt) until() (time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.settled || !time.Now().Before(r.lease) {
		return time.Time{}, queue.ErrLost
	}
	return r.lease, nil
}

// over reports whether the lease has ended, or the delivery was settled.
func (r *receipt) over() bool {
	_, err := r.until()
	return err != nil
}

// shorten adjusts the delivery when leases turn out to be shorter. If the new lease is over, the
// delivery is lost now; otherwise when it ends.
func (r *receipt) shorten(length time.Duration, why error) {
	r.mu.Lock()
	end := r.since.Add(length)
	shorter := !r.settled && end.Before(r.lease)
	if shorter {
		r.lease = end
	}
	r.mu.Unlock()
	if shorter {
		time.AfterFunc(time.Until(end), func() {
			if r.over() {
				r.cancelHeld(why)
			}
		})
	}
}

// endBy records that the lease ends at t, if that is earlier.
func (r *receipt) endBy(t time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.Before(r.lease) {
		r.lease = t
	}
}

// settle records that r is no longer out.
func (b *Broker) settle(r *receipt) {
	r.mu.Lock()
	r.settled = true
	r.mu.Unlock()
	b.mu.Lock()
	if b.out[r.meta.seq] == r {
		delete(b.out, r.meta.seq)
	}
	b.mu.Unlock()
	r.cancelHeld(queue.ErrLost) // nobody listens any more
}

// errAgain is the cause when a delivery is lost because the server has delivered its message again.
var errAgain = errors.New("lullnats: the server has delivered the message again: AckWait of the consumer is over, or was made shorter")

func (b *Broker) currentLease() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lease
}

// poll returns how long a request waits for a message. It must be short, as a lease is counted from
// the request.
func (b *Broker) poll() time.Duration {
	d := min(max(b.currentLease()/4, 25*time.Millisecond), 5*time.Second)
	if b.longest > 0 {
		d = min(d, b.longest)
	}
	return d
}

// refresh checks from time to time whether leases are as long as before. Somebody may have changed
// AckWait, which applies to deliveries that are out too: those whose new lease is over are lost. It
// waits for the answer for a twelfth of a lease at most, so that no lease runs out meanwhile. A
// later answer takes effect when it comes.
func (b *Broker) refresh(ctx context.Context) error {
	b.mu.Lock()
	stale := time.Since(b.asked) >= min(b.lease/6, time.Second)
	if stale {
		b.asked = time.Now()
	}
	patience := b.lease / 12
	b.mu.Unlock()
	if !stale {
		return nil
	}
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		done <- b.remeasure(ctx)
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
	case <-ctx.Done():
	}
	return nil
}

func (b *Broker) remeasure(ctx context.Context) error {
	consumer, err := b.js.Consumer(ctx, b.c.Stream, b.c.Consumer)
	if err != nil {
		return nil // the operation that needs it will return the error
	}
	wait := consumer.CachedInfo().Config.AckWait
	lease := wait - restartError
	b.mu.Lock()
	was := b.lease
	b.lease = max(lease, minLease)
	maps.DeleteFunc(b.out, func(_ uint64, r *receipt) bool { return r.over() })
	out := slices.Collect(maps.Values(b.out))
	b.mu.Unlock()
	if lease < was {
		for _, r := range out {
			r.shorten(lease, fmt.Errorf("lullnats: AckWait of the consumer %s of %s was made shorter: it is %v", b.c.Consumer, b.c.Stream, wait))
		}
	}
	if lease < minLease {
		return fmt.Errorf("lullnats: AckWait of the consumer %s of %s is %v now: want at least %v, which is a lease and a second", b.c.Consumer, b.c.Stream, wait, restartError+minLease)
	}
	return nil
}

// delivery returns a message that has come. asked is the time of the request.
func (b *Broker) delivery(m *nats.Msg, asked time.Time) (*queue.Delivery, error) {
	at, err := parseReply(m.Reply)
	if err != nil {
		return nil, err
	}
	r := &receipt{reply: m.Reply, subject: m.Subject, header: m.Header, meta: at, since: asked}
	r.held, r.cancelHeld = context.WithCancelCause(context.Background())
	b.mu.Lock()
	lease := asked.Add(b.lease)
	r.lease = lease
	former, ahead := b.out[at.seq], b.clockAhead
	b.out[at.seq] = r
	b.mu.Unlock()
	if former != nil {
		former.endBy(time.Now())
		former.cancelHeld(errAgain)
	}
	r.origin = id(at.stream, at.seq, at.stored)
	d := &queue.Delivery{ID: sentAs(m.Header, r.origin), Attempt: at.delivered, Enqueued: at.stored, Lease: lease, Held: r.held, Body: m.Data, Receipt: r}
	if b.c.Schedules {
		d.Lost = at.delivered - 1
	}
	if at.delivered == 1 {
		d.FirstSeen = time.Now().UTC()
	}
	if was, ok := movedOf(m.Header); ok {
		d.ID, d.Enqueued, d.FirstSeen, d.FirstFailed = was.ID, was.Enqueued.time(), was.Seen.time(), was.Failed.time()
		r.origin = was.Origin
		d.Attempt += was.Attempts
		d.Crashes = was.Crashes
		r.expires = was.Ends.time()
	} else if left, ok := ttl(m.Header); ok && left > 0 {
		r.expires = at.stored.Add(left)
	} else if !ok && b.maxAge > 0 {
		r.expires = at.stored.Add(b.maxAge)
	}
	if !r.expires.IsZero() {
		d.Expires = r.expires.Add(-ahead)
	}
	d.Headers, d.Group = fromHeader(m.Header)
	return d, nil
}
