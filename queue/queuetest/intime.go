package queuetest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/queue"
)

// A watch notes whether this process, or a server beside it, was too late to keep a lease.
type watch struct{ was atomic.Bool }

func (w *watch) late()         { w.was.Store(true) }
func (w *watch) wasLate() bool { return w.was.Load() }

// on returns c with a broker that notes it when a settlement is not answered in time. It may have been carried out, and is
// tried again: then there are two dead letters of one message, which is allowed.
func (w *watch) on(c *Connection) *Connection {
	watched := *c
	watched.Broker = timed{c.Broker, w}
	return &watched
}

type timed struct {
	queue.Broker
	w *watch
}

func (t timed) Settle(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
	err := t.Broker.Settle(ctx, d, s)
	if err != nil && ctx.Err() != nil {
		t.w.late()
	}
	return err
}

// inTime runs a check that has to extend or settle before a lease ends. On a busy machine a process may not run for that
// long: what it sees then is not the broker's fault, and says nothing. It returns without a verdict, and is run once
// more, with a queue of its own and a lease that is twice as long.
func (b *bench) inTime(check func(b *bench, w *watch)) {
	b.Helper()
	const most = 5 // leases: 32 times as long as the first
	for try := range most + 1 {
		if !b.late(check) {
			return
		}
		b.Logf("the machine did not keep up with leases of %v", b.o.Lease)
		if try < most {
			target := b.target
			target.Lease = 2 * b.o.Lease
			b = newBench(b.TB, target, b.o.Order)
		}
	}
	b.Fatalf("leases of %v are too short for this machine", b.o.Lease)
}

// late runs check, and reports whether it was too late.
func (b *bench) late(check func(b *bench, w *watch)) bool {
	b.Helper()
	w := &watch{}
	stop := w.pulse(b.o.Lease)
	defer stop()
	check(b, w)
	return w.wasLate()
}

// pulse notes when a timer is late by a quarter of a lease. Consumers extend theirs when a third of it is over.
func (w *watch) pulse(lease time.Duration) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := lease / 16
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-end:
				return
			case <-time.After(tick):
			}
			if time.Since(last) > tick+lease/4 {
				w.late()
			}
		}
	}()
	return func() { close(end); <-ended }
}
