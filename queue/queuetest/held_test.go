package queuetest

import (
	"context"
	"sync"
	"time"

	"github.com/lullgo/lull/queue"
)

// held is a MemoryBroker without leases, as in RabbitMQ: what is out is ready again when
// its connection ends.
type held struct {
	*queue.MemoryBroker
	mu     sync.Mutex
	out    map[string]*queue.Delivery
	closed bool
	forget bool // broken: a delivery that was never settled does not count
}

func hold(m *queue.MemoryBroker) *held {
	return &held{MemoryBroker: m, out: map[string]*queue.Delivery{}}
}

func (h *held) Capabilities() queue.Capabilities {
	can := h.MemoryBroker.Capabilities()
	can.Leases, can.Extends, can.MaxLease = false, false, 0
	return can
}

func (h *held) Receive(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
	got, err := h.MemoryBroker.Receive(ctx, queue.Want{Max: w.Max, Lease: 10_000 * time.Hour})
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, d := range got {
		h.out[d.ID] = d
		mine := *d
		mine.Lease = time.Time{}
		got[i] = &mine
		if h.closed {
			h.MemoryBroker.Extend(context.Background(), d, 0)
		}
	}
	return got, err
}

func (h *held) Settle(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	mine := h.out[d.ID]
	if mine == nil || mine.Receipt != d.Receipt {
		return queue.ErrLost
	}
	err := h.MemoryBroker.Settle(ctx, mine, s)
	if err == nil {
		delete(h.out, d.ID)
	}
	return err
}

// end ends the connection.
func (h *held) end() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, d := range h.out {
		if h.forget {
			h.MemoryBroker.Settle(context.Background(), d, queue.Settlement{Outcome: queue.Defer})
		}
		h.MemoryBroker.Extend(context.Background(), d, 0)
	}
	clear(h.out)
	return nil
}

// heldConnection is a connection to m without leases.
func heldConnection(m *queue.MemoryBroker) *Connection {
	h, letters := hold(m), hold(m.DeadLetters())
	return &Connection{
		Broker: h, Sender: h,
		Letters: func(context.Context) (queue.DeadLetters, error) {
			return queue.Scan(letters, queue.ScanConfig{Idle: 100 * time.Millisecond})
		},
		Close: func() error { letters.end(); return h.end() },
	}
}
