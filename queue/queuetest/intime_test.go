package queuetest

import (
	"context"
	"testing"
	"time"

	"github.com/lullgo/lull/queue"
)

// A broker that answers slowly is right. Checks that count what was settled use a longer lease then.
func TestASlowBrokerIsRight(t *testing.T) {
	target := memoryTarget(queue.MemoryConfig{}, func(m *queue.Memory) *Connection {
		b := &faulty{Memory: m}
		b.settle = func(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
			select {
			case <-time.After(time.Second): // more than a sixth of a lease of 2 s, less than that of 8 s
				return m.Settle(ctx, d, s)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return &Connection{Broker: b, Sender: m}
	}).withDefaults()
	for _, c := range checks() {
		switch c.name {
		case "Consumer/a terminal error at once", "Redrive/all":
			t.Run(c.name, func(t *testing.T) { c.in(t, target, queue.Unordered) })
		}
	}
}
