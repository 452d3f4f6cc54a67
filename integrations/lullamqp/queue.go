package lullamqp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/sleep"
	"github.com/lullgo/lull/queue"
)

// A Broker is one queue of RabbitMQ. It is a queue.Broker and queue.Pauser for one consumer, and a
// queue.Sender for any number of goroutines. Several in one process behave like several processes.
//
// docs/queues.md describes, under "RabbitMQ", handlers that run for long, and the ends of
// connections.
type Broker struct {
	client *Client
	config Config
	pub    *publisher

	abandonAfter, idleTimeout time.Duration // see the constants

	mu          sync.Mutex
	current     *session          // nil: there is none yet, or it has ended
	sessions    map[*session]bool // including those that only wait for deliveries that are out
	failed      error             // why there is no session; Receive returns it, once
	busy        bool              // the session is being opened or changed
	changed     chan struct{}     // closed when a field above, or in the session, has changed
	idle        *time.Timer       // stops the consumer when nobody asks for messages
	asking      bool              // a Receive waits
	checked     bool              // everything that the queue needs has been seen on the server
	consumed    bool              // a consumer has been added once
	closed      bool
	unconfirmed error // why acknowledgements on a session that has ended may not have been carried out
}

var (
	_ queue.Pauser = (*Broker)(nil)
	_ queue.Sender = (*Broker)(nil)
)

// session is one channel on which messages come in. All deliveries end with it. Its changing fields
// are guarded by Broker.mu.
type session struct {
	conn       *amqp.Connection
	ch         *amqp.Channel
	server     ServerInfo
	held       context.Context         // ends with the channel; its cause is the reason
	cancelHeld context.CancelCauseFunc // ends it

	ended      bool
	reason     error
	stopped    bool            // its consumers were cancelled; it only waits for deliveries that are out
	closing    bool            // closeSession closes its channel
	tags       []string        // of its consumers
	limit      int             // their prefetch together
	prefetched []amqp.Delivery // fetched, and not returned by Receive yet
	out        int             // returned by Receive, and not settled

	ackTimes ackTimes

	readers sync.WaitGroup // ends when all messages that the consumers got are in prefetched
	acks    sync.RWMutex   // read-locked while a message is acknowledged; locked: none is
}

