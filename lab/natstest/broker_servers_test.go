//go:build servers

package natstest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/queue"
)

// This is why the Broker returns ErrLost by its own clock. The server takes an acknowledgement from
// a worker that has lost the message, and gives it the same answer as the worker that has it. (If
// this test fails, the server has learnt to distinguish deliveries.)
func TestTheServerCannotTellWhoHasLost(t *testing.T) {
	t.Parallel()
	b := newBench(t, shared(t), short)
	c, err := b.js.Consumer(bg, b.c.Stream, b.c.Consumer)
	b.ok(err)
	b.send("hello")
	slow, err := c.Next(jetstream.FetchMaxWait(patience / 2))
	b.ok(err)
	now, err := c.Next(jetstream.FetchMaxWait(patience / 2))
	b.ok(err)
	at, err := now.Metadata()
	b.ok(err)
	b.equal("deliveries", at.NumDelivered, uint64(2))
	if err := slow.DoubleAck(bg); err != nil {
		t.Errorf("a late acknowledgement: %v", err)
	}
	b.equal("messages after it", b.msgs(b.c.Stream), 0)
	if err := now.DoubleAck(bg); err != nil {
		t.Errorf("that of who has the message: %v", err)
	}
}

// Headers of another publisher are shown if queue.Headers allows their names. All of them go into
// the dead letter, except those that are orders to the server.
func TestHeadersOfOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, shared(t), calm)
	m := &nats.Msg{Subject: b.c.Subject, Data: []byte("hello"), Header: nats.Header{
		"kind": {"a", "b"}, "x_trace": {"t"}, "Nats-Msg-Id": {"mine"}, "Nats-Expected-Stream": {b.c.Stream}, "Nats-Order": {"x"}, "Lull-Moved": {"rubbish"},
	}}
	_, err := b.js.PublishMsg(bg, m)
	b.ok(err)
	d := b.one()
	if len(d.Headers) != 1 || d.Headers["kind"] != "a" || d.Attempt != 1 {
		t.Errorf("headers %v at attempt %d", d.Headers, d.Attempt)
	}
	b.settle(d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: &queue.Envelope{Reason: "x", OriginalID: d.ID}})
	l, err := b.stream(b.c.WithDefaults().DeadLetters).GetMsg(bg, 1)
	b.ok(err)
	if fmt.Sprint(l.Header.Values("kind"), l.Header.Get("x_trace")) != "[a b]t" && l.Header["x_trace"][0] != "t" {
		t.Errorf("the letter has %v", l.Header)
	}
	for name := range l.Header {
		if name == "Lull-Moved" || strings.HasPrefix(name, "Nats-") && name != "Nats-Msg-Id" && name != "Nats-Expected-Stream" {
			t.Errorf("the letter has %s", name)
		}
	}
	b.equal("id of the letter", d.ID+" "+strings.Join(strings.Split(l.Header.Get("Nats-Msg-Id"), ":")[:2], ":"), fmt.Sprintf("mine dead-%s/%s/%s:1", b.c.Stream, b.c.Consumer, b.c.Stream))
	b.equal("stream of the letter", l.Header.Get("Nats-Expected-Stream"), b.c.WithDefaults().DeadLetters)
}

// A message that cannot be sent is refused for good, and nothing is sent.
func TestUnsendable(t *testing.T) {
	t.Parallel()
	b := newBench(t, shared(t), calm)
	for what, o := range map[string]queue.Outgoing{
		"an order to the server":  {Headers: queue.Headers{"Nats-Rollup": "all"}},
		"a header of ours":        {Headers: queue.Headers{"Lull-Moved": "x"}},
		"a name with a colon":     {Headers: queue.Headers{"a:b": "x"}},
		"a name of nothing":       {Headers: queue.Headers{"": "x"}},
		"a value that is no text": {Headers: queue.Headers{"a": "\xff"}},
		"an id with a space":      {ID: "a b"},
		"an id that is too long":  {ID: strings.Repeat("x", 129)},
		"a body that is too long": {Body: make([]byte, 1<<20+1)},
	} {
		err := b.sender.Send(bg, o)
		if v := lull.Classify(err); err == nil || v.Kind != lull.KindPermanent || v.Code == engine.CodeUnclassified {
			t.Errorf("%s: %v (%+v)", what, err, v)
		}
	}
	b.equal("messages", b.msgs(b.c.Stream), 0)
	if _, err := lullnats.NewSender(b.js, "Q", "a..b"); err == nil {
		t.Error("a sender to no subject")
	}
	other, err := lullnats.NewSender(b.js, "OTHER", b.c.Subject)
	b.ok(err)
	if err := other.Send(bg, queue.Outgoing{}); err == nil || lull.Classify(err).Code == engine.CodeUnclassified {
		t.Errorf("into a stream that has not this subject: %v", err)
	}
}

