//go:build servers

package lullamqp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/queue"
)

// publish is another producer.
func publish(t testing.TB, ch *amqp.Channel, exchange, key string, m amqp.Publishing) {
	t.Helper()
	must.Succeed(ch.PublishWithContext(testContext(t), exchange, key, true, false, m))
}

// theirs declares a queue of another program, and publishes n numbers into it.
func theirs(t *testing.T, ch *amqp.Channel, args amqp.Table, n int) string {
	t.Helper()
	name := fmt.Sprint("theirs.", names.Add(1))
	must.Have(ch.QueueDeclare(name, true, false, false, false, args))
	t.Cleanup(func() { raw(t).QueueDelete(name, false, false, false) })
	numbered(t, ch, name, n)
	return name
}

// readable waits until a queue has n messages that are ready.
func readable(t *testing.T, ch *amqp.Channel, name string, n int) {
	t.Helper()
	ready := 0
	for end := time.Now().Add(testPatience); ; time.Sleep(5 * time.Millisecond) {
		q := must.Have(ch.QueueDeclarePassive(name, true, false, false, false, nil))
		if ready = q.Messages; ready == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d messages are ready in %s, want %d", ready, name, n)
		}
	}
}

// bury makes dead letters of the queue's messages.
func bury(t testing.TB, q *Broker, n int) {
	t.Helper()
	for _, d := range receive(t, q, n) {
		settle(t, q, d, queue.Settlement{Outcome: queue.DeadLetter})
	}
}

func redriven(t testing.TB, q *Broker, c queue.RedriveConfig) queue.Progress {
	t.Helper()
	from := must.Have(q.Letters(testContext(t)))
	c.Rate = math.Inf(1)
	return must.Have(queue.Redrive(testContext(t), from, q, c, nil))
}

// Messages of a producer that gives no ids, or always the same one, are alike. Each is a message of its own, and a
// redrive moves them all. (What gives a message an id of its own: TestIdentify.)
func TestRule21MessagesThatAreAlike(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "same"} {
		q := opened(t, declared(t, Config{}))
		ch := raw(t)
		const n = 20
		for range n {
			publish(t, ch, "", q.config.Queue, amqp.Publishing{MessageId: id, Body: []byte("{}")})
		}
		readable(t, ch, q.config.Queue, n)
		bury(t, q, n)
		readable(t, ch, q.config.DeadLetters, n)
		check.Equal(t, redriven(t, q, queue.RedriveConfig{}).String(), "moved 20 of 20 (20 seen)", "message-id %q", id)
		for _, d := range receive(t, q, n) {
			settle(t, q, d, queue.Settlement{Outcome: queue.Ack})
		}
		nothing(t, q, 100*time.Millisecond)
	}
}

// A redrive keeps everything that a retry keeps.
func TestRedriveKeepsProperties(t *testing.T) {
	t.Parallel()
	q := opened(t, declared(t, Config{}))
	q.idleTimeout = time.Hour // a consumer that stops costs what it was just handed an attempt
	ch := raw(t)
	sent := amqp.Publishing{
		Headers:     amqp.Table{"tenant": int64(7), "retry-able": true, "args": []any{"a", int32(1)}, "text": "t", "under_score": "u"},
		ContentType: "application/json", ContentEncoding: "gzip", CorrelationId: "c-1", ReplyTo: "answers", Type: "reset", AppId: "shop",
		MessageId: "m-1", Priority: 5, Timestamp: time.Now().Add(-time.Hour).Truncate(time.Second).UTC(), DeliveryMode: amqp.Persistent, Body: []byte(`{}`),
	}
	publish(t, ch, "", q.config.Queue, sent)
	bury(t, q, 1)
	redriven(t, q, queue.RedriveConfig{})
	d := receive(t, q, 1)[0]
	if e, ok := queue.EnvelopeOf(d.Headers); !ok || e.Redrives != 1 || e.OriginalID != "m-1" || d.Attempt != 1 {
		t.Errorf("attempt %d, envelope %+v", d.Attempt, e)
	}
	is := d.Receipt.(*receipt).d
	got := republished(&is, keptHeaders(is.Headers))
	delete(got.Headers, queue.EnvelopeHeader)
	got.Timestamp = got.Timestamp.UTC()
	if !reflect.DeepEqual(got, sent) {
		t.Errorf("redriven:\n%+v\nsent:\n%+v", got, sent)
	}
	settle(t, q, d, queue.Settlement{Outcome: queue.Ack})
}

