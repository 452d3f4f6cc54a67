//go:build servers

package lullamqp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/queue"
)

// running runs a consumer of q until the test ends. ended gets the result of Run.
func running(t *testing.T, q *Broker, handle queue.Handler, change ...func(*lull.Policy, *queue.Config)) (events <-chan queue.Event, ended <-chan error) {
	t.Helper()
	policy, config := queue.Policy(), queue.Config{Drain: -1}
	for _, change := range change {
		change(&policy, &config)
	}
	d := must.Have(lull.NewDependency("service", policy, lull.WithRand(seed.Source(t))))
	all := make(chan queue.Event, 1000)
	c, err := queue.New(q.config.Queue, q, d, handle, config, queue.WithObserver(func(_ context.Context, e queue.Event) {
		select {
		case all <- e:
		default:
		}
	}))
	must.Succeed(err)
	ctx, cancel := context.WithCancel(context.Background())
	done, over := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(over)
		done <- c.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-over
	})
	return all, done
}

// expect waits for an event of that kind.
func expect(t *testing.T, events <-chan queue.Event, kind queue.EventKind, ended <-chan error) queue.Event {
	t.Helper()
	patience := time.After(testPatience)
	for {
		select {
		case e := <-events:
			if e.Kind == kind {
				return e
			}
		case err := <-ended:
			t.Fatalf("Run ended: %v", err)
		case <-patience:
			t.Fatalf("no event %v", kind)
		}
	}
}

// wire is the connections of a client, which break.
type wire struct {
	mu      sync.Mutex
	all     []net.Conn
	swallow atomic.Bool // what the server pushes is lost, and the connection with it
	lost    chan bool   // it has been
	deaf    atomic.Bool // what the client writes is lost
	silent  atomic.Bool // when the client begins to consume, nothing comes through any more, either way; once
}

func (w *wire) dial(network, addr string) (net.Conn, error) {
	conn, err := net.DialTimeout(network, addr, testPatience)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, conn)
	return &wired{Conn: conn, wire: w}, nil
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.all {
		conn.Close()
	}
	w.all = nil
}

type wired struct {
	net.Conn
	wire *wire
	dead atomic.Bool // it has fallen silent
}

// pushed is longer than what a server says otherwise, consumes the method basic.consume in a frame.
const (
	pushed   = 2000
	consumes = "\x00\x3c\x00\x14"
)

func (c *wired) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for err == nil && c.dead.Load() {
		n, err = c.Conn.Read(b)
	}
	if n >= pushed && c.wire.swallow.Load() {
		c.wire.lost <- true
		c.wire.cut()
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *wired) Write(b []byte) (int, error) {
	if c.dead.Load() || c.wire.deaf.Load() {
		return len(b), nil
	}
	if bytes.Contains(b, []byte(consumes)) && c.wire.silent.CompareAndSwap(true, false) {
		c.dead.Store(true)
	}
	return c.Conn.Write(b)
}

// Close is not noticed by the server if c is dead.
func (c *wired) Close() error {
	if c.dead.Load() {
		return c.SetReadDeadline(time.Now())
	}
	return c.Conn.Close()
}

// Connections that break, however often, and whatever is in flight, make no dead letters: nothing has
// crashed.
func TestABrokenConnectionIsNoCrash(t *testing.T) {
	t.Parallel()
	const breaks, messages = 12, 8 // a message may crash its consumer six times
	for _, c := range []struct {
		name    string
		swallow bool
	}{{"while handlers run", false}, {"while messages are on the wire", true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := &wire{lost: make(chan bool, 100)}
			config := declared(t, Config{})
			client := New(DialConfig(rabbit(t).url(), amqp.Config{Dial: w.dial}))
			t.Cleanup(func() { client.Close(testContext(t)) })
			q := must.Have(client.Open(testContext(t), config))
			body := strings.Repeat("x", 2*pushed)
			sender := opened(t, config)
			for range messages {
				send(t, sender, body)
			}
			w.swallow.Store(c.swallow)
			var mended atomic.Bool
			begun, handled := make(chan bool, 10_000), make(chan string, 1000)
			running(t, q, func(ctx context.Context, m *queue.Message) error {
				if mended.Load() {
					handled <- m.ID
					return nil
				}
				begun <- true
				<-ctx.Done()
				return fmt.Errorf("cut off: %v", ctx.Err())
			}, func(p *lull.Policy, c *queue.Config) {
				p.Attempts, p.Backoff, c.Concurrency = 3, backoff.Schedule{Base: 20 * time.Millisecond, Cap: 200 * time.Millisecond}, 4
			})
			for i := range breaks {
				sign := begun
				if c.swallow {
					sign = w.lost
				}
				select {
				case <-sign:
				case <-time.After(testPatience):
					t.Fatalf("nothing has come after %d breaks", i)
				}
				for len(sign) > 0 {
					<-sign
				}
				if !c.swallow {
					w.cut()
				}
			}
			mended.Store(true)
			w.swallow.Store(false)
			w.cut()
			ids := map[string]bool{}
			for len(ids) < messages {
				select {
				case id := <-handled:
					ids[id] = true
				case <-time.After(testPatience):
					t.Fatalf("%d of %d messages are handled", len(ids), messages)
				}
			}
			readable(t, raw(t), q.config.DeadLetters, 0)
		})
	}
}

