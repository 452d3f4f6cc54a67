//go:build servers

package lullamqp

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// opened returns the queue of config, with a client of its own.
func opened(t testing.TB, config Config) *Broker {
	t.Helper()
	return must.Have(client(t, rabbit(t).url()).open(config))
}

// client returns a client that ends with the test.
func client(t testing.TB, url string) *Client {
	c := New(Dial(url))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		c.Close(ctx)
	})
	return c
}

// raw returns a channel on a connection of its own, for operations that the adapter does not have.
func raw(t testing.TB) *amqp.Channel {
	t.Helper()
	return rawAt(t, rabbit(t).url())
}

func rawAt(t testing.TB, url string) *amqp.Channel {
	t.Helper()
	conn := must.Have(amqp.Dial(url))
	t.Cleanup(func() { conn.Close() })
	return must.Have(conn.Channel())
}

func serverVersion(t testing.TB) ServerInfo {
	t.Helper()
	c := client(t, rabbit(t).url())
	return must.Have(c.Server(testContext(t)))
}

// send sends until the broker takes it: on a busy machine RabbitMQ refuses a message now and then.
func send(t testing.TB, q *Broker, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		ctx := testContext(t)
		err := ErrRefused
		for errors.Is(err, ErrRefused) && ctx.Err() == nil {
			err = q.Send(ctx, queue.Outgoing{Body: []byte(body)})
		}
		must.Succeed(err)
	}
}

// receive waits for n messages.
func receive(t testing.TB, q *Broker, n int) (all []*queue.Delivery) {
	t.Helper()
	ctx := testContext(t)
	for len(all) < n {
		got := must.Have(q.Receive(ctx, queue.Want{Max: n - len(all), Lease: time.Minute}))
		all = append(all, got...)
	}
	return all
}

// nothing checks that no message comes for that long.
func nothing(t testing.TB, q *Broker, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	got, err := q.Receive(ctx, queue.Want{Max: 1, Lease: time.Minute})
	if len(got) > 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %d messages, %v", len(got), err)
	}
	// Its consumer is cancelled in the background. Messages that are sent meanwhile may be pushed
	// to it.
	q.await(t, "its consumer is cancelled", func() bool { return !q.busy && (q.current == nil || q.current.stopped || len(q.current.tags) == 0) })
}

func settle(t testing.TB, q *Broker, d *queue.Delivery, s queue.Settlement) {
	t.Helper()
	if s.Outcome == queue.DeadLetter && s.Envelope == nil {
		s.Envelope = &queue.Envelope{Reason: "test", OriginalID: d.ID, Source: "orders", Attempts: d.Attempt}
	}
	must.Succeed(q.Settle(testContext(t), d, s))
}

// The server pushes no more than is wanted: others get the rest.
func TestPrefetchIsWhatIsWanted(t *testing.T) {
	t.Parallel()
	config := declared(t, Config{})
	q, other := opened(t, config), opened(t, config)
	for i := range 20 {
		send(t, q, strconv.Itoa(i))
	}
	mine := receive(t, q, 3)
	mine = append(mine, receive(t, q, 2)...)
	q.mu.Lock()
	if q.current.limit != 5 || q.current.out != 5 || len(q.current.prefetched) != 0 {
		t.Errorf("5 messages were wanted: the server may push %d, %d are out, %d were fetched ahead", q.current.limit, q.current.out, len(q.current.prefetched))
	}
	q.mu.Unlock()
	check.Equal(t, len(receive(t, other, 15)), 15, "messages are left for others")
	for _, d := range mine {
		settle(t, q, d, queue.Settlement{Outcome: queue.Ack})
	}
}

