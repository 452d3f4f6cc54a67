package queuetest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/lullgo/lull/queue"
)

var settleChecks = []check{
	{name: "Settle/ack", run: func(b *tester) { gone(b, queue.Ack) }},
	{name: "Settle/drop", run: func(b *tester) { gone(b, queue.Drop) }},
	{name: "Settle/dead letter", run: deadLetter},
	{name: "Settle/dead letter of a redriven message", run: deadLetterAgain},
	{name: "Settle/twice", run: settleTwice},
	{name: "Settle/once more while it waits", run: settleWaiting},
	{name: "Settle/what was lost, ack", run: func(b *tester) { settleLost(b, queue.Ack) }},
	{name: "Settle/what was lost, retry", run: func(b *tester) { settleLost(b, queue.Retry) }},
	{name: "Settle/what was lost, defer", run: func(b *tester) { settleLost(b, queue.Defer) }},
	{name: "Settle/what was lost, dead letter", run: func(b *tester) { settleLost(b, queue.DeadLetter) }},
	{name: "Settle/what was lost, drop", run: func(b *tester) { settleLost(b, queue.Drop) }},
	{name: "Settle/concurrently", run: settleConcurrently},
	{name: "Pause", run: pause},
}

func gone(b *tester, o queue.MessageOutcome) {
	b.send("hello")
	b.settle(b.Connection, b.receiveOne(), queue.Settlement{Outcome: o})
	b.expectEmpty("after " + o.String())
	b.equal("dead letters", len(b.letters(false)), 0)
}

func deadLetter(b *tester) {
	body := "body \x00\xff"
	headers := queue.Headers{"kind": "test", "text": "ünïcödé \x01", "lines": " a\r\nb: c\n ", "empty": ""}
	b.sendOne(queue.Outgoing{Body: []byte(body), Group: "my-group", Headers: headers})
	d := b.receiveOne()
	at := time.Now().Truncate(time.Millisecond).UTC()
	e := &queue.Envelope{
		Reason: "schema", Code: "bad_field", Errors: []string{"order 1: field x", "field x"}, Attempts: 3,
		FirstFailure: at.Add(-time.Hour), LastFailure: at, Source: "orders", OriginalID: d.ID, Redrives: 2,
		TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
	b.settle(b.Connection, d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: e})
	l := b.letter()
	b.equal("envelope", fmt.Sprintf("%+v", l.Envelope), fmt.Sprintf("%+v", *e))
	b.equal("body", string(l.Body), body)
	b.equal("headers", fmt.Sprintf("%q", l.Headers), fmt.Sprintf("%q", headers))
	if b.can.Order == queue.PerGroup {
		b.equal("group", l.Group, "my-group")
	}
	if !l.Enqueued.IsZero() && (l.Enqueued.Before(at.Add(-2*time.Second)) || l.Enqueued.After(time.Now().Add(2*time.Second))) {
		b.Errorf("it became a dead letter at %v, Enqueued says %v", at, l.Enqueued)
	}
	b.expectEmpty("after a dead letter")
}

// A message that was redriven has an envelope, which that of its next dead letter replaces.
func deadLetterAgain(b *tester) {
	former := envelope("original")
	former.Redrives = 1
	h := queue.LetterHeaders(queue.Headers{"kind": "test"}, former)
	b.sendOne(queue.Outgoing{Body: []byte("hello"), Headers: h})
	d := b.receiveOne()
	if e, ok := queue.EnvelopeOf(d.Headers); !ok || e.OriginalID != "original" {
		b.Errorf("the envelope that was sent came as %q", d.Headers[queue.EnvelopeHeader])
	}
	e := envelope("original")
	e.Redrives, e.Reason = 1, "second"
	b.settle(b.Connection, d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: e})
	l := b.letter()
	b.equal("reason", l.Reason, "second")
	b.equal("redrives", l.Redrives, 1)
	b.equal("header", l.Headers["kind"], "test")
}

// Repeating the same settlement returns nil or ErrLost, a different one ErrLost. Neither changes anything.
func settleTwice(b *tester) {
	for _, first := range []queue.MessageOutcome{queue.Ack, queue.Drop, queue.DeadLetter} {
		b.send(first.String())
		d := b.receiveOne()
		b.settle(b.Connection, d, queue.Settlement{Outcome: first})
		if err := b.trySettle(b.Connection, d, queue.Settlement{Outcome: first}); err != nil && !errors.Is(err, queue.ErrLost) {
			b.Errorf("%v twice says %v, want nil or ErrLost", first, err)
		}
		for _, o := range []queue.MessageOutcome{queue.Retry, queue.Defer} {
			b.expectLost(b.Connection, d, queue.Settlement{Outcome: o}, "after "+first.String())
		}
	}
	b.expectEmpty("what was gone and settled once more")
	b.equal("dead letters", len(b.letters(false)), 1)
}

