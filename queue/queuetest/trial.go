package queuetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lullgo/lull/queue"
)

// maxRepeats is how often a check is repeated, each time with leases that are twice as long.
const maxRepeats = 5

// runTrial runs c as part of t. On a busy machine a lease may lapse without the broker's fault. So a check that fails while calls or
// timers are late has no verdict, and is repeated with longer leases.
func (c check) runTrial(t testing.TB, target Target, order queue.Order) {
	for n := 0; ; n++ {
		r := &recorder{TB: t}
		var b *tester
		r.run(func(t testing.TB) {
			b = newTester(t, target, order)
			context.AfterFunc(b.lateContext, func() {
				time.AfterFunc(10*b.lease, b.giveUp) // what has not come by then will not come: other deliveries may be lost as well
			})
			c.run(b)
		})
		if !r.Failed() || b == nil || b.lateContext.Err() == nil {
			r.reportTo(t)
			return
		}
		if n == maxRepeats {
			t.Logf("leases of %v are too short for this machine", target.Lease)
			r.reportTo(t)
		}
		t.Logf("no verdict, for the machine does not keep up with leases of %v just now:\n%s", target.Lease, r.text())
		target.Lease *= 2
	}
}

// A watch notes whether this process, or a server beside it, was too late for a lease.
type watch struct {
	lease       time.Duration
	lateContext context.Context // ends when late is called
	late        func()          // records that this process or a server was too late
}

func newWatch(lease time.Duration) *watch {
	w := &watch{lease: lease}
	w.lateContext, w.late = context.WithCancel(context.Background())
	return w
}

// watchTimers calls late when a timer is late by a quarter of a lease. Consumers extend a lease when a third of it is over.
func (w *watch) watchTimers() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := w.lease / 16
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-end:
				return
			case <-time.After(tick):
			}
			if time.Since(last) > tick+w.lease/4 {
				w.late()
			}
		}
	}()
	return func() { close(end); <-ended }
}

// answered calls late if a call that began then took a quarter of a lease, or had no answer in time. err is the call's error: calls
// of answered are deferred.
func (w *watch) answered(err *error, began time.Time) {
	if time.Since(began) >= w.lease/4 || errors.Is(*err, context.DeadlineExceeded) || errors.Is(*err, queue.ErrUnanswered) {
		w.late()
	}
}

// watchCalls has w watch the calls over c.
func (w *watch) watchCalls(c *Connection) {
	b := watched{c.Broker, w}
	if p, ok := c.Broker.(queue.Pauser); ok {
		c.Broker = watchedPauser{b, p}
	} else {
		c.Broker = b
	}
	c.Sender = watchedSender{c.Sender, w}
}

type watched struct {
	queue.Broker
	w *watch
}

type watchedPauser struct {
	watched
	p queue.Pauser
}

func (b watchedPauser) Pause(ctx context.Context, until time.Time) error {
	return b.p.Pause(ctx, until)
}

// A receive may wait. But a message that it returns should have most of its lease left.
func (b watched) Receive(ctx context.Context, want queue.Want) ([]*queue.Delivery, error) {
	got, err := b.Broker.Receive(ctx, want)
	for _, d := range got {
		if !d.Lease.IsZero() && time.Until(d.Lease) < want.Lease/4 {
			b.w.late()
		}
	}
	return got, err
}

func (b watched) Settle(ctx context.Context, d *queue.Delivery, s queue.Settlement) (err error) {
	defer b.w.answered(&err, time.Now())
	return b.Broker.Settle(ctx, d, s)
}

func (b watched) Extend(ctx context.Context, d *queue.Delivery, lease time.Duration) (until time.Time, err error) {
	defer b.w.answered(&err, time.Now())
	return b.Broker.Extend(ctx, d, lease)
}

type watchedSender struct {
	queue.Sender
	w *watch
}

func (s watchedSender) Send(ctx context.Context, o queue.Outgoing) (err error) {
	defer s.w.answered(&err, time.Now())
	return s.Sender.Send(ctx, o)
}
