package lullamqp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/queue"
)

// running runs a consumer of q until the test ends. ended gets the result of Run.
func running(t *testing.T, q *Queue, handle queue.Handler) (events <-chan queue.Event, ended <-chan error) {
	t.Helper()
	d, err := lull.NewDependency("service", queue.Policy(), lull.WithRand(seed.Source(t)))
	if err != nil {
		t.Fatal(err)
	}
	all := make(chan queue.Event, 1000)
	c, err := queue.New(q.config.Queue, q, d, handle, queue.Config{Drain: -1}, queue.WithObserver(func(_ context.Context, e queue.Event) {
		select {
		case all <- e:
		default:
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
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

// A handler whose delivery is lost with its channel (consumer_timeout, a connection that breaks)
// learns of it at once, with the reason. So does the observer.
func TestHandlersEndWithTheirChannel(t *testing.T) {
	t.Parallel()
	q := opened(t, declared(t, Config{}))
	send(t, q, "hello")
	began, cause := make(chan struct{}, 10), make(chan error, 10)
	events, ended := running(t, q, func(ctx context.Context, m *queue.Message) error {
		began <- struct{}{}
		if m.Attempt > 1 {
			return nil
		}
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil // it may have been done
	})
	<-began
	// This is a server's behaviour after consumer_timeout: the tag is not known.
	q.mu.Lock()
	ch := q.s.ch
	q.mu.Unlock()
	ch.Ack(12345, false)
	if err := <-cause; !errors.Is(err, queue.ErrLeaseLost) || !strings.Contains(err.Error(), "PRECONDITION_FAILED") {
		t.Errorf("the handler's context ended because of: %v", err)
	}
	if e := expect(t, events, queue.EventLeaseLost, ended); !errors.Is(e.Err, queue.ErrLeaseLost) || !strings.Contains(e.Err.Error(), "PRECONDITION_FAILED") {
		t.Errorf("lease_lost: %v", e.Err)
	}
	if e := expect(t, events, queue.EventSettled, ended); e.Outcome != queue.Ack || e.Attempt != 2 {
		t.Errorf("in the end: %+v", e)
	}
}

// An idle consumer keeps its channel.
func TestIdleConsumersKeepTheirChannel(t *testing.T) {
	t.Parallel()
	q := opened(t, declared(t, Config{}))
	q.linger = 10 * time.Millisecond
	session := func() *session {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.s
	}
	got := make(chan []*queue.Delivery, 1)
	go func() {
		d, _ := q.Receive(context.Background(), queue.Want{Max: 1, Lease: time.Minute})
		got <- d
	}()
	await(t, "a consumer", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.s != nil && len(q.s.tags) == 1
	})
	first := session()
	for range 20 {
		time.Sleep(q.linger) // longer in all than linger
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
	await(t, "it goes when nobody asks any more", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.s == nil || q.s.stopped
	})
}

// A queue that is deleted and made again does not end its consumers.
func TestQueueIsMadeAnew(t *testing.T) {
	t.Parallel()
	config := declared(t, Config{})
	q := opened(t, config)
	send(t, q, "first")
	events, ended := running(t, q, func(context.Context, *queue.Message) error { return nil })
	expect(t, events, queue.EventSettled, ended)
	if _, err := raw(t).QueueDelete(config.Queue, false, false, false); err != nil {
		t.Fatal(err)
	}
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
	c := New(Dial(n.url() + vhost))
	t.Cleanup(func() { c.Close(testContext(t)) })
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
	c := New(Dial(rabbit(t).url()))
	defer c.Close(context.Background())
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
		if _, is := errors.AsType[Problems](err); !is {
			t.Errorf("%s: no Problems", name)
		}
	}
	if _, err := c.Open(testContext(t), config); err != nil {
		t.Error(err)
	}
	// A server that cannot be reached now is accepted. Missing objects are found later.
	late := New(func(ctx context.Context) (*amqp.Connection, error) { return nil, errors.New("refused") })
	q, err := late.Open(testContext(t), Config{Queue: "nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	late.in.dial = Dial(rabbit(t).url())
	if _, err := q.Receive(testContext(t), queue.Want{Max: 1, Lease: time.Minute}); lull.Classify(err).Kind != lull.KindPermanent || !strings.Contains(fmt.Sprint(err), "queue nowhere: missing") {
		t.Errorf("Receive: %v", err)
	}
}