// Reading letters and leaving them there uses up no limit of a queue that another program declared.
// The reading is refused if it would use one up, or if the limit is not known.
func TestRule21InspectingDoesNotCount(t *testing.T) {
	t.Parallel()
	v := serverVersion(t)
	const n = 5
	ch := raw(t)
	of := func(args amqp.Table) string { return theirs(t, ch, args, n) }
	api := management(t)
	policy := of(amqp.Table{"x-queue-type": "quorum"})
	request(t, http.MethodPut, map[string]any{"pattern": "^" + policy + "$", "definition": map[string]any{"delivery-limit": 3}}, "policies", "/", policy)
	t.Cleanup(func() { request(t, http.MethodDelete, nil, "policies", "/", policy) })
	await(t, "the policy in force", func() bool {
		is, err := api.limit(testContext(t), policy, v)
		return err == nil && is == limit{known: true, n: 3}
	})
	limited := of(amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int64(3)})
	others := of(amqp.Table{
		"x-queue-type": "quorum", "x-delivery-limit": int64(3), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "elsewhere",
		"x-max-length": int64(1000), "x-overflow": "reject-publish", "x-message-ttl": int64(60_000_000),
	})
	none := of(amqp.Table{"x-queue-type": "quorum"})
	c := client(t, rabbit(t).url())
	for _, x := range []struct {
		name, queue string
		api         *Management
		refused     bool // up to 4.2
	}{
		{"a limit", limited, nil, true},
		{"a limit behind other arguments", others, nil, true},
		{"a limit, by the management API", limited, &api, true},
		{"a policy that AMQP does not show", policy, nil, true},
		{"a policy, by the management API", policy, &api, true},
		{"nothing that AMQP shows", none, nil, true},
		{"none, by the management API", none, &api, v.AtLeast(4, 0)},
		{"a limit that is never reached", of(amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int64(1_000_000)}), nil, false},
		{"a classic queue", of(amqp.Table{"x-queue-type": "classic"}), nil, false},
		{"a classic queue that does not say so", of(amqp.Table{"x-max-length": int64(100)}), nil, false},
	} {
		refused := x.refused && !v.AtLeast(4, 3)
		for range 6 { // more often than the limit allows
			from := must.Have(c.Letters(testContext(t), x.queue, LettersConfig{Management: x.api}))
			seen := 0
			_, err := queue.Inspect(testContext(t), from, queue.Filter{}, func(*queue.Letter) (bool, error) { seen++; return true, nil })
			if refused && (!errors.Is(err, ErrCounted) || lull.Classify(err).Kind != lull.KindPermanent || seen > 0) || !refused && (err != nil || seen != n) {
				t.Errorf("%s: %d letters seen, %v; to be refused: %v", x.name, seen, err, refused)
				break
			}
			if refused {
				t.Logf("%s: %v", x.name, err)
				break
			}
			readable(t, ch, x.queue, n)
		}
	}
	// All of them can be moved, though.
	to := declared(t, Config{})
	q := opened(t, to)
	from := must.Have(c.Letters(testContext(t), limited, LettersConfig{}))
	if p, err := queue.Redrive(testContext(t), from, q, queue.RedriveConfig{Rate: math.Inf(1)}, nil); err != nil || p.Moved != n {
		t.Error(p, err)
	}
	readable(t, ch, limited, 0)
	if _, err := c.Letters(testContext(t), "nowhere", LettersConfig{}); lull.Classify(err).Kind != lull.KindPermanent {
		t.Errorf("no queue: %v", err)
	}
	if _, err := raw(t).QueueDeclarePassive("nowhere", true, false, false, false, nil); !answered(err, amqp.NotFound) {
		t.Errorf("a queue was declared: %v", err)
	}
}

// A user who may not configure a queue does not get its arguments.
func TestUncountedWithoutPermission(t *testing.T) {
	t.Parallel()
	request(t, http.MethodPut, map[string]any{"password": "r", "tags": ""}, "users", "reader")
	t.Cleanup(func() { request(t, http.MethodDelete, nil, "users", "reader") })
	request(t, http.MethodPut, map[string]any{"configure": "^$", "write": "^$", "read": ".*"}, "permissions", "/", "reader")
	config := declared(t, Config{})
	c := client(t, fmt.Sprintf("amqp://reader:r@127.0.0.1:%d/", rabbit(t).Port))
	from := must.Have(c.Letters(testContext(t), config.WithDefaults().DeadLetters, LettersConfig{}))
	_, err := queue.Inspect(testContext(t), from, queue.Filter{}, nil)
	check.Equal(t, !serverVersion(t).AtLeast(4, 3), errors.Is(err, ErrCounted), "%v", err)
}