// Open returns the queue that config names. It refuses an invalid config, and a server without the
// queue, its queue of dead letters or the delay levels (Mismatches; see Declare). These errors are marked
// with lull.Permanent. If the server cannot be reached now, the first Receive that reaches it checks.
func (c *Client) Open(ctx context.Context, config Config) (*Broker, error) {
	q, err := c.open(config)
	if err != nil {
		return nil, lull.Permanent(err)
	}
	if err := q.checkPresent(ctx); err != nil {
		if v := lull.Classify(err); ctx.Err() != nil || v.Kind == lull.KindPermanent && v.Code != engine.CodeUnclassified {
			q.Close(ctx)
			return nil, err
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.checked = false
	}
	return q, nil
}

// open is Open without a look at the server.
func (c *Client) open(config Config) (*Broker, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("config of a queue: %w", err)
	}
	q := &Broker{
		client: c, config: config.WithDefaults(), pub: newPublisher(c.out), abandonAfter: abandonAfter, idleTimeout: idleTimeout,
		sessions: map[*session]bool{}, changed: make(chan struct{}), checked: true,
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	c.queues[q] = true
	return q, nil
}

// Capabilities is part of queue.Broker.
func (q *Broker) Capabilities() queue.Capabilities {
	return queue.Capabilities{
		ExactDelay: q.config.Native == (Native{}),
		MaxDelay:   MaxDelay,
		FreeDefer:  true,
		Order:      queue.Unordered,
		Losses:     q.config.Native == (Native{}), // where the server delays, it counts both alike
	}
}

// idleTimeout is how long a consumer continues when nobody calls Receive and the server may push
// messages to it.
const idleTimeout = time.Second

// Receive is part of queue.Broker. It connects if necessary, and does not try again itself.
//
// The server pushes no more messages than are out and wanted together. When ctx ends, or nobody calls Receive for a
// second, the consumer is cancelled, and the messages that it had fetched ahead are given back, without losing an attempt.
func (q *Broker) Receive(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if w.Max < 1 {
		return nil, lull.Permanent(fmt.Errorf("lullamqp: Want.Max is %d: want 1 or more", w.Max))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.idle != nil {
		q.idle.Stop()
	}
	q.asking = true
	defer func() { q.asking = false }()
	for {
		if q.closed {
			return nil, lull.Permanent(ErrClosed)
		}
		if got := q.takePrefetched(w.Max); len(got) > 0 {
			q.watchIdle()
			return got, nil
		}
		if err := ctx.Err(); err != nil {
			q.stopConsuming()
			return nil, err
		}
		if err := q.failed; err != nil {
			q.failed = nil
			return nil, err
		}
		if s := q.current; s != nil && s.stopped {
			q.dropIfStopped(s)
		}
		if s := q.current; !q.busy && (s == nil || s.limit < s.out+w.Max && len(s.tags) < maxConsumers) {
			q.busy = true
			need := w.Max
			if s != nil {
				need += s.out
			}
			go q.consume(s, need)
		}
		q.awaitChange(ctx)
	}
}

// awaitChange waits for the next change of q, or the end of ctx. It is called with q.mu held, and releases it meanwhile.
func (q *Broker) awaitChange(ctx context.Context) {
	changed := q.changed
	q.mu.Unlock()
	defer q.mu.Lock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
}

// takePrefetched returns messages that were fetched. It is called with q.mu held.
func (q *Broker) takePrefetched(most int) []*queue.Delivery {
	s := q.current
	if s == nil {
		return nil
	}
	n := min(most, len(s.prefetched))
	got := make([]*queue.Delivery, n)
	for i := range got {
		got[i] = q.delivery(s, s.prefetched[i])
		s.prefetched[i] = amqp.Delivery{}
	}
	s.prefetched = s.prefetched[n:]
	s.out += n
	return got
}

func (q *Broker) delivery(s *session, d amqp.Delivery) *queue.Delivery {
	r := &receipt{s: s, d: d, record: recordOf(d.Headers), received: time.Now()}
	if r.record.id == "" {
		r.record.id = identify(&d)
	}
	if r.record.enqueued.IsZero() {
		r.record.enqueued = d.Timestamp
	}
	if r.record.expires.IsZero() {
		r.record.expires = expiry(&d, r.received)
	}
	lost := redeliveries(&d)
	r.attempt = min(r.record.attempts+lost, maxAttempts-1) + 1
	if q.config.Native != (Native{}) {
		lost = 0
	}
	return &queue.Delivery{
		ID: r.record.id, Attempt: r.attempt, Lost: lost, Crashes: r.record.crashes, Enqueued: r.record.enqueued, FirstSeen: r.record.firstSeen,
		FirstFailed: r.record.firstFailed, Expires: r.record.expires, Group: r.record.group, Headers: headersOf(d.Headers), Body: d.Body, Held: s.held, Receipt: r,
	}
}

// wake wakes everybody who waits for a change. It is called with q.mu held.
func (q *Broker) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// consume makes the server push up to limit messages, on s, or on a new session.
func (q *Broker) consume(s *session, limit int) {
	err := q.addConsumer(s, limit)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy = false
	q.consumed = q.consumed || err == nil
	if err != nil && q.consumed && !q.closed {
		// The queue was there, and may be there again: it is made anew, or its node moves.
		err = lull.Transient(err)
	}
	if err != nil {
		q.failed = err
	}
	q.wake()
}

const (
	// exactConsumers is the number of consumers that a session gets with exactly the wanted prefetch. Later
	// ones raise the limit by half at least.
	exactConsumers = 8
	// maxConsumers is the most consumers that a session gets, which is enough for any Concurrency. RabbitMQ
	// before 4.1 gives back the messages of more consumers of one channel in an order that changes
	// after a crash: see letters. (Up to 32 the order is that of their names.)
	maxConsumers = 32
	maxPrefetch  = 65535 // the largest prefetch of basic.qos
)

// prefetchStep returns by how much another consumer raises the limit of n consumers, so that it reaches
// wanted, or as near as basic.qos allows.
func prefetchStep(n, limit, wanted int) int {
	more := wanted - limit
	if n >= exactConsumers {
		more = max(more, limit/2)
	}
	return min(max(more, 1), maxPrefetch)
}

// addConsumer raises the prefetch of s to limit, with one more consumer. The prefetch of a consumer
// cannot be changed, and cancelling one may cost an attempt (see cancel).
func (q *Broker) addConsumer(s *session, limit int) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s == nil {
		if s, err = q.open(ctx); err != nil {
			return err
		}
	}
	q.mu.Lock()
	more := prefetchStep(len(s.tags), s.limit, limit)
	tag := fmt.Sprintf("lull-%d", len(s.tags)+1)
	q.mu.Unlock()
	pushed, err := callWithin(ctx, func() (<-chan amqp.Delivery, error) {
		if err := s.ch.Qos(more, 0, false); err != nil {
			return nil, err
		}
		return s.ch.Consume(q.config.Queue, tag, false, false, false, false, nil)
	})
	if err != nil {
		err = explain("consume from "+q.config.Queue, q.closeReason(ctx, s, err))
		q.end(s, err)
		return err
	}
	q.mu.Lock()
	s.tags = append(s.tags, tag)
	s.limit += more
	q.watchIdle()
	q.mu.Unlock()
	s.readers.Go(func() {
		for d := range pushed {
			q.mu.Lock()
			if !s.ended {
				s.prefetched = append(s.prefetched, d)
			}
			q.wake()
			q.mu.Unlock()
		}
	})
	return nil
}

// closeReason returns the server's reason for closing the channel, if err is only that the channel is
// closed; else err.
func (q *Broker) closeReason(ctx context.Context, s *session, err error) error {
	if errors.Is(err, amqp.ErrClosed) {
		select { // the server's reason arrives just after
		case <-s.held.Done():
		case <-ctx.Done():
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.reason != nil && errors.Is(err, amqp.ErrClosed) {
		return s.reason
	}
	return err
}

func (q *Broker) open(ctx context.Context) (*session, error) {
	conn, err := q.client.in.get(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn, server: serverOf(conn)}
	if err := q.config.supported(s.server); err != nil {
		return nil, lull.Permanent(err)
	}
	q.mu.Lock()
	there := q.checked
	q.mu.Unlock()
	if !there {
		if err := q.checkPresent(ctx); err != nil {
			return nil, err
		}
	}
	s.held, s.cancelHeld = context.WithCancelCause(context.Background())
	if s.ch, err = callWithin(ctx, conn.Channel); err != nil {
		return nil, explain("open a channel", err)
	}
	ends := s.ch.NotifyClose(make(chan *amqp.Error, 1))
	cancels := s.ch.NotifyCancel(make(chan string, 8))
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		go s.ch.Close()
		return nil, lull.Permanent(ErrClosed)
	}
	q.current, q.unconfirmed = s, nil
	q.sessions[s] = true
	go q.watch(s, ends, cancels)
	return s, nil
}

// checkPresent checks that everything that the queue needs is on the server.
func (q *Broker) checkPresent(ctx context.Context) error {
	if err := q.client.checkPresent(ctx, q.config); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.checked = true
	return nil
}

// ErrCanceled is the reason when deliveries are lost because the server ended a consumer: the queue
// was deleted, or, from RabbitMQ 4.3 on, a message was out for longer than consumer_timeout.
var ErrCanceled = errors.New("lullamqp: the server ended the consumer (the queue was deleted, or a handler took longer than consumer_timeout)")

func (q *Broker) watch(s *session, ends <-chan *amqp.Error, cancels <-chan string) {
	for {
		select {
		case e, ok := <-ends:
			var err error = amqp.ErrClosed
			if ok {
				err = e
			}
			q.end(s, explain("the channel of "+q.config.Queue+" ended", withoutServerMark(err)))
			return
		case _, ok := <-cancels:
			if ok {
				// Its deliveries may be out elsewhere by now, and the server would ignore their
				// acknowledgements. The channel ends, so that no message stays with it.
				q.end(s, lull.Transient(ErrCanceled))
			}
			cancels = nil
		}
	}
}

// withoutServerMark removes the server's mark from an error of a channel that once worked. Opening another
// shows whether it is permanent.
func withoutServerMark(err error) error {
	if e, ok := errors.AsType[*amqp.Error](err); ok {
		return fmt.Errorf("%d %s", e.Code, e.Reason)
	}
	return err
}

// end ends s: all its deliveries are lost.
func (q *Broker) end(s *session, reason error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.ended {
		return
	}
	s.ended, s.reason, s.prefetched = true, reason, nil
	if s.ackTimes.since() < 2*patience { // a connection may be mute for so long
		q.unconfirmed = lull.Transient(fmt.Errorf("lullamqp: messages of %s that were settled last may come again: %w", q.config.Queue, reason))
	}
	s.cancelHeld(reason)
	delete(q.sessions, s)
	if q.current == s {
		q.current = nil
		if q.failed == nil && !q.busy && !q.closed {
			q.failed = reason
		}
	}
	q.wake()
	go s.ch.Close()
}

// dropIfStopped drops a session whose consumers were cancelled. It closes the session's channel when
// nothing is out with it.
func (q *Broker) dropIfStopped(s *session) {
	if !s.stopped || len(s.prefetched) > 0 {
		return
	}
	if q.current == s {
		q.current = nil
	}
	if !s.ended && !s.closing && s.out == 0 {
		s.closing = true
		go q.closeSession(s)
	}
}

// closeSession closes the channel of s, once the server has carried out all acknowledgements on it: see
// ackTimes. What is still out goes back to the queue.
func (q *Broker) closeSession(s *session) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	q.mu.Lock()
	for left := s.ackTimes.keepOpen(time.Now()); left > 0 && !q.closed && !s.ended; left = s.ackTimes.keepOpen(time.Now()) {
		changed := q.changed
		q.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(left):
		}
		q.mu.Lock()
	}
	s.limit = s.out
	limit, many := s.out+1, s.ackTimes.keepOpen(time.Now()) > 0
	q.mu.Unlock()
	if many && q.addConsumer(s, limit) == nil {
		// The server answers both requests only when the queue has carried out the earlier ones.
		q.giveBack(ctx, s)
	}
	err := runWithin(ctx, func() error { return s.ch.Qos(1, 0, false) }) // the server has read all before it answers
	if err != nil {
		q.end(s, explain("close the channel of "+q.config.Queue, withoutServerMark(q.closeReason(ctx, s, err))))
		return
	}
	q.mu.Lock()
	s.ended, s.reason, s.prefetched = true, ErrClosed, nil
	q.mu.Unlock()
	s.cancelHeld(ErrClosed)
	runWithin(ctx, s.ch.Close)
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.sessions, s)
	q.wake()
}

