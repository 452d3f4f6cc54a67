package queuetest

import (
	"errors"
	"sync"
	"time"

	"github.com/lullgo/lull/queue"
)

var extendChecks = []check{
	{name: "Extend/keeps the message", run: extendKeeps},
	{name: "Extend/says what was lost", run: extendLost},
	{name: "Extend/ends when it says", run: extendEnds},
}

func (b *tester) needExtends() {
	b.Helper()
	if !b.can.Extends {
		b.Skip("not for this broker: leases cannot be extended, or there are none")
	}
}

// A lease that is extended in time does not lapse, and the attempt stays.
func extendKeeps(b *tester) {
	b.needExtends()
	b.send("hello")
	d := b.receiveOne()
	other := b.connect()
	var quiet sync.WaitGroup
	end := time.Now().Add(3 * b.o.Lease)
	if limit := b.can.MaxLease; limit > 0 && limit < 4*b.o.Lease {
		end = time.Now().Add(limit - b.o.Lease)
	}
	came := false
	quiet.Go(func() {
		b.receiveFor(other, time.Until(end), func([]*queue.Delivery) (more bool) { came = true; return false })
	})
	var failed error
	for until := d.Lease; failed == nil && time.Now().Before(end); {
		time.Sleep(b.o.Lease / 4)
		before, held := time.Now(), until
		if until, failed = b.Broker.Extend(b.ctx, d, b.o.Lease); failed == nil && !until.After(before) {
			b.Errorf("Extend says until %v before it was called", before.Sub(until))
		}
		if time.Now().After(held) {
			b.late()
		}
	}
	quiet.Wait()
	b.equal("the error of Extend", failed, nil)
	b.equal("a message whose lease is extended came again", came, false)
	b.ack(d)
	b.expectEmpty("after Ack of a message whose lease was extended")
}

func extendLost(b *tester) {
	b.needExtends()
	b.send("hello")
	first := b.receiveOne()
	b.letLapse(first)
	d := b.receiveAttempt("after the lease", first, 2)
	_, err := b.Broker.Extend(b.ctx, first, b.o.Lease)
	if !errors.Is(err, queue.ErrLost) {
		b.Errorf("Extend of a delivery whose message is out with another says %v, want ErrLost", err)
	}
	if _, err := b.Broker.Extend(b.ctx, d, b.o.Lease); err != nil {
		b.Errorf("Extend of the other one: %v", err)
	}
	b.ack(d)
	if _, err := b.Broker.Extend(b.ctx, d, b.o.Lease); !errors.Is(err, queue.ErrLost) {
		b.Errorf("Extend of a delivery that was acknowledged says %v, want ErrLost", err)
	}
}

// The message comes again, but not before the end of the lease that Receive or Extend returned.
func extendEnds(b *tester) {
	b.needExtends()
	b.send("hello")
	first := b.receiveOne()
	time.Sleep(b.o.Lease / 2)
	until, err := b.Broker.Extend(b.ctx, first, b.o.Lease)
	if err != nil {
		b.Fatalf("Extend: %v", err)
	}
	d := b.receiveAttempt("after the lease", first, 2)
	if now := time.Now(); now.Before(until) {
		b.Errorf("the message came %v before the lease ended that Extend said", until.Sub(now))
	} else {
		b.Logf("after the end of a lease: %v", now.Sub(until))
	}
	b.ack(d)
}