// Messages that were fetched ahead go to others during a pause, at the end of a context, and at the
// end of the queue. They lose no attempt. Messages that are out can be settled.
func TestFetchedAheadIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"pause", "context", "silence", "close"} {
		t.Run(how, func(t *testing.T) {
			config := declared(t, Config{})
			q, other := opened(t, config), opened(t, config)
			q.idleTimeout = time.Hour // however long the rest takes here
			send(t, q, "first")
			first := receive10(t, q)
			send(t, q, "1", "2", "3", "4") // it has asked for these already
			q.await(t, "the others are fetched", func() bool { return len(q.current.prefetched) == 4 })
			switch how {
			case "pause":
				must.Succeed(q.Pause(testContext(t), time.Now().Add(time.Minute)))
			case "context":
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				q.mu.Lock()
				ahead := q.current.prefetched
				q.current.prefetched = nil // as if they came in the moment in which it ends
				q.mu.Unlock()
				go func() {
					q.mu.Lock()
					q.current.prefetched = ahead
					q.stopConsuming()
					q.mu.Unlock()
				}()
				if _, err := q.Receive(ctx, queue.Want{Max: 1}); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			case "silence":
				q.mu.Lock()
				q.idleTimeout = idleTimeout
				q.watchIdle() // from now on
				q.mu.Unlock()
			case "close":
				must.Succeed(q.Close(testContext(t)))
			}
			left := 4
			if how == "close" {
				left = 5 // with those that were out
			}
			for _, d := range receive(t, other, left) {
				want := 1
				if string(d.Body) == "first" {
					want = 2
				}
				check.Equal(t, d.Attempt, want, "%s: attempt", d.Body)
				settle(t, other, d, queue.Settlement{Outcome: queue.Ack})
			}
			if how == "close" {
				check.Is(t, q.Settle(testContext(t), first, queue.Settlement{Outcome: queue.Ack}), queue.ErrLost, "after Close")
				return
			}
			settle(t, q, first, queue.Settlement{Outcome: queue.Ack})
			send(t, other, "again")
			settle(t, q, receive(t, q, 1)[0], queue.Settlement{Outcome: queue.Ack})
			nothing(t, other, 200*time.Millisecond)
		})
	}
}

// receive10 takes the one message that is there, and makes the server push up to nine more.
func receive10(t *testing.T, q *Broker) *queue.Delivery {
	t.Helper()
	got, err := q.Receive(testContext(t), queue.Want{Max: 10, Lease: time.Minute})
	if err != nil || len(got) != 1 {
		t.Fatal(len(got), err)
	}
	return got[0]
}

// await waits until something is so, which it looks at with q.mu held.
func (q *Broker) await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	await(t, what, func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return ok()
	})
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(testPatience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not %s", what)
		}
	}
}

// A consumer is cancelled just after it has acknowledged, when the server owes it messages. None of
// them loses an attempt, unless the server takes longer to push them than cancel waits.
func TestPausesAfterAcknowledgementsCostNothing(t *testing.T) {
	t.Parallel()
	q := opened(t, declared(t, Config{}))
	const n, each = 120, 5
	for i := range n {
		send(t, q, strconv.Itoa(i))
	}
	slow := false
	for range n / each {
		for _, d := range receive(t, q, each) {
			if d.Attempt != 1 && !slow {
				t.Fatalf("attempt %d of %s", d.Attempt, d.Body)
			}
			settle(t, q, d, queue.Settlement{Outcome: queue.Ack})
		}
		began := time.Now()
		must.Succeed(q.Pause(testContext(t), time.Time{}))
		slow = slow || time.Since(began) >= unpushed
	}
	nothing(t, q, 100*time.Millisecond)
}

// fill declares a queue that refuses messages, for it is full.
func fill(t *testing.T, ch *amqp.Channel, name string) {
	t.Helper()
	must.Have(ch.QueueDeclare(name, true, false, false, false, amqp.Table{"x-queue-type": "quorum", "x-max-length": int64(1), "x-overflow": "reject-publish"}))
	t.Cleanup(func() { raw(t).QueueDelete(name, false, false, false) })
	for range 10 { // a quorum queue takes a few more than it should
		must.Succeed(ch.Publish("", name, false, false, amqp.Publishing{}))
	}
}

