package queuetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/queue"
)

var receiveChecks = []check{
	{name: "Receive/waits", run: receiveWaits},
	{name: "Receive/ends with its context", run: receiveEnds},
	{name: "Receive/ends while messages come", run: receiveEndsOften},
	{name: "Receive/as it was sent", run: receiveAsSent},
	{name: "Receive/any body", run: receiveAnyBody},
	{name: "Receive/out with one only", run: receiveOut},
	{name: "Contexts that have ended change nothing", run: endedContexts},
	{name: "Capabilities", run: capabilities},
}

func (b *tester) sendAfter(d time.Duration, body string) {
	time.Sleep(d)
	if err := b.Sender.Send(b.ctx, queue.Outgoing{Body: []byte(body), Group: "g"}); err != nil {
		b.Errorf("Send: %v", err)
	}
}

// Receive waits for a message, and returns it without waiting for more.
func receiveWaits(b *tester) {
	var sent sync.WaitGroup
	defer sent.Wait()
	began := time.Now()
	sent.Go(func() { b.sendAfter(500*time.Millisecond, "late") })
	d := b.receive(b.Connection, 10)[0]
	if waited := time.Since(began); waited < 500*time.Millisecond {
		b.Errorf("a message came after %v, it was sent after 500ms", waited)
	}
	b.equal("body", string(d.Body), "late")
	b.ack(d)
}

// Receive returns soon after its context has ended, and can be called again.
func receiveEnds(b *tester) {
	for range 3 {
		ctx, cancel := context.WithTimeout(b.ctx, 200*time.Millisecond)
		began := time.Now()
		got, err := b.Broker.Receive(ctx, b.want(1))
		cancel()
		took := time.Since(began)
		if len(got) != 0 {
			b.Fatalf("messages from an empty queue")
		}
		if took > time.Minute {
			b.Errorf("Receive returned %v after its context had ended", took-200*time.Millisecond)
		}
		if err != nil && took >= 200*time.Millisecond && !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("Receive: %v, want nil or the context's error", err)
		}
	}
	b.send("hello")
	b.equal("the next message", string(b.receiveOne().Body), "hello")
}

// A Receive that ends at the moment when a message comes does not hide the message: another Receive returns it soon.
func receiveEndsOften(b *tester) {
	r := seed.Rand(b)
	draw := func(most time.Duration) time.Duration { return time.Duration(r.Int64N(int64(most))) }
	var sent sync.WaitGroup
	defer sent.Wait()
	ended, again := 0, 0
	for range 100 {
		began := time.Now()
		wait := draw(3 * time.Millisecond)
		sent.Go(func() { b.sendAfter(wait, "hello") })
		var got []*queue.Delivery
		for longest := time.Millisecond; len(got) == 0; longest += time.Millisecond {
			ctx, cancel := context.WithTimeout(b.ctx, draw(longest))
			var err error
			got, err = b.Broker.Receive(ctx, b.want(10))
			if b.ctx.Err() != nil || err != nil && ctx.Err() == nil && !b.temporary(err) {
				b.Fatalf("Receive: %v", err)
			}
			cancel()
			if len(got) == 0 {
				ended++
			}
		}
		if took := time.Since(began); b.can.Leases && took >= b.o.Lease {
			b.Errorf("a message came after %v, at attempt %d", took, got[0].Attempt)
		}
		for _, d := range got {
			again += d.Attempt - 1
			b.ack(d)
		}
	}
	b.Logf("Receive ended %d times over 100 messages, which lost %d attempts", ended, again)
	b.expectEmpty("after all were acknowledged")
}