// An idle consumer keeps its channel.
func TestIdleConsumersKeepTheirChannel(t *testing.T) {
	t.Parallel()
	q := opened(t, declared(t, Config{}))
	q.idleTimeout = 10 * time.Millisecond
	session := func() *session {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.current
	}
	got := make(chan []*queue.Delivery, 1)
	go func() {
		d, _ := q.Receive(context.Background(), queue.Want{Max: 1, Lease: time.Minute})
		got <- d
	}()
	q.await(t, "a consumer", func() bool { return q.current != nil && len(q.current.tags) == 1 })
	first := session()
	for range 20 {
		time.Sleep(q.idleTimeout) // longer in all than idleTimeout
		if s := session(); s != first {
			t.Fatal("an idle consumer has another channel")
		}
	}
	send(t, q, "hello")
	d := <-got
	if len(d) != 1 || d[0].Receipt.(*receipt).s != first {
		t.Fatal("the message came on another channel")
	}
	settle(t, q, d[0], queue.Settlement{Outcome: queue.Ack})
	q.await(t, "it goes when nobody asks any more", func() bool { return q.current == nil || q.current.stopped })
}

// A queue that is deleted and made again does not end its consumers.
func TestQueueIsMadeAnew(t *testing.T) {
	t.Parallel()
	config := declared(t, Config{})
	q := opened(t, config)
	send(t, q, "first")
	events, ended := running(t, q, func(context.Context, *queue.Message) error { return nil })
	expect(t, events, queue.EventSettled, ended)
	must.Have(raw(t).QueueDelete(config.Queue, false, false, false))
	for range 2 { // the consumer is cancelled; then there is no queue
		expect(t, events, queue.EventReceiveFailed, ended)
	}
	declared(t, config)
	send(t, q, "second")
	expect(t, events, queue.EventSettled, ended)
}

// A limit on connections is temporary. It ends no consumer: neither a running one nor one that
// begins.
func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	n := rabbit(t)
	const vhost = "limited"
	request(t, http.MethodPut, map[string]any{}, "vhosts", vhost)
	t.Cleanup(func() { request(t, http.MethodDelete, nil, "vhosts", vhost) })
	request(t, http.MethodPut, map[string]any{"configure": ".*", "write": ".*", "read": ".*"}, "permissions", vhost, "guest")
	limit := func(n int) {
		t.Helper()
		request(t, http.MethodPut, map[string]any{"value": n}, "vhost-limits", vhost, "max-connections")
	}
	c := client(t, n.url()+vhost)
	config := Config{Queue: "orders"}
	other := New(Dial(n.url() + vhost))
	declare(t, other, config)
	other.Close(testContext(t))
	limit(0)
	q, err := c.Open(testContext(t), config)
	if err != nil {
		t.Fatalf("Open under a limit: %v", err)
	}
	events, ended := running(t, q, func(context.Context, *queue.Message) error { return nil })
	if e := expect(t, events, queue.EventReceiveFailed, ended); !strings.Contains(e.Err.Error(), "connection limit") {
		t.Errorf("receive_failed: %v", e.Err)
	}
	expect(t, events, queue.EventReceiveFailed, ended)
	limit(-1)
	send(t, q, "hello")
	expect(t, events, queue.EventSettled, ended)
}