// Nothing is acknowledged before its successor has arrived.
func TestWhatCannotBeMovedStays(t *testing.T) {
	t.Parallel()
	config := declared(t, Config{})
	ch := raw(t)
	full := config.Queue + ".full"
	fill(t, ch, full)
	for _, c := range []struct {
		name   string
		config Config
		s      queue.Settlement
		want   error
	}{
		{"no queue of dead letters", Config{Queue: config.Queue, DeadLetters: "nowhere"}, queue.Settlement{Outcome: queue.DeadLetter}, ErrUnroutable},
		{"a full one", Config{Queue: config.Queue, DeadLetters: full}, queue.Settlement{Outcome: queue.DeadLetter}, ErrRefused},
		{"no levels", Config{Queue: config.Queue, Prefix: "nowhere"}, queue.Settlement{Outcome: queue.Retry, After: time.Second}, nil},
		{"no levels to defer by", Config{Queue: config.Queue, Prefix: "nowhere"}, queue.Settlement{Outcome: queue.Defer, After: time.Second}, nil},
	} {
		q := opened(t, c.config)
		send(t, q, c.name)
		d := receive(t, q, 1)[0]
		c.s.Envelope = &queue.Envelope{Reason: "test"}
		for range 2 {
			err := q.Settle(testContext(t), d, c.s)
			if err == nil || errors.Is(err, queue.ErrLost) || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, err, c.want)
			}
		}
		// It is still this consumer's, and nobody else's.
		nothing(t, opened(t, config), 200*time.Millisecond)
		settle(t, q, d, queue.Settlement{Outcome: queue.Ack})
	}
}

// A level cannot hand on a message that no queue takes. It tries again later: after the time in the
// server's setting, three minutes by default.
func TestWhatNoQueueTookComesLater(t *testing.T) {
	t.Parallel()
	config := declared(t, Config{})
	q, ch := opened(t, config), raw(t)
	full := q.config
	full.Queue += ".full"
	fill(t, ch, full.Queue)
	must.Succeed(ch.QueueBind(full.Queue, queuePattern(full.Queue), full.deliver(), false, nil))
	for _, to := range []*Config{&full, &q.config} {
		exchange, key := to.delayed(1)
		must.Succeed(q.pub.publish(testContext(t), exchange, key, amqp.Publishing{MessageId: to.Queue, DeliveryMode: amqp.Persistent}, 0))
	}
	// The second has come through the level, so the first was refused.
	settle(t, q, receive(t, q, 1)[0], queue.Settlement{Outcome: queue.Ack})
	must.Have(ch.QueuePurge(full.Queue, false))
	readable(t, ch, full.Queue, 1)
}

func TestSendRefuses(t *testing.T) {
	t.Parallel()
	q := opened(t, declared(t, Config{}))
	for _, o := range []queue.Outgoing{
		{Headers: queue.Headers{"CC": "elsewhere"}},
		{Headers: queue.Headers{"x-death": "y"}},
		{Headers: queue.Headers{headerAttempts: "3"}},
		{Headers: queue.Headers{"": "y"}},
		{Headers: queue.Headers{"long": string(make([]byte, 200_000))}},
		{ID: string(make([]byte, 256))},
	} {
		if err := q.Send(testContext(t), o); err == nil || lull.Classify(err).Kind != lull.KindPermanent {
			t.Errorf("%.100v: %v", o, err)
		}
	}
	send(t, q, "and the connection is in order")
	err := opened(t, Config{Queue: "nowhere"}).Send(testContext(t), queue.Outgoing{})
	if !errors.Is(err, ErrUnroutable) || lull.Classify(err).Kind != lull.KindPermanent {
		t.Errorf("a queue that is not there: %v", err)
	}
}

