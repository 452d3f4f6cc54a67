package queuetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// patience is how long a test waits for something before it fails.
const patience = 3 * time.Minute

type tester struct {
	testing.TB
	target  Target
	o       Options
	address string
	ctx     context.Context // ends after three times patience
	giveUp  func()          // ends ctx
	*watch
	*Connection
	can queue.Capabilities

	groups, failures atomic.Int64
}

func newTester(t testing.TB, target Target, order queue.Order) *tester {
	b := &tester{TB: t, target: target, o: Options{Lease: target.Lease, Order: order, Attempts: 20}}
	b.address = target.Declare(t, b.o)
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	t.Cleanup(cancel)
	b.ctx, b.giveUp = ctx, cancel
	b.watch = newWatch(target.Lease)
	t.Cleanup(b.watchTimers())
	b.Connection = b.connect()
	b.can = b.Broker.Capabilities()
	if b.can.Order != order {
		t.Fatalf("the queue was to be %v, and its Capabilities.Order is %v", order, b.can.Order)
	}
	return b
}

// connect returns another connection. It is closed when the test ends, at the latest.
func (b *tester) connect() *Connection {
	var c *Connection
	var err error
	for {
		if c, err = b.target.Connect(b.ctx, b.address); err == nil {
			break
		}
		if b.ctx.Err() != nil {
			b.Fatalf("no connection: %v", err)
		}
		time.Sleep(100 * time.Millisecond) // a server that was restarted may need a moment
	}
	shut := sync.OnceValue(c.Close)
	mine := *c
	mine.Close = shut
	b.watchCalls(&mine)
	b.Cleanup(func() { shut() })
	return &mine
}

func (b *tester) group() string { return fmt.Sprintf("group-%d", b.groups.Add(1)) }

// send sends messages with these bodies, each in a group of its own.
func (b *tester) send(bodies ...string) {
	for _, body := range bodies {
		b.sendOne(queue.Outgoing{Body: []byte(body), Headers: queue.Headers{"kind": "test"}})
	}
}

func (b *tester) sendOne(o queue.Outgoing) {
	if o.Group == "" {
		o.Group = b.group()
	}
	if err := b.Sender.Send(b.ctx, o); err != nil {
		if b.temporary(err) {
			b.late() // no verdict: if it were sent again, it might be there twice
		}
		b.Fatalf("Send: %v", err)
	}
}

func (b *tester) want(n int) queue.Want { return queue.Want{Max: n, Lease: b.o.Lease} }

// temporary reports whether err is temporary, and logs it. A few are tolerated: any connection may break.
func (b *tester) temporary(err error) bool {
	b.Helper()
	if v := lull.Classify(err); err == nil || v.Kind != lull.KindTransient || b.failures.Add(1) > 3 {
		return false
	}
	b.Logf("tolerated: %v", err)
	return true
}

func (b *tester) next(from queue.DeadLetters, most int) (got []*queue.Letter, err error) {
	for {
		if got, err = from.Next(b.ctx, most); !b.temporary(err) {
			return got, err
		}
	}
}

// receive waits for at least one message.
func (b *tester) receive(c *Connection, most int) []*queue.Delivery {
	for {
		got, err := c.Broker.Receive(b.ctx, b.want(most))
		switch {
		case len(got) > most:
			b.Fatalf("Receive returned %d messages, no more than %d were wanted", len(got), most)
		case len(got) > 0:
			for _, d := range got {
				b.checkDelivery(d)
			}
			return got
		case b.ctx.Err() != nil:
			b.Fatalf("no message came in time")
		case b.temporary(err):
		case err != nil:
			b.Fatalf("Receive: %v", err)
		}
	}
}

func (b *tester) receiveOne() *queue.Delivery { return b.receive(b.Connection, 1)[0] }

// receiveAll waits for n messages. None is settled meanwhile, so all must arrive within one lease.
func (b *tester) receiveAll(c *Connection, n int) (all []*queue.Delivery) {
	for len(all) < n {
		all = append(all, b.receive(c, min(n-len(all), 10))...)
	}
	return all
}

func (b *tester) checkDelivery(d *queue.Delivery) {
	now := time.Now()
	if len(d.ID) < 1 || len(d.ID) > 512 {
		b.Errorf("an id of %d bytes, want 1 to 512: %q", len(d.ID), d.ID)
	}
	if d.Attempt < 1 {
		b.Errorf("attempt %d, they are counted from 1", d.Attempt)
	}
	switch {
	case !b.can.Leases && !d.Lease.IsZero():
		b.Errorf("a lease until %v, and Capabilities.Leases is false", d.Lease)
	case b.can.Leases && d.Lease.IsZero():
		b.Errorf("no lease, and Capabilities.Leases is true")
	case b.can.Leases && !b.target.Virtual && d.Lease.Before(now.Add(-b.o.Lease)):
		b.Errorf("a lease that lapsed %v ago", now.Sub(d.Lease))
	}
	for what, t := range map[string]time.Time{"Enqueued": d.Enqueued, "FirstSeen": d.FirstSeen} {
		if t.After(now.Add(time.Minute)) {
			b.Errorf("%s is %v from now", what, t.Sub(now))
		}
	}
}