// Without the delay levels, or the queues, Open refuses: no message could be retried.
func TestOpenRefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	config := declared(t, Config{})
	c := client(t, rabbit(t).url())
	for name, x := range map[string]struct {
		config Config
		want   string
	}{
		"no levels":       {Config{Queue: config.Queue, Prefix: "nowhere"}, "exchange nowhere.delay-00: missing"},
		"no dead letters": {Config{Queue: config.Queue, DeadLetters: "nowhere.dead"}, "queue nowhere.dead: missing"},
		"no queue":        {Config{Queue: "nowhere"}, "queue nowhere: missing"},
	} {
		_, err := c.Open(testContext(t), x.config)
		if lull.Classify(err).Kind != lull.KindPermanent || err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "Declare") {
			t.Errorf("%s: %v", name, err)
		}
		if _, is := errors.AsType[Mismatches](err); !is {
			t.Errorf("%s: no Problems", name)
		}
	}
	must.Have(c.Open(testContext(t), config))
	// A server that cannot be reached now is accepted. Missing objects are found later.
	late := New(func(ctx context.Context) (*amqp.Connection, error) { return nil, errors.New("refused") })
	q := must.Have(late.Open(testContext(t), Config{Queue: "nowhere"}))
	late.in = newLink(Dial(rabbit(t).url()))
	if _, err := q.Receive(testContext(t), queue.Want{Max: 1, Lease: time.Minute}); lull.Classify(err).Kind != lull.KindPermanent || !strings.Contains(fmt.Sprint(err), "queue nowhere: missing") {
		t.Errorf("Receive: %v", err)
	}
}

// What a handler has handled before Close does not come again, however many end at once, and
// whatever the consumer did last.
func TestCloseAwaitsAcknowledgements(t *testing.T) {
	t.Parallel()
	const n = 40
	for name, last := range map[string]func(ctx context.Context, q *Broker){
		"stopped":  func(context.Context, *Broker) {},
		"canceled": func(_ context.Context, q *Broker) { q.mu.Lock(); q.stopConsuming(); q.mu.Unlock() },
		"paused":   func(ctx context.Context, q *Broker) { q.Pause(ctx, time.Now().Add(time.Minute)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := declared(t, Config{})
			for round := range 6 {
				waiting := 10 * (round % 2)
				q := opened(t, config)
				for i := range n {
					send(t, q, fmt.Sprint("handled ", i))
				}
				d := must.Have(lull.NewDependency("service", queue.Policy(), lull.WithRand(seed.Source(t))))
				ctx, stop := context.WithCancel(testContext(t))
				defer stop()
				began, end := make(chan struct{}, n), make(chan struct{})
				c, err := queue.New("q", q, d, func(context.Context, *queue.Message) error {
					began <- struct{}{}
					<-end
					return nil
				}, queue.Config{Concurrency: n, Drain: time.Minute})
				must.Succeed(err)
				ended := make(chan error, 1)
				go func() { ended <- c.Run(ctx) }()
				for range n {
					<-began
				}
				for i := range waiting {
					send(t, q, fmt.Sprint("waiting ", i))
				}
				last(ctx, q)
				stop()
				close(end)
				must.Succeed(<-ended)
				check.Equal(t, q.client.Close(testContext(t)), nil, "round %d: Close", round)
				again := opened(t, config)
				for _, d := range receive(t, again, waiting) {
					// One may have been handed out in the moment in which a consumer was cancelled: see cancel.
					if !strings.HasPrefix(string(d.Body), "waiting") || d.Attempt > 2 {
						t.Errorf("round %d: %s comes at attempt %d", round, d.Body, d.Attempt)
					}
					settle(t, again, d, queue.Settlement{Outcome: queue.Ack})
				}
				nothing(t, again, pace.Stretch(500*time.Millisecond))
				check.Equal(t, again.client.Close(testContext(t)), nil, "again.client.Close(testContext(t))")
			}
		})
	}
}

// If the server has not got the acknowledgements, Close says that it does not know: whether nobody
// answers, or the connection ends.
func TestCloseReportsWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{false, true} {
		config := declared(t, Config{})
		var w wire
		c := New(DialConfig(rabbit(t).url(), amqp.Config{Dial: w.dial}))
		q := must.Have(c.Open(testContext(t), config))
		send(t, q, "hello")
		d := receive(t, q, 1)[0]
		w.deaf.Store(true)
		settle(t, q, d, queue.Settlement{Outcome: queue.Ack})
		if cut {
			w.cut()
		}
		ctx, cancel := context.WithTimeout(context.Background(), pace.Stretch(2*time.Second))
		defer cancel()
		err := c.Close(ctx)
		if err == nil || !strings.Contains(err.Error(), "may come again") {
			t.Errorf("the connection is cut: %t; Close returns %v", cut, err)
		}
		w.cut()
		again := opened(t, config)
		settle(t, again, receive(t, again, 1)[0], queue.Settlement{Outcome: queue.Ack})
	}
}
