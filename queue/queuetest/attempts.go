package queuetest

import (
	"fmt"
	"time"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/queue"
)

// unsettled is the step of a delivery that nobody settles.
var unsettled deliveryStep

var attemptChecks = []check{
	{name: "Attempt/rises with Retry", run: func(b *tester) { b.checkAttempts(retry(1), retry(2), retry(3), retry(4), retry(5)) }},
	{name: "Attempt/and Defer", run: func(b *tester) {
		b.checkAttempts(deferral, deferral, deferral, deferral, retry(0), deliveryStep{Settlement: queue.Settlement{Outcome: queue.Defer, After: 100 * time.Millisecond}})
	}},
	{name: "Attempt/rises when nobody settles", run: func(b *tester) { b.checkAttempts(unsettled, unsettled, retry(0)) }},
	{name: "Attempt/over connections", run: func(b *tester) { // while it waits, is out, and is ready
		waits := queue.Settlement{Outcome: queue.Retry, After: 300 * time.Millisecond}
		b.checkAttempts(deliveryStep{waits, b.reconnect}, deliveryStep{then: b.reconnect}, deliveryStep{retry(0).Settlement, b.reconnect})
	}},
	{name: "Attempt/what was lost", run: attemptLosses},
}

// A deliveryStep settles a delivery, unless its Settlement is zero, and then calls then, if it is not nil.
type deliveryStep struct {
	queue.Settlement
	then func()
}

// retry is a step in which the message fails. FirstFailed is an hour ago, plus minutes.
func retry(minutes int) deliveryStep {
	failed := time.Now().Add(time.Duration(minutes-60) * time.Minute).Truncate(time.Second)
	return deliveryStep{Settlement: queue.Settlement{Outcome: queue.Retry, FirstFailed: failed}}
}

var deferral = deliveryStep{Settlement: queue.Settlement{Outcome: queue.Defer}}

// checkAttempts takes a message through steps. After each it must come unchanged, with what queue.Broker says of its counts.
func (b *tester) checkAttempts(steps ...deliveryStep) {
	b.Helper()
	b.send("hello")
	first := b.receiveOne()
	b.equal("attempt", first.Attempt, 1)
	d, n, lost, crashes := first, 1, 0, 0
	var failed time.Time
	for i, s := range steps {
		what := fmt.Sprintf("after step %d", i+1)
		lease, seen := d.Lease, d.FirstSeen
		switch {
		case s.Outcome != 0:
			s.After = b.after(s.After)
			b.settle(b.Connection, d, s.Settlement)
			lost, crashes = 0, s.Crashes
			n += b.price(s.Outcome) - s.Uncount
			if failed.IsZero() {
				failed = s.FirstFailed
			}
		default:
			n++
			lost++
			if s.then == nil {
				b.letLapse(d)
			}
		}
		if s.then != nil {
			s.then()
		}
		d = b.receiveAttempt(what, first, n)
		if s.Outcome == 0 && b.can.Leases && time.Now().Before(lease) {
			b.Errorf("%s: it came %v before its lease lapsed", what, time.Until(lease))
		}
		if f := d.FirstFailed; !f.IsZero() && !f.Equal(failed) {
			b.Errorf("%s: FirstFailed is %v after that of the first Retry", what, f.Sub(failed))
		}
		if i > 0 && !seen.IsZero() && !d.FirstSeen.Equal(seen) {
			b.Errorf("%s: FirstSeen has moved by %v", what, d.FirstSeen.Sub(seen))
		}
		if b.can.Losses {
			b.equal(what+": lost", d.Lost, lost)
			b.equal(what+": crashes", d.Crashes, crashes)
		}
	}
	b.ack(d)
	b.expectEmpty("after Ack")
}

// receiveAttempt takes the next delivery, which must be that attempt of that message.
func (b *tester) receiveAttempt(what string, of *queue.Delivery, n int) *queue.Delivery {
	d := b.receiveOne()
	b.equal(what+": id", d.ID, of.ID)
	b.equal(what+": body", clip(d.Body), clip(of.Body))
	for name, value := range of.Headers {
		b.equal(what+": header "+name, d.Headers[name], value)
	}
	b.equal(what+": group", d.Group, of.Group)
	b.equal(what+": attempt", d.Attempt, n)
	if !of.Enqueued.IsZero() && !d.Enqueued.Equal(of.Enqueued) {
		b.Errorf("%s: Enqueued is %v later than before", what, d.Enqueued.Sub(of.Enqueued))
	}
	return d
}

// Deliveries that nobody settled count as attempts, unless a settlement uncounts them.
func attemptLosses(b *tester) {
	if !b.can.Losses {
		b.Skip("not for this broker: it does not count losses")
	}
	settled := func(s queue.Settlement) deliveryStep { return deliveryStep{Settlement: s} }
	b.checkAttempts(
		unsettled, settled(queue.Settlement{Outcome: queue.Defer, Uncount: 1, Crashes: 1}),
		unsettled, unsettled, settled(queue.Settlement{Outcome: queue.Defer, Uncount: 2, Crashes: 2, After: 100 * time.Millisecond}),
		settled(queue.Settlement{Outcome: queue.Retry, Crashes: 2}),
		unsettled, settled(queue.Settlement{Outcome: queue.Retry, Uncount: 1, Crashes: 7}),
		unsettled, unsettled, deferral,
	)
}

// restarted has the server restarted while one message waits, one is ready, and one is a dead letter.
func restarted(b *tester) {
	if b.target.Restart == nil {
		b.Skip("not for this broker: it loses its messages when it is restarted, or cannot be restarted here")
	}
	b.send("waits", "ready", "dead")
	n := choice.Either(b.can.Order == queue.Total, 1, 3) // which waits for the first
	var due time.Time
	for _, d := range b.receiveAll(b.Connection, n) {
		s := queue.Settlement{Outcome: queue.Retry}
		switch string(d.Body) {
		case "dead":
			s.Outcome = queue.DeadLetter
		case "waits":
			s.After = b.after(3 * time.Second)
			due = time.Now().Add(s.After)
		}
		b.settle(b.Connection, d, s)
	}
	b.Close()
	b.target.Restart(b.TB)
	b.Connection = b.connect()
	b.equal("dead letters after a restart", len(b.letters(false)), n/3)
	var waits *queue.Delivery
	for range min(n, 2) {
		d := b.receiveOne()
		b.equal("attempt after a restart: "+string(d.Body), d.Attempt, 2)
		if string(d.Body) == "ready" {
			b.ack(d)
			continue
		}
		if waits = d; time.Now().Before(due) {
			b.Errorf("after a restart a message came %v early", time.Until(due))
		}
	}
	b.settle(b.Connection, waits, queue.Settlement{Outcome: queue.Defer})
	n = 2 + b.price(queue.Defer)
	d := b.receiveAttempt("after a restart and Defer", waits, n)
	b.ack(b.retryAndReceive("and Retry", d, n+1))
}