func TestReceiveRefuses(t *testing.T) {
	t.Parallel()
	q := opened(t, Config{Queue: "nowhere"})
	if _, err := q.Receive(t.Context(), queue.Want{}); err == nil {
		t.Error("none wanted")
	}
	c := New(Dial("amqp://nobody:wrong@" + rabbit(t).url()[len("amqp://guest:guest@"):]))
	q, _ = c.open(Config{Queue: "orders"})
	// The server closes the connection without an error, like one that dies: it may be temporary.
	if _, err := q.Receive(testContext(t), queue.Want{Max: 1}); err == nil || !strings.Contains(err.Error(), "403") || lull.Classify(err).Kind == lull.KindPermanent {
		t.Errorf("a wrong password: %v", err)
	}
	c = New(Dial("amqp://127.0.0.1:1/"))
	q, _ = c.open(Config{Queue: "orders"})
	if _, err := q.Receive(testContext(t), queue.Want{Max: 1}); err == nil || lull.Classify(err).Kind == lull.KindPermanent {
		t.Errorf("a server that is not there: %v", err)
	}
	if err := q.Settle(t.Context(), &queue.Delivery{}, queue.Settlement{Outcome: queue.Ack}); err == nil {
		t.Error("the delivery of another broker")
	}
}

// A message of another publisher keeps its properties.
func TestOthersMessages(t *testing.T) {
	t.Parallel()
	q := opened(t, declared(t, Config{}))
	ch := raw(t)
	at := time.Now().Truncate(time.Second)
	if err := ch.Publish("", q.config.Queue, false, false, amqp.Publishing{
		Headers: amqp.Table{"n": int32(5), "kind": "order"}, ContentType: "text/plain", CorrelationId: "c", Type: "t", Timestamp: at, Body: []byte("hello"),
	}); err != nil {
		t.Fatal(err)
	}
	first := receive(t, q, 1)[0]
	if first.Attempt != 1 || first.ID == "" || !first.Enqueued.Equal(at) || first.Headers["kind"] != "order" || len(first.Headers) != 1 {
		t.Errorf("%+v", first)
	}
	failed := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	settle(t, q, first, queue.Settlement{Outcome: queue.Retry, After: 50 * time.Millisecond, FirstFailed: failed})
	d := receive(t, q, 1)[0]
	if d.ID != first.ID || d.Attempt != 2 || !d.Enqueued.Equal(at) || !d.FirstFailed.Equal(failed) {
		t.Errorf("%+v after %+v", d, first)
	}
	if age := time.Since(d.FirstSeen); age < 50*time.Millisecond || age > time.Minute {
		t.Errorf("it was first seen %v ago", age)
	}
	m := d.Receipt.(*receipt).d
	if m.ContentType != "text/plain" || m.CorrelationId != "c" || m.Type != "t" || !m.Timestamp.Equal(at) || m.Headers["n"] != int32(5) {
		t.Errorf("%+v", m)
	}
	settle(t, q, d, queue.Settlement{Outcome: queue.Ack})
}

// The broker's own limit: a letter without an envelope that has RabbitMQ's facts.
func TestLettersOfTheBroker(t *testing.T) {
	t.Parallel()
	config := declared(t, Config{DeliveryLimit: 3})
	q := opened(t, config)
	must.Succeed(q.Send(testContext(t), queue.Outgoing{Body: []byte("poison"), Headers: queue.Headers{"kind": "test"}}))
	d := receive(t, q, 1)[0]
	settle(t, q, d, queue.Settlement{Outcome: queue.Retry})
	id := d.ID
	for n := 2; n <= 5; n++ { // three attempts more than the copy's first
		d := receive(t, q, 1)[0]
		if d.Attempt != n || d.ID != id {
			t.Errorf("attempt %d of %s, want %d of %s", d.Attempt, d.ID, n, id)
		}
		q.Close(testContext(t))
		q = opened(t, config)
	}
	nothing(t, q, 300*time.Millisecond)
	l := only(t, q)
	if l.Reason != queue.ReasonBroker || l.Code != "delivery_limit" || l.Source != config.Queue || l.OriginalID != id || l.Headers["kind"] != "test" || string(l.Body) != "poison" {
		t.Errorf("%+v", *l)
	}
	if age := time.Since(l.Enqueued); age < 0 || age > time.Minute {
		t.Errorf("it became a letter %v ago", age)
	}
	t.Logf("%v: %d attempts", serverVersion(t), l.Attempts)
	if l.Attempts < 2 || l.Attempts > 6 { // 3.10 does not report how many
		t.Errorf("%d attempts, want 2 to 6", l.Attempts)
	}
}