// watchIdle stops the consumers when nobody has asked for messages for a while. It is called with
// q.mu held.
func (q *Broker) watchIdle() {
	if q.idle == nil {
		q.idle = time.AfterFunc(q.idleTimeout, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			if q.asking {
				return
			}
			if s := q.current; s != nil && len(s.tags) > 0 && !q.busy && len(s.prefetched) == 0 && s.out >= s.limit {
				q.idle.Reset(q.idleTimeout) // the server may push nothing to it; look again
				return
			}
			q.stopConsuming()
		})
		return
	}
	q.idle.Reset(q.idleTimeout)
}

// stopConsuming cancels the consumers and gives back the messages that they have fetched, in the background.
// It is called with q.mu held.
func (q *Broker) stopConsuming() {
	if q.busy {
		q.watchIdle() // try again later
		return
	}
	if s := q.current; s != nil && (len(s.tags) > 0 || len(s.prefetched) > 0) {
		q.busy = true
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			q.giveBack(ctx, s)
			q.mu.Lock()
			defer q.mu.Unlock()
			q.busy = false
			q.wake()
		}()
	}
}

// cancel ends the consumers of s. The messages that were under way to them are in s.prefetched
// afterwards.
//
// There is one exception. RabbitMQ hands messages of a quorum queue to a consumer until a moment
// after it has confirmed the cancellation, and the client drops these. They stay out with the
// channel until it ends, which counts as an attempt. This can only happen if the server owes the
// consumer messages. So nothing is acknowledged meanwhile, and cancel waits for the messages that
// the server owes for earlier acknowledgements. Afterwards the channel is used only for deliveries
// that are out.
func (q *Broker) cancel(ctx context.Context, s *session) error {
	q.mu.Lock()
	tags := s.tags
	s.tags = nil
	q.mu.Unlock()
	if len(tags) == 0 {
		return nil
	}
	err := runWithin(ctx, func() error {
		s.acks.Lock()
		defer s.acks.Unlock()
		if err := q.awaitQuiet(ctx, s); err != nil {
			return err
		}
		for _, tag := range tags {
			if err := s.ch.Cancel(tag, false); err != nil {
				return err
			}
		}
		s.readers.Wait()
		return nil
	})
	if err != nil {
		return explain("cancel the consumer of "+q.config.Queue, withoutServerMark(q.closeReason(ctx, s, err)))
	}
	return nil
}