// Without its stream no dead letter is written, and the message stays.
func TestNoStreamForDeadLetters(t *testing.T) {
	t.Parallel()
	b := newBench(t, shared(t), lullnats.Config{Lease: time.Minute})
	b.send("hello")
	b.ok(b.js.DeleteStream(bg, b.c.WithDefaults().DeadLetters))
	d := b.one()
	ctx, cancel := context.WithTimeout(bg, 5*time.Second)
	defer cancel()
	if err := b.Settle(ctx, d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: &queue.Envelope{Reason: "x", OriginalID: d.ID}}); err == nil {
		t.Error("a dead letter into nothing")
	}
	b.equal("messages", b.msgs(b.c.Stream), 1)
	if _, err := lullnats.Letters(bg, b.js, b.c); lull.Classify(err).Kind != lull.KindPermanent {
		t.Errorf("letters of nothing: %v", err)
	}
}

// A consumer that is deleted may be made again: Receive fails until it is there.
func TestConsumerDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t, shared(t), lullnats.Config{Lease: time.Minute})
	deleted := make(chan struct{})
	go func() {
		defer close(deleted)
		time.Sleep(100 * time.Millisecond)
		if err := b.js.DeleteConsumer(bg, b.c.Stream, b.c.Consumer); err != nil {
			t.Error(err)
		}
	}()
	for range 2 { // while it waits, and afterwards
		var err error
		for deadline := time.Now().Add(patience); err == nil && time.Now().Before(deadline); {
			_, err = b.Receive(bg, queue.Want{Max: 1, Lease: time.Minute})
		}
		if v := lull.Classify(err); err == nil || v.Kind == lull.KindPermanent && v.Code != engine.CodeUnclassified {
			t.Errorf("Receive: %v (%+v)", err, v)
		}
		<-deleted
	}
	b.ok(lullnats.Declare(bg, b.js, b.c))
	b.send("hello")
	b.equal("body", string(b.one().Body), "hello")
}

// While the server is away calls return an error, and settle nothing later. Receive works again
// when the server is back.
func TestServerAway(t *testing.T) {
	t.Parallel()
	r := own(t)
	b := newBench(t, r, lullnats.Config{Lease: time.Minute})
	b.send("hello")
	d := b.one()
	r.stop()
	b.until("the connection has noticed", func() bool { return !b.js.Conn().IsConnected() })
	for _, o := range []queue.MessageOutcome{queue.Ack, queue.Retry, queue.Drop} {
		err := b.Settle(bg, d, queue.Settlement{Outcome: o})
		if v := lull.Classify(err); err == nil || errors.Is(err, queue.ErrLost) || v.Code != engine.CodeUnclassified {
			t.Errorf("%v while the server is away: %v (%+v)", o, err, v)
		}
	}
	if err := b.sender.Send(bg, queue.Outgoing{}); err == nil {
		t.Error("sent to nobody")
	}
	received := make(chan error, 1)
	go func() {
		for {
			got, err := b.Receive(bg, queue.Want{Max: 1, Lease: time.Minute})
			if len(got) > 0 {
				received <- nil
				return
			}
			if v := lull.Classify(err); v.Kind == lull.KindPermanent && v.Code != engine.CodeUnclassified && err != nil {
				received <- err
				return
			}
		}
	}()
	must(t, r.start())
	b.until("it is connected", b.js.Conn().IsConnected)
	b.until("what was out can be settled", func() bool { return b.Settle(bg, d, queue.Settlement{Outcome: queue.Ack}) == nil })
	b.equal("messages", b.msgs(b.c.Stream), 0)
	b.send("new")
	if err := <-received; err != nil {
		t.Error(err)
	}
}