// expectNothing fails the test if a message comes within that time.
func (b *tester) expectNothing(c *Connection, d time.Duration, what string) {
	b.receiveFor(c, d, func(got []*queue.Delivery) (more bool) {
		for _, d := range got {
			b.Errorf("%s: the message %q came, at attempt %d", what, clip(d.Body), d.Attempt)
		}
		return false
	})
}

// receiveFor calls take with the messages that come within that time, as long as it wants more.
func (b *tester) receiveFor(c *Connection, d time.Duration, take func([]*queue.Delivery) (more bool)) {
	ctx, cancel := context.WithTimeout(b.ctx, d)
	defer cancel()
	for ctx.Err() == nil {
		got, err := c.Broker.Receive(ctx, b.want(10))
		if len(got) > 0 && !take(got) {
			return
		}
		if err != nil && ctx.Err() == nil {
			b.Errorf("Receive: %v", err)
			return
		}
	}
}

func clip(body []byte) string {
	if len(body) > 40 {
		return string(body[:40]) + "..."
	}
	return string(body)
}

func (b *tester) settle(c *Connection, d *queue.Delivery, s queue.Settlement) {
	if err := b.trySettle(c, d, s); err != nil {
		b.Fatalf("Settle (%v) of a delivery that is held: %v", s.Outcome, err)
	}
}

// trySettle settles, a dead letter with an envelope.
func (b *tester) trySettle(c *Connection, d *queue.Delivery, s queue.Settlement) error {
	if s.Outcome == queue.DeadLetter && s.Envelope == nil {
		s.Envelope = envelope(d.ID)
	}
	return c.Broker.Settle(b.ctx, d, s)
}

// retryAndReceive settles d with Retry, and takes its next delivery, which must be attempt n.
func (b *tester) retryAndReceive(what string, d *queue.Delivery, n int) *queue.Delivery {
	b.settle(b.Connection, d, queue.Settlement{Outcome: queue.Retry})
	return b.receiveAttempt(what, d, n)
}

// price is how many attempts a settlement costs that gives the message back.
func (b *tester) price(o queue.MessageOutcome) int {
	return choice.Either(o == queue.Retry || !b.can.FreeDefer, 1, 0)
}

// take receives the next message, which must have that body, and acknowledges it.
func (b *tester) take(what, body string) {
	b.Helper()
	d := b.receiveOne()
	b.equal(what, string(d.Body), body)
	b.ack(d)
}

func (b *tester) ack(d *queue.Delivery) {
	b.settle(b.Connection, d, queue.Settlement{Outcome: queue.Ack})
}

// expectLost settles a delivery that is not held, which must fail with ErrLost.
func (b *tester) expectLost(c *Connection, d *queue.Delivery, s queue.Settlement, what string) {
	if err := b.trySettle(c, d, s); !errors.Is(err, queue.ErrLost) {
		b.Errorf("%s: Settle (%v) says %v, want ErrLost", what, s.Outcome, err)
	}
}

func envelope(id string) *queue.Envelope {
	return &queue.Envelope{Reason: "test", Code: "code", Attempts: 1, Source: "orders", OriginalID: id, LastFailure: time.Now()}
}

// letLapse gives d up without settling it: it waits for the end of the lease, or replaces the connection.
func (b *tester) letLapse(d *queue.Delivery) {
	if b.can.Leases {
		time.Sleep(time.Until(d.Lease))
		return
	}
	b.reconnect()
}

func (b *tester) reconnect() {
	if err := b.Close(); err != nil {
		b.Errorf("Close: %v", err)
	}
	b.Connection = b.connect()
}

// expectEmpty checks that nothing is in the queue: ready, out, or waiting for up to a lease.
func (b *tester) expectEmpty(what string) {
	wait := b.o.Lease + b.o.Lease/2
	if !b.can.Leases {
		b.reconnect()
		wait = time.Second
	}
	b.expectEmptyFor(wait, what)
}

// expectEmptyFor is expectEmpty if all leases end within wait.
func (b *tester) expectEmptyFor(wait time.Duration, what string) {
	b.expectNothing(b.Connection, wait, what)
	if b.Depth == nil {
		return
	}
	n, err := b.Depth(b.ctx)
	for deadline := time.Now().Add(10 * time.Second); err == nil && n > 0 && time.Now().Before(deadline); { // statistics may be late
		time.Sleep(100 * time.Millisecond)
		n, err = b.Depth(b.ctx)
	}
	if err != nil {
		b.Fatalf("Depth: %v", err)
	}
	if n != 0 {
		b.Errorf("%s: there are %d messages in the queue", what, n)
	}
}

// letters are all dead letters, read with a connection of its own, left where they are or removed.
func (b *tester) letters(remove bool) (all []*queue.Letter) {
	from := b.reading(b.Connection)
	defer b.closeReading(from)
	b.readAll(from, 10, func(l *queue.Letter) {
		all = append(all, l)
		if remove {
			b.remove(from, l)
		}
	})
	return all
}

