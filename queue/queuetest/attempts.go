package queuetest

import (
	"fmt"
	"time"

	"github.com/lullgo/lull/queue"
)

var attemptChecks = []check{
	{name: "Attempt/rises with Retry", run: attemptRetry},
	{name: "Attempt/and Defer", run: attemptDefer},
	{name: "Attempt/rises when nobody settles", run: attemptLapse},
	{name: "Attempt/over connections", run: attemptReconnect},
	{name: "Attempt/what was lost", run: attemptLosses},
}

var restartChecks = []check{
	{name: "Restart/attempt numbers", run: attemptRestart, restarts: true},
	{name: "Restart/delays and dead letters", run: delayRestart, restarts: true},
}

// attempt takes the next delivery, which must be that attempt of that message.
func (b *bench) attempt(what string, of *queue.Delivery, n int) *queue.Delivery {
	b.Helper()
	d := b.one()
	if d.ID != of.ID {
		b.Errorf("%s: the id is %q, was %q", what, d.ID, of.ID)
	}
	if string(d.Body) != string(of.Body) {
		b.Errorf("%s: the body is %q, was %q", what, clip(d.Body), clip(of.Body))
	}
	for name, value := range of.Headers {
		if d.Headers[name] != value {
			b.Errorf("%s: the header %s is %q, was %q", what, name, d.Headers[name], value)
		}
	}
	if d.Group != of.Group {
		b.Errorf("%s: the group is %q, was %q", what, d.Group, of.Group)
	}
	if d.Attempt != n {
		b.Errorf("%s: attempt %d, want %d", what, d.Attempt, n)
	}
	if !of.Enqueued.IsZero() && !d.Enqueued.Equal(of.Enqueued) {
		b.Errorf("%s: Enqueued is %v later than before", what, d.Enqueued.Sub(of.Enqueued))
	}
	return d
}

func attemptRetry(b *bench) {
	b.send("hello")
	first := b.one()
	b.equal("attempt", first.Attempt, 1)
	failed := time.Now().Add(-time.Hour).Truncate(time.Second)
	var seen time.Time
	d := first
	for n := 2; n <= 6; n++ {
		b.settle(b.Connection, d, queue.Settlement{Outcome: queue.Retry, FirstFailed: failed.Add(time.Duration(n-2) * time.Minute)})
		d = b.attempt("after Retry", first, n)
		if f := d.FirstFailed; !f.IsZero() && !f.Equal(failed) {
			b.Errorf("FirstFailed is %v after that of the first Retry", f.Sub(failed))
		}
		if n > 2 && !d.FirstSeen.Equal(seen) {
			b.Errorf("FirstSeen has moved by %v", d.FirstSeen.Sub(seen))
		}
		seen = d.FirstSeen
	}
	b.ack(d)
	b.empty("after Ack")
}

func attemptDefer(b *bench) {
	b.send("hello")
	first := b.one()
	n := 1
	d := first
	for range 4 {
		b.settle(b.Connection, d, queue.Settlement{Outcome: queue.Defer})
		if !b.can.FreeDefer {
			n++
		}
		d = b.attempt("after Defer", first, n)
	}
	b.settle(b.Connection, d, queue.Settlement{Outcome: queue.Retry})
	n++
	d = b.attempt("after Defer and Retry", first, n)
	b.settle(b.Connection, d, queue.Settlement{Outcome: queue.Defer, After: b.after(100 * time.Millisecond)})
	if !b.can.FreeDefer {
		n++
	}
	d = b.attempt("after Defer, Retry and Defer", first, n)
	b.ack(d)
}

// A delivery that is never settled is an attempt. (That the message comes no earlier
// than its lease lapses is checked by Extend.)
func attemptLapse(b *bench) {
	b.send("hello")
	first := b.one()
	b.lapse(first)
	d := b.attempt("after it was let go of", first, 2)
	if b.can.Leases && time.Now().Before(first.Lease) {
		b.Errorf("it came %v before its lease lapsed", time.Until(first.Lease))
	}
	b.lapse(d)
	d = b.attempt("after it was let go of twice", first, 3)
	b.settle(b.Connection, d, queue.Settlement{Outcome: queue.Retry})
	d = b.attempt("and after Retry", first, 4)
	b.ack(d)
	b.empty("after Ack")
}

