package queuetest

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/queue"
)

// slow is a MemoryBroker whose answers take that long.
func slow(answer time.Duration) Target {
	wait := func(ctx context.Context) error {
		select {
		case <-time.After(answer): //clock: run in a bubble
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return memoryTarget(queue.MemoryBrokerConfig{}, func(m *queue.MemoryBroker) *Connection {
		b := &faulty{MemoryBroker: m}
		b.settle = func(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
			if err := wait(ctx); err != nil {
				return err
			}
			return m.Settle(ctx, d, s)
		}
		b.extend = func(ctx context.Context, d *queue.Delivery, lease time.Duration) (time.Time, error) {
			if err := wait(ctx); err != nil {
				return time.Time{}, err
			}
			return m.Extend(ctx, d, lease)
		}
		return &Connection{Broker: b, Sender: m}
	}).withDefaults()
}

// A broker that answers slowly is right. Checks that fail for want of time are repeated with longer leases.
func TestASlowBrokerIsRight(t *testing.T) {
	target := slow(time.Second) // half of a lease of 2 s, less than a quarter of that of 8 s
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.in(t, target, queue.Unordered) })
	}
}

// What fails although everything is in time has failed, once. What fails on a slow machine is repeated, but not for ever.
func TestRepeats(t *testing.T) {
	for _, x := range []struct {
		answer  time.Duration
		repeats int
	}{
		{0, 0},
		{time.Second, 3}, // with leases of 2 and 4 s they are late, with 8 s they are not
		{time.Hour, maxRepeats + 1},
	} {
		r := &recorder{TB: t}
		var leases []time.Duration
		c := check{name: "fails", run: func(b *tester) {
			leases = append(leases, b.o.Lease)
			b.send("hello")
			b.ack(b.receiveOne())
			b.Errorf("wrong")
		}}
		synctest.Test(t, func(t *testing.T) {
			r.run(func(t testing.TB) { c.runTrial(t, slow(x.answer), queue.Unordered) })
		})
		t.Log(r.text())
		if !r.Failed() || len(leases) != max(x.repeats, 1) {
			t.Errorf("answers after %v: failed: %v, leases %v", x.answer, r.Failed(), leases)
		}
		if !strings.Contains(r.text(), "trial_test.go:") {
			t.Errorf("no line of the check in:\n%s", r.text())
		}
	}
}