// A reading whose channel is lost continues where it was. Skipped letters are skipped again,
// letters that were sent are removed, and each letter is moved once.
func TestReadingsOutliveTheirChannels(t *testing.T) {
	t.Parallel()
	r := seed.Rand(t)
	q := opened(t, declared(t, Config{}))
	ch := raw(t)
	const n = 60
	for i := range n {
		m := amqp.Publishing{Body: fmt.Append(nil, i), Headers: amqp.Table{"kind": []string{"a", "b"}[i%2]}}
		if i%3 == 0 {
			m = amqp.Publishing{Body: []byte("alike")}
		}
		publish(t, ch, "", q.config.Queue, m)
	}
	readable(t, ch, q.config.Queue, n)
	want, passed := map[string]int{}, 0
	for _, d := range receive(t, q, n) {
		reason := "wanted"
		if r.IntN(3) == 0 {
			reason = "other"
			passed++
		} else {
			want[string(d.Body)]++
		}
		settle(t, q, d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: &queue.Envelope{Reason: reason, OriginalID: d.ID}})
	}
	readable(t, ch, q.config.DeadLetters, n)
	from := must.Have(q.Letters(testContext(t)))
	l := from.(*letters)
	cut := func() {
		for _, each := range l.channels {
			if r.IntN(2) == 0 {
				each.ch.Close()
			}
		}
	}
	p, err := queue.Redrive(testContext(t), from, cutting{q, func() {
		if r.IntN(8) == 0 {
			cut() // the letter is sent, and its removal meets a channel that has ended
		}
	}}, queue.RedriveConfig{Rate: math.Inf(1), Filter: queue.Filter{Reason: "wanted"}}, func(queue.LetterResult) {
		if r.IntN(8) == 0 {
			cut()
		}
	})
	if err != nil || p.Moved != n-passed || p.Seen != n {
		t.Errorf("%v, %v; %d of %d are passed over", p, err, passed, n)
	}
	got := map[string]int{}
	for _, d := range receive(t, q, n-passed) {
		got[string(d.Body)]++
		settle(t, q, d, queue.Settlement{Outcome: queue.Ack})
	}
	nothing(t, q, 100*time.Millisecond)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("moved %v, want %v", got, want)
	}
	readable(t, ch, q.config.DeadLetters, passed)
}

// A letter whose acknowledgement failed at the end of its channel is still there. The reading
// recognises it and removes it. It does not take it for a new letter.
func TestRemovedWhenTheChannelEnds(t *testing.T) {
	t.Parallel()
	q := opened(t, declared(t, Config{}))
	ch := raw(t)
	const n = 3
	numbered(t, ch, q.config.DeadLetters, n)
	from := must.Have(q.Letters(testContext(t)))
	first := must.Have(from.Next(testContext(t), 1))
	h := first[0].Receipt.(*letterReceipt)
	h.d.Acknowledger = unheard{h.channel.ch}
	await(t, "its removal", func() bool { return from.Remove(testContext(t), first[0]) == nil })
	rest, err := from.Next(testContext(t), n)
	if err != nil || len(rest) != n-1 {
		t.Errorf("%d letters besides, %v; want %d", len(rest), err, n-1)
	}
	check.Equal(t, from.Close(testContext(t)), nil, "from.Close(testContext(t))")
	readable(t, ch, q.config.DeadLetters, n-1)
}

// unheard is a channel that the server ends while an acknowledgement is under way.
type unheard struct{ ch *amqp.Channel }

func (u unheard) Ack(uint64, bool) error        { return u.ch.Close() }
func (u unheard) Nack(uint64, bool, bool) error { return u.ch.Close() }
func (u unheard) Reject(uint64, bool) error     { return u.ch.Close() }

// cutting calls cut when it has sent a message.
type cutting struct {
	queue.Sender
	cut func()
}

func (c cutting) Send(ctx context.Context, o queue.Outgoing) error {
	err := c.Sender.Send(ctx, o)
	c.cut()
	return err
}