// What nobody has settled is told apart from attempts, and counts only as far as a
// settlement says.
func attemptLosses(b *bench) {
	if !b.can.Losses {
		b.Skip("not for this broker: losses are not told")
	}
	b.send("hello")
	first := b.one()
	d := first
	for i, x := range []struct {
		lapses int
		queue.Settlement
		attempt, crashes int // of the next delivery
	}{
		{1, queue.Settlement{Outcome: queue.Defer, Uncount: 1, Crashes: 1}, 1, 1},
		{2, queue.Settlement{Outcome: queue.Defer, Uncount: 2, Crashes: 2, After: b.after(100 * time.Millisecond)}, 1, 2},
		{0, queue.Settlement{Outcome: queue.Retry, Crashes: 2}, 2, 2},
		{1, queue.Settlement{Outcome: queue.Retry, Uncount: 1, Crashes: 7}, 3, 7},
		{2, queue.Settlement{Outcome: queue.Defer}, 5, 0},
	} {
		n, had := d.Attempt, d.Crashes
		for k := range x.lapses {
			b.lapse(d)
			d = b.attempt("lost", first, n+k+1)
		}
		b.equal(fmt.Sprint(i, ": lost"), d.Lost, x.lapses)
		b.equal(fmt.Sprint(i, ": crashes, when lost"), d.Crashes, had)
		b.settle(b.Connection, d, x.Settlement)
		d = b.attempt(fmt.Sprint(i), first, x.attempt)
		b.equal(fmt.Sprint(i, ": crashes"), d.Crashes, x.crashes)
		b.equal(fmt.Sprint(i, ": lost, after it was settled"), d.Lost, 0)
	}
	b.ack(d)
	b.empty("after Ack")
}

func attemptReconnect(b *bench) {
	b.send("hello")
	first := b.one()
	b.settle(b.Connection, first, queue.Settlement{Outcome: queue.Retry, After: b.after(300 * time.Millisecond)})
	b.reconnect() // while it waits
	b.attempt("over connections, after Retry", first, 2)
	b.reconnect() // while it is out
	d := b.attempt("over connections, out with one that ended", first, 3)
	b.settle(b.Connection, d, queue.Settlement{Outcome: queue.Retry})
	b.reconnect() // while it is ready
	d = b.attempt("over connections, ready", first, 4)
	b.ack(d)
}

func (b *bench) restart() {
	b.Helper()
	if b.target.Restart == nil {
		b.Skip("not for this broker: what this broker has is gone when it is restarted, or it cannot be here")
	}
	b.Close()
	b.target.Restart(b.TB)
	b.Connection = b.connect()
}

func attemptRestart(b *bench) {
	b.send("hello")
	first := b.one()
	b.settle(b.Connection, first, queue.Settlement{Outcome: queue.Retry})
	b.restart()
	d := b.attempt("after Retry and a restart of the broker", first, 2)
	b.settle(b.Connection, d, queue.Settlement{Outcome: queue.Defer})
	n := 2
	if !b.can.FreeDefer {
		n++
	}
	d = b.attempt("and Defer", first, n)
	b.settle(b.Connection, d, queue.Settlement{Outcome: queue.Retry})
	d = b.attempt("and Retry", first, n+1)
	b.ack(d)
}

func delayRestart(b *bench) {
	b.send("waits", "dead")
	all := b.all(b.Connection, 1)
	if b.can.Order != queue.Total {
		all = append(all, b.some(b.Connection, 1)...)
	}
	var due time.Time
	waits := 0
	for _, d := range all {
		if string(d.Body) == "dead" {
			b.settle(b.Connection, d, queue.Settlement{Outcome: queue.DeadLetter})
			continue
		}
		due = time.Now().Add(b.after(3 * time.Second))
		b.settle(b.Connection, d, queue.Settlement{Outcome: queue.Retry, After: b.after(3 * time.Second)})
		waits++
	}
	b.restart()
	b.equal("dead letters after a restart", len(b.letters(false)), len(all)-waits)
	if waits > 0 {
		d := b.one()
		if time.Now().Before(due) {
			b.Errorf("after a restart a message came %v early", time.Until(due))
		}
		b.equal("it", string(d.Body), "waits")
		b.equal("its attempt", d.Attempt, 2)
		b.ack(d)
	}
}