// A late acknowledgement by the former holder does not take away the message that waits for its next attempt.
func settleWaiting(b *tester) {
	for _, first := range []queue.MessageOutcome{queue.Retry, queue.Defer} {
		for _, second := range []queue.MessageOutcome{queue.Ack, queue.Retry, queue.Defer, queue.Drop} {
			b.send(first.String() + ", " + second.String())
			d := b.receiveOne()
			b.settle(b.Connection, d, queue.Settlement{Outcome: first, After: b.after(200 * time.Millisecond)})
			what := fmt.Sprint(second, " after ", first)
			late := func(when string) {
				err := b.Broker.Settle(b.ctx, d, queue.Settlement{Outcome: second})
				if !errors.Is(err, queue.ErrLost) && (err != nil || second != first) {
					b.Errorf("%s, when %s, says %v, want ErrLost", what, when, err)
				}
			}
			late("it waits")
			again := b.receiveAttempt(what, d, 1+b.price(first))
			late("it is out again")
			b.ack(again)
		}
	}
	b.expectEmpty("after Ack")
}

// A consumer that lost a delivery without noticing changes nothing.
func settleLost(b *tester, o queue.MessageOutcome) {
	b.send("hello")
	slow := b.Connection
	first := b.receiveOne()
	if b.can.Leases {
		b.Connection = b.connect()
	}
	b.letLapse(first)
	d := b.receiveAttempt("after it was lost", first, 2)
	if b.can.Leases {
		b.expectLost(slow, first, queue.Settlement{Outcome: o}, "a delivery that was lost")
	} else if err := slow.Broker.Settle(b.ctx, first, queue.Settlement{Outcome: o, Envelope: envelope(d.ID)}); err == nil {
		b.Errorf("Settle (%v) over a connection that was closed says nil", o)
	}
	b.ack(b.retryAndReceive("after Retry by its holder", d, 3))
	b.expectEmpty("after Ack")
}

func settleConcurrently(b *tester) {
	const n = 30
	for i := range n {
		b.send(strconv.Itoa(i))
	}
	var mu sync.Mutex
	last := map[string]int{}
	var work sync.WaitGroup
	for left := n; left > 0; {
		for _, d := range b.receive(b.Connection, 10) {
			if d.Attempt >= 2 {
				left--
			}
			work.Go(func() {
				mu.Lock()
				last[string(d.Body)] = d.Attempt
				mu.Unlock()
				s := queue.Settlement{Outcome: queue.Retry, After: b.after(50 * time.Millisecond)}
				if d.Attempt >= 2 {
					s = queue.Settlement{Outcome: queue.Ack}
				}
				if b.can.Extends {
					if _, err := b.Broker.Extend(b.ctx, d, b.o.Lease); err != nil {
						b.Errorf("Extend: %v", err)
					}
				}
				if err := b.Broker.Settle(b.ctx, d, s); err != nil {
					b.Errorf("Settle (%v): %v", s.Outcome, err)
				}
			})
		}
	}
	work.Wait()
	b.equal("messages", len(last), n)
	for body, attempt := range last {
		b.equal("the last attempt of message "+body, attempt, 2)
	}
	b.expectEmpty("after Ack")
}

// A pause costs no attempt, does not stop others, and ends with the next Receive.
func pause(b *tester) {
	p, ok := b.Broker.(queue.Pauser)
	if !ok {
		b.Skip("not for this broker: not a Pauser")
	}
	b.send("1", "2", "3")
	left := 3
	d := b.receiveOne()
	for range 2 {
		if err := p.Pause(b.ctx, time.Now().Add(time.Minute)); err != nil {
			b.Fatalf("Pause: %v", err)
		}
	}
	b.ack(d) // what is out can be settled
	left--
	if b.can.Order != queue.Total {
		// What is sent now is for others. (What was fetched ahead may be kept.)
		other := b.connect()
		b.send("new")
		left++
		for found := false; !found; left-- {
			d := b.receive(other, 1)[0]
			found = string(d.Body) == "new"
			b.equal("attempt of a message that another consumer gets", d.Attempt, 1)
			b.settle(other, d, queue.Settlement{Outcome: queue.Ack})
		}
		other.Close()
	}
	time.Sleep(2 * b.o.Lease)
	b.Logf("%d of 3 messages were not for others", left)
	for range left {
		d := b.receiveOne()
		b.equal("attempt after a pause", d.Attempt, 1)
		b.ack(d)
	}
	b.expectEmpty("after Ack")
}
