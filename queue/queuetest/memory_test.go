package queuetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// memories are the queues in this process, by address.
var memories sync.Map
var addresses atomic.Int64

// memoryTarget is queue.MemoryBroker as a kind of broker; wrap, which may be nil, stands
// before each.
func memoryTarget(c queue.MemoryBrokerConfig, wrap func(*queue.MemoryBroker) *Connection) Target {
	if wrap == nil {
		wrap = func(m *queue.MemoryBroker) *Connection { return &Connection{Broker: m, Sender: m} }
	}
	return Target{
		Virtual: true,
		Orders:  []queue.Order{c.Order},
		Declare: func(t testing.TB, o Options) string {
			m := must.Have(queue.NewMemoryBroker(c))
			address := fmt.Sprint(addresses.Add(1))
			memories.Store(address, m)
			t.Cleanup(func() { memories.Delete(address) })
			return address
		},
		Connect: func(_ context.Context, address string) (*Connection, error) {
			m, ok := memories.Load(address)
			if !ok {
				return nil, errors.New("no such queue")
			}
			x := m.(*queue.MemoryBroker)
			c := wrap(x)
			if c.Letters == nil {
				c.Letters = func(context.Context) (queue.DeadLetters, error) {
					return queue.Scan(x.DeadLetters(), queue.ScanConfig{Lease: 2 * time.Second, Idle: 100 * time.Millisecond})
				}
			}
			if c.Depth == nil {
				c.Depth = func(context.Context) (int, error) { return x.Len(), nil }
			}
			if c.Close == nil {
				c.Close = func() error { return nil }
			}
			return c, nil
		},
	}
}

func TestMemory(t *testing.T) {
	for name, c := range map[string]queue.MemoryBrokerConfig{
		"all":              {},
		"counted defers":   {CountDefers: true},
		"fixed leases":     {FixedLeases: true},
		"longest lease":    {MaxLease: 5 * time.Second},
		"short delays":     {MaxDelay: time.Second},
		"no delays":        {MaxDelay: -1},
		"no deduplication": {Duplicates: -1},
		"groups":           {Order: queue.PerGroup},
		"total":            {Order: queue.Total},
		"like sqs":         {Order: queue.PerGroup, CountDefers: true, MaxLease: 12 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) { Run(t, memoryTarget(c, nil)) })
	}
	t.Run("without leases", func(t *testing.T) { Run(t, memoryTarget(queue.MemoryBrokerConfig{}, heldConnection)) })
	t.Run("without leases, total", func(t *testing.T) {
		Run(t, memoryTarget(queue.MemoryBrokerConfig{Order: queue.Total, CountDefers: true, Duplicates: -1}, heldConnection))
	})
}