const (
	// unpushed is how long the server may push nothing although messages are ready. Then they are
	// for another consumer: a single active one, or one with a higher priority.
	unpushed = time.Second
	// quietTime is how long awaitQuiet waits for another message while they come one after the other, but no
	// longer than unpushed in all. A message that comes in the moment of the cancellation loses an
	// attempt.
	quietTime = 25 * time.Millisecond
)

// awaitQuiet waits until the server can owe s nothing for earlier acknowledgements: it has pushed as much
// as it may, or no message is ready.
func (q *Broker) awaitQuiet(ctx context.Context, s *session) error {
	look := &inspector{conn: s.conn} // on a channel of its own, since a refusal ends the channel
	defer look.close()
	began := time.Now()
	had, since := 0, began
	for {
		q.mu.Lock()
		has, limit := s.out+len(s.prefetched), s.limit
		q.mu.Unlock()
		if has >= limit {
			return nil
		}
		now := time.Now()
		if has != had {
			had, since = has, now
		}
		ready := 0
		err := look.do(ctx, func(ch *amqp.Channel) error {
			is, err := ch.QueueDeclarePassive(q.config.Queue, true, false, false, false, nil)
			ready = is.Messages
			return err
		})
		still := now.Sub(since) >= unpushed
		if ready == 0 {
			still = now.Sub(since) >= quietTime || now.Sub(began) >= unpushed
		}
		if err != nil || still {
			return s.ch.Qos(1, 0, false) // the answer comes after the messages that were pushed before
		}
		sleep.For(ctx, time.Millisecond)
	}
}