// A waiting message counts as out, unless it is scheduled.
func TestOutstanding(t *testing.T) {
	t.Parallel()
	for _, schedules := range []bool{false, true} {
		b := newBench(t, shared(t), lullnats.Config{Lease: patience, Outstanding: 2, Schedules: schedules})
		b.send("1", "2", "3")
		for range 2 {
			b.settle(b.one(), queue.Settlement{Outcome: queue.Retry, After: time.Hour})
		}
		if schedules {
			b.equal("the third", string(b.one().Body), "3")
		} else {
			b.none(time.Second)
		}
		b.equal("messages", b.msgs(b.c.Stream), 3)
	}
}

// If a message is put off, and its acknowledgement is lost, there is one copy in the end.
func TestScheduledTwice(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second
	for _, after := range []time.Duration{5 * lease / 2, 0} { // the message comes before its copy; or it may come after it
		b := newBench(t, shared(t), lullnats.Config{Lease: lease, Schedules: true})
		b.send("hello")
		o := b.over(newProxy(t, b.r.url(), "+ACK", false))
		got := o.one()
		ctx, cancel := context.WithTimeout(bg, 5*time.Second)
		defer cancel()
		if err := o.Settle(ctx, got, queue.Settlement{Outcome: queue.Retry, After: after}); err == nil {
			t.Fatal("an acknowledgement that was cut off")
		}
		b.equal("messages, with the copy", b.msgs(b.c.Stream), 2)
		// The copy and the message come, in any order, or the message alone. The copy is put off
		// for good, and then the message.
		for range 2 - int(min(after, 1)) {
			d := b.one()
			b.equal("attempt", d.Attempt, 2)
			b.settle(d, queue.Settlement{Outcome: queue.Retry, After: time.Hour})
		}
		b.equal("messages", b.msgs(b.c.Stream), 1)
	}
}

// A retry whose answer was lost is not sent again when the message may be another worker's: the
// server would take it for that worker's.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	b := newBench(t, shared(t), lullnats.Config{Lease: time.Minute})
	b.send("hello")
	o := b.over(newProxy(t, b.r.url(), "-NAK", true))
	got := o.one()
	s := queue.Settlement{Outcome: queue.Retry, After: 10 * time.Millisecond}
	ctx, cancel := context.WithTimeout(bg, time.Second)
	defer cancel()
	if err := o.Settle(ctx, got, s); err == nil || errors.Is(err, queue.ErrLost) {
		t.Fatalf("an answer that was cut off: %v", err)
	}
	d := b.one()
	b.equal("attempt", d.Attempt, 2)
	b.until("it is connected again", o.js.Conn().IsConnected)
	check.Is(t, o.Settle(bg, got, s), queue.ErrLost, "the same retry once more")
	b.none(500 * time.Millisecond)
	b.settle(d, queue.Settlement{Outcome: queue.Ack})
}

// The server forgets parts of seconds when it is restarted. No lease ends earlier by that, and no
// message comes earlier.
func TestTimesOverARestart(t *testing.T) {
	t.Parallel()
	r := own(t)
	b := newBench(t, r, lullnats.Config{Lease: 3 * time.Second})
	for round := range 3 {
		b.send("out", "waits")
		due := map[string]time.Time{}
		for range 2 {
			d := b.one()
			if string(d.Body) == "out" {
				until, err := b.Extend(bg, d, time.Second)
				b.ok(err)
				due["out"] = until
				continue
			}
			due["waits"] = time.Now().Add(2500 * time.Millisecond)
			b.settle(d, queue.Settlement{Outcome: queue.Retry, After: 2500 * time.Millisecond})
		}
		r.restart(t)
		b.until("it is connected", b.js.Conn().IsConnected)
		for len(due) > 0 {
			got, err := b.Receive(bg, queue.Want{Max: 1, Lease: time.Second})
			if err != nil || len(got) == 0 {
				continue
			}
			now, body := time.Now(), string(got[0].Body)
			if at := due[body]; at.IsZero() || now.Before(at) {
				t.Errorf("%s came %v early", body, at.Sub(now))
			}
			b.equal("attempt", got[0].Attempt, 2)
			delete(due, body)
			b.settle(got[0], queue.Settlement{Outcome: queue.Ack})
		}
		time.Sleep(time.Duration(round) * 300 * time.Millisecond) // another part of a second
	}
}