// A message that nobody could settle does not stay out for ever.
func TestForsaken(t *testing.T) {
	t.Parallel()
	config := declared(t, Config{})
	bad := config
	bad.DeadLetters = "nowhere"
	q := opened(t, bad)
	q.abandonAfter = 50 * time.Millisecond
	send(t, q, "hello")
	d := receive(t, q, 1)[0]
	if err := q.Settle(testContext(t), d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: &queue.Envelope{Reason: "test"}}); !errors.Is(err, ErrUnroutable) {
		t.Fatal(err)
	}
	other := opened(t, config)
	// q may fetch it again, and give it back when nobody calls Receive: then the lost delivery is noted as a crash.
	if again := receive(t, other, 1)[0]; again.ID != d.ID || again.Attempt+again.Crashes != 2 {
		t.Errorf("%s, attempt %d after %d crashes, want %s, whose first delivery was lost", again.ID, again.Attempt, again.Crashes, d.ID)
	}
}

// An acknowledgement that blocks is not sent a second time: that would end the channel, and with it
// all other deliveries.
func TestAcknowledgedOnce(t *testing.T) {
	t.Parallel()
	q := opened(t, declared(t, Config{}))
	send(t, q, "slow", "other")
	both := receive(t, q, 2)
	s := both[0].Receipt.(*receipt).s
	s.acks.Lock()
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		check.Is(t, q.Settle(ctx, both[0], queue.Settlement{Outcome: queue.Ack}), context.DeadlineExceeded, "Settle")
		cancel()
	}
	s.acks.Unlock()
	settle(t, q, both[0], queue.Settlement{Outcome: queue.Ack})
	settle(t, q, both[1], queue.Settlement{Outcome: queue.Retry})
	if d := receive(t, q, 1)[0]; string(d.Body) != "other" || d.Attempt != 2 || d.Receipt.(*receipt).s != s {
		t.Errorf("%s, attempt %d, on the same channel: %v", d.Body, d.Attempt, d.Receipt.(*receipt).s == s)
	}
}

// Messages that cannot be given back are kept, and the next Receive returns them.
func TestKeptWhereItCannotBeGivenBack(t *testing.T) {
	t.Parallel()
	config := declared(t, Config{})
	q, other := opened(t, config), opened(t, config)
	q.idleTimeout = time.Hour // however long what follows takes here
	send(t, q, "first")
	first := receive10(t, q)
	send(t, q, "1", "2", "3")
	q.await(t, "the others are fetched", func() bool { return len(q.current.prefetched) == 3 })
	shut := func(yes bool) {
		q.pub.mu.Lock()
		q.pub.closed = yes
		q.pub.mu.Unlock()
	}
	shut(true)
	for range 2 {
		must.Succeed(q.Pause(testContext(t), time.Now().Add(time.Minute)))
	}
	shut(false)
	nothing(t, other, 200*time.Millisecond)
	kept := append(receive(t, q, 3), first)
	send(t, q, "new")
	kept = append(kept, receive(t, q, 1)...) // on another channel
	for _, d := range kept {
		check.Equal(t, d.Attempt, 1, "attempt of %s", d.Body)
		settle(t, q, d, queue.Settlement{Outcome: queue.Ack})
	}
	for range 3 {
		send(t, q, "more")
		settle(t, q, receive(t, q, 1)[0], queue.Settlement{Outcome: queue.Ack})
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	check.Equal(t, len(q.sessions), 1, "channels")
}