// giveBack cancels the consumers of s, and puts the messages that they have fetched back into the
// queue. The next Receive returns messages that cannot be put back.
func (q *Broker) giveBack(ctx context.Context, s *session) {
	if err := q.cancel(ctx, s); err != nil {
		q.end(s, err)
		return
	}
	q.mu.Lock()
	s.stopped = true
	ahead := s.prefetched
	s.prefetched = nil
	s.out += len(ahead) // as if they were handed out and settled
	deliveries := make([]*queue.Delivery, len(ahead))
	for i, d := range ahead {
		deliveries[i] = q.delivery(s, d)
	}
	q.mu.Unlock()
	kept := make([]bool, len(ahead))
	var all sync.WaitGroup
	for i, d := range deliveries {
		all.Go(func() {
			r := d.Receipt.(*receipt)
			// Earlier losses are recorded as engine.Plan.Counted does.
			err := q.settle(ctx, r, queue.Settlement{Outcome: queue.Defer, Uncount: d.Lost, Crashes: d.Crashes + min(d.Lost, 1)})
			if kept[i] = err != nil && !errors.Is(err, queue.ErrLost); kept[i] {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.abandon.Stop()
			}
		})
	}
	all.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, d := range ahead {
		if kept[i] && !s.ended {
			s.prefetched = append(s.prefetched, d)
			s.out--
		}
	}
	q.dropIfStopped(s)
}

// Pause is part of queue.Pauser. It cancels the consumer, and puts the messages that were fetched
// ahead back into the queue, at no cost to their attempts.
func (q *Broker) Pause(ctx context.Context, until time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		s := q.current
		if q.closed || !q.busy && (s == nil || s.stopped) {
			return nil // messages that could not be given back are kept
		}
		if !q.busy {
			q.stopConsuming()
		}
		q.awaitChange(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// Extend is part of queue.Broker. It is not called, as there are no leases.
func (q *Broker) Extend(context.Context, *queue.Delivery, time.Duration) (time.Time, error) {
	return time.Time{}, lull.Permanent(errors.New("lullamqp: RabbitMQ has no leases that could be extended"))
}

// Close gives back the messages that were fetched ahead, and ends the queue's channels, not the client. It returns
// when the server has carried out all acknowledgements, or an error if that is not known: messages that were settled last
// may come again. Messages that are out go back to the queue, as deliveries that were not settled.
func (q *Broker) Close(ctx context.Context) error {
	err := q.Pause(ctx, time.Time{})
	q.mu.Lock()
	q.closed = true
	if q.idle != nil {
		q.idle.Stop()
	}
	q.wake()
	for s := range q.sessions {
		if !s.closing {
			s.closing = true
			s.cancelHeld(ErrClosed)
			go q.closeSession(s)
		}
	}
	for len(q.sessions) > 0 && ctx.Err() == nil {
		q.awaitChange(ctx)
	}
	err = errors.Join(err, q.unconfirmed)
	if len(q.sessions) > 0 {
		err = errors.Join(err, fmt.Errorf("lullamqp: messages of %s that were settled last may come again: %w", q.config.Queue, ctx.Err()))
	}
	q.mu.Unlock()
	if c := q.pub.end(); c != nil {
		go c.Close()
	}
	q.client.mu.Lock()
	delete(q.client.queues, q)
	q.client.mu.Unlock()
	return err
}