// deathsMixNothingUp begins a test that goes on when the server was killed and started again: then the caller calls back.
// Readings and workers are killed with many messages out, and others remove some of these
// afterwards. If the server was killed too, the removed messages are gone and the rest is there.
// RabbitMQ before 4.1 gives back the messages of more than 32 consumers of one channel (each
// basic.get is one) in an order that changes when it reads its log after a crash. Then other
// messages are removed than before.
func deathsMixNothingUp(t *testing.T) (back func()) {
	ch := raw(t)
	began := time.Now()
	forLetters, forWorkers := declared(t, Config{}), declared(t, Config{})
	letters, wantLetters := readingDies(t, ch, forLetters)
	messages, wantMessages := workersDie(t, ch, forWorkers)
	// RabbitMQ 3.10 writes its list of queues to the disk three seconds later. If it is killed
	// before, it loses their messages.
	time.Sleep(time.Until(began.Add(6 * time.Second)))
	return func() {
		ch := raw(t)
		for _, x := range []struct {
			name string
			want map[string]int
		}{{letters, wantLetters}, {messages, wantMessages}} {
			q, err := ch.QueueDeclarePassive(x.name, true, false, false, false, nil)
			for end := time.Now().Add(testPatience); (err != nil || q.Messages != len(x.want)) && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				if err != nil {
					ch = raw(t) // the queue has no leader yet
				}
				q, err = ch.QueueDeclarePassive(x.name, true, false, false, false, nil)
			}
			if err != nil || q.Messages != len(x.want) {
				t.Fatalf("%d messages are ready in %s, want %d: %v", q.Messages, x.name, len(x.want), err)
			}
			got := map[string]int{}
			for range x.want {
				d, ok, err := ch.Get(x.name, true)
				if err != nil || !ok {
					t.Fatal(ok, err)
				}
				got[string(d.Body)]++
			}
			if !reflect.DeepEqual(got, x.want) {
				t.Errorf("%s: of %d messages %d are there", x.name, len(x.want), common(got, x.want))
			}
		}
		// RabbitMQ 3.10 stops working if a queue is deleted in the moment in which its dead-lettering
		// starts.
		for _, config := range []Config{forLetters, forWorkers} {
			config = config.WithDefaults()
			publish(t, ch, "", config.Queue, amqp.Publishing{DeliveryMode: amqp.Persistent})
			readable(t, ch, config.Queue, 1)
			d, ok, err := ch.Get(config.Queue, false)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			must.Succeed(d.Nack(false, false))
			readable(t, ch, config.DeadLetters, 1)
		}
	}
}

// numbered publishes n numbers.
func numbered(t *testing.T, ch *amqp.Channel, name string, n int) (sent map[string]int) {
	sent = map[string]int{}
	for i := range n {
		sent[fmt.Sprint(i)] = 1
		publish(t, ch, "", name, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: fmt.Append(nil, i)})
	}
	readable(t, ch, name, n)
	return sent
}

// last publishes one more message, and waits until it is confirmed: then the removals are in the
// queue's log, too.
func last(t *testing.T, name string, want map[string]int) {
	pub := newPublisher(New(Dial(rabbit(t).url())).out)
	must.Succeed(pub.publish(testContext(t), "", name, amqp.Publishing{MessageId: "last", DeliveryMode: amqp.Persistent, Body: []byte("last")}, 0))
	want["last"] = 1
}

func readingDies(t *testing.T, ch *amqp.Channel, config Config) (name string, want map[string]int) {
	const all, removed = 100, 20
	name = config.WithDefaults().DeadLetters
	want = numbered(t, ch, name, all)
	read := func(c *Client, most int) (from queue.DeadLetters, got []*queue.Letter) {
		from, err := c.Letters(testContext(t), name, LettersConfig{})
		for err == nil && len(got) < most {
			var more []*queue.Letter
			more, err = from.Next(testContext(t), 10)
			got = append(got, more...)
		}
		must.Succeed(err)
		return from, got
	}
	killed, client := New(Dial(rabbit(t).url())), New(Dial(rabbit(t).url()))
	read(killed, all)
	killed.in.value.Close() // as if the process had been killed
	readable(t, ch, name, all)
	from, letters := read(client, removed)
	for _, l := range letters {
		must.Succeed(from.Remove(testContext(t), l))
		delete(want, string(l.Body))
	}
	must.Succeed(from.Close(testContext(t)))
	last(t, name, want)
	readable(t, ch, name, len(want))
	return name, want
}

func workersDie(t *testing.T, ch *amqp.Channel, config Config) (name string, want map[string]int) {
	const workers, each, handled = 5, exactConsumers, 15
	want = numbered(t, ch, config.Queue, workers*each)
	var all []*Broker
	for range workers {
		q := opened(t, config)
		all = append(all, q)
		for range each {
			receive(t, q, 1) // and one more each time, so another consumer
		}
	}
	for _, q := range all {
		q.client.in.value.Close()
	}
	readable(t, ch, config.Queue, len(want))
	q := opened(t, config)
	for _, d := range receive(t, q, handled) {
		settle(t, q, d, queue.Settlement{Outcome: queue.Ack})
		delete(want, string(d.Body))
	}
	q.Close(testContext(t))
	last(t, config.Queue, want)
	readable(t, ch, config.Queue, len(want))
	return config.Queue, want
}

// common returns how many keys two maps share.
func common(a, b map[string]int) (n int) {
	for k := range a {
		n += b[k]
	}
	return n
}