// readAll visits the letters of a reading, at most `most` at a time.
func (b *tester) readAll(from queue.DeadLetters, most int, visit func(*queue.Letter)) {
	for {
		got, err := b.next(from, most)
		switch {
		case err == io.EOF:
			return
		case err != nil:
			b.Fatalf("Next: %v", err)
		case len(got) < 1 || len(got) > most:
			b.Fatalf("Next gave %d letters, want 1 to %d", len(got), most)
		}
		for _, l := range got {
			visit(l)
		}
	}
}

func (b *tester) remove(from queue.DeadLetters, l *queue.Letter) {
	if err := from.Remove(b.ctx, l); err != nil {
		b.Fatalf("Remove: %v", err)
	}
}

func (b *tester) reading(c *Connection) queue.DeadLetters {
	from, err := c.Letters(b.ctx)
	if err != nil {
		b.Fatalf("Letters: %v", err)
	}
	r := &reading{DeadLetters: from, watch: b.watch}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		r.Close(ctx) // if the test ends early
	})
	return r
}

// reading is closed once.
type reading struct {
	queue.DeadLetters
	*watch
	once sync.Once
	err  error
}

func (r *reading) Next(ctx context.Context, most int) ([]*queue.Letter, error) {
	got, err := r.DeadLetters.Next(ctx, most)
	r.answered(&err, time.Now()) // it may wait
	return got, err
}

func (r *reading) Remove(ctx context.Context, l *queue.Letter) (err error) {
	defer r.answered(&err, time.Now())
	return r.DeadLetters.Remove(ctx, l)
}

func (r *reading) Close(ctx context.Context) error {
	r.once.Do(func() { r.err = r.DeadLetters.Close(ctx) })
	return r.err
}

func (b *tester) closeReading(from queue.DeadLetters) {
	if err := from.Close(b.ctx); err != nil {
		b.Errorf("Close of the reading: %v", err)
	}
}

func (b *tester) letter() *queue.Letter {
	all := b.letters(false)
	if len(all) != 1 {
		b.Fatalf("%d dead letters, want 1", len(all))
	}
	return all[0]
}

// bodies are those of letters, in order of text.
func bodies(all []*queue.Letter) (out []string) {
	out = choice.Each(all, func(l *queue.Letter) string { return string(l.Body) })
	slices.Sort(out)
	return out
}

func (b *tester) equal(what string, got, want any) {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.Errorf("%s: %v, want %v", what, got, want)
	}
}

// after is d, or Capabilities.MaxDelay if that is shorter.
func (b *tester) after(d time.Duration) time.Duration { return min(d, b.can.MaxDelay) }

// plain is a policy of n attempts with waits that short, with neither breaker nor budget.
func plain(n int, wait time.Duration) lull.Policy {
	return lull.Policy{
		Attempts: n, AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout,
		Backoff:  backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None, Base: wait},
		Timeouts: lull.TimeoutsAlways, Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
	}
}

// running is a consumer that runs until stop.
type running struct {
	b      *tester
	dep    *lull.Dependency
	cancel context.CancelFunc
	done   chan error

	mu     sync.Mutex
	events []queue.Event
}

func (b *tester) start(c *Connection, p lull.Policy, config queue.Config, h queue.Handler) *running {
	r := &running{b: b, done: make(chan error, 1), dep: must.Have(lull.NewDependency("backend", p))}
	config.Lease = b.o.Lease
	consumer := must.Have(queue.New("orders", c.Broker, r.dep, h, config, queue.WithObserver(r.observe)))
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() { r.done <- consumer.Run(ctx) }()
	b.Cleanup(func() { r.end() }) // if the test ends early
	return r
}

func (r *running) observe(_ context.Context, e queue.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *running) settled(o queue.MessageOutcome) int { return r.count(queue.EventSettled, o) }

// count is how many events there were of that kind, with one of the outcomes if there are any.
func (r *running) count(kind queue.EventKind, outcomes ...queue.MessageOutcome) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind == kind && (len(outcomes) == 0 || slices.Contains(outcomes, e.Outcome)) {
			n++
		}
	}
	return n
}

// end stops the consumer, and returns the error of Run.
func (r *running) end() error {
	r.cancel()
	select {
	case err := <-r.done:
		r.done <- err
		return err
	case <-time.After(patience):
		return errors.New("it does not return")
	}
}

// stop stops the consumer, and fails the test if Run returned an error.
func (r *running) stop() {
	if err := r.end(); err != nil {
		r.b.Errorf("Run: %v", err)
	}
}

// gaveUp reports whether patience has passed since then, or the test must end.
func (b *tester) gaveUp(since time.Time) bool {
	return time.Since(since) > patience || b.ctx.Err() != nil
}

func (b *tester) await(what string, so func() bool) {
	for began := time.Now(); !so(); {
		if b.gaveUp(began) {
			b.Fatalf("%s: not within %v", what, time.Since(began))
		}
		time.Sleep(5 * time.Millisecond)
	}
}