func receiveAsSent(b *tester) {
	sent := queue.Outgoing{
		ID: "my-id-1", Group: "my-group", Body: []byte(`{"order": 1}`),
		Headers: queue.Headers{
			"kind": "order", "Content-Type": "application/json; charset=utf-8", "text": `spaces, "quotes", ünïcödé ☃`, "long": strings.Repeat("x", 1000),
			"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		},
	}
	before := time.Now()
	b.sendOne(sent)
	d := b.receiveOne()
	after := time.Now()
	b.equal("body", string(d.Body), string(sent.Body))
	for name, value := range sent.Headers {
		if d.Headers[name] != value {
			b.Errorf("header %s: %q, want %q", name, d.Headers[name], value)
		}
	}
	b.equal("attempt", d.Attempt, 1)
	if b.can.Order == queue.PerGroup {
		b.equal("group", d.Group, "my-group")
	}
	for what, t := range map[string]time.Time{"Enqueued": d.Enqueued, "FirstSeen": d.FirstSeen} {
		// Servers keep seconds or milliseconds.
		if !t.IsZero() && (t.Before(before.Add(-2*time.Second)) || t.After(after.Add(2*time.Second))) {
			b.Errorf("%s is %v after the message was sent", what, t.Sub(before))
		}
	}
	if !d.FirstFailed.IsZero() {
		b.Errorf("FirstFailed is %v of a message that has not failed", d.FirstFailed)
	}
	if b.can.Leases && !d.Lease.After(before) {
		b.Errorf("its lease lapsed %v before the message was sent", before.Sub(d.Lease))
	}
	if len(d.Headers) < len(sent.Headers) {
		b.Errorf("headers %v", maps.Clone(d.Headers))
	}
	b.ack(d)
}

// A body is bytes: all of them, and any number.
func receiveAnyBody(b *tester) {
	raw := make([]byte, 1024)
	for i := range raw {
		raw[i] = byte(i * 7)
	}
	for what, body := range map[string][]byte{
		"all bytes": raw, "zeros": make([]byte, 10), "64 KiB": []byte(strings.Repeat("0123456789abcdef", 4096)), "base64": []byte("aGVsbG8="), "none": nil,
	} {
		b.sendOne(queue.Outgoing{Body: body})
		d := b.receiveOne()
		if string(d.Body) != string(body) {
			b.Errorf("%s: a body of %d bytes came as %d, or other ones", what, len(body), len(d.Body))
		}
		b.ack(d)
	}
}

// A message that is out is handed out to nobody else.
func receiveOut(b *tester) {
	b.send("hello")
	other := b.connect()
	d := b.receiveOne()
	wait := time.Second
	if b.can.Leases {
		wait = time.Until(d.Lease) - b.o.Lease/10
		defer func() {
			if time.Now().After(d.Lease) {
				b.late()
			}
		}()
	}
	b.expectNothing(other, wait, "a message that is out with another connection")
	b.ack(d)
}

// What is called with a context that has ended changes nothing, and returns its error.
func endedContexts(b *tester) {
	ended, cancel := context.WithCancel(b.ctx)
	cancel()
	wantCanceled := func(what string, err error) {
		if !errors.Is(err, context.Canceled) {
			b.Errorf("%s with a context that has ended says %v", what, err)
		}
	}
	wantCanceled("Send", b.Sender.Send(ended, queue.Outgoing{Body: []byte("never sent"), Group: "g"}))
	b.send("hello")
	got, err := b.Broker.Receive(ended, b.want(10))
	wantCanceled("Receive", err)
	b.equal("messages that it returned", len(got), 0)
	d := b.receiveOne()
	b.equal("message", string(d.Body), "hello")
	b.equal("attempt", d.Attempt, 1)
	if b.can.Extends {
		_, err := b.Broker.Extend(ended, d, b.o.Lease)
		wantCanceled("Extend", err)
	}
	for _, o := range []queue.MessageOutcome{queue.Ack, queue.Drop, queue.Retry, queue.Defer, queue.DeadLetter} {
		wantCanceled(fmt.Sprint("Settle (", o, ")"), b.Broker.Settle(ended, d, queue.Settlement{Outcome: o, Envelope: envelope(d.ID)}))
	}
	b.ack(b.retryAndReceive("after Retry", d, 2))
	b.equal("dead letters", len(b.letters(false)), 0)
	b.expectEmpty("after contexts that had ended")
}

// The capabilities of a broker are possible, and stay the same.
func capabilities(b *tester) {
	can := b.can
	b.equal("Capabilities, asked again", b.Broker.Capabilities(), can)
	b.equal("Capabilities of another connection", b.connect().Broker.Capabilities(), can)
	if can.Extends && !can.Leases {
		b.Errorf("Extends without Leases")
	}
	if can.MaxDelay < 0 || can.MaxLease < 0 {
		b.Errorf("MaxDelay %v, MaxLease %v", can.MaxDelay, can.MaxLease)
	}
	b.Logf("%+v", can)
}
