package queuetest

import (
	"context"
	"sync"
	"time"

	"github.com/lullgo/lull/queue"
)

// ahead is a MemoryBroker that fetches messages ahead, as NATS and RabbitMQ do.
type ahead struct {
	*queue.MemoryBroker
	mu   sync.Mutex
	kept []*queue.Delivery

	how queue.MessageOutcome // what a pause does with what is kept; right is Defer
}

func (a *ahead) Receive(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.kept) == 0 {
		got, err := a.MemoryBroker.Receive(ctx, queue.Want{Max: w.Max + 3, Lease: w.Lease})
		if err != nil {
			return nil, err
		}
		// What is sent at the same moment always comes along.
		time.Sleep(time.Millisecond) //clock: run in a bubble
		if rest := w.Max + 3 - len(got); rest > 0 {
			soon, cancel := context.WithTimeout(ctx, time.Millisecond) //clock: run in a bubble
			more, _ := a.MemoryBroker.Receive(soon, queue.Want{Max: rest, Lease: w.Lease})
			cancel()
			got = append(got, more...)
		}
		a.kept = got
	}
	n := min(w.Max, len(a.kept))
	got := a.kept[:n:n]
	a.kept = a.kept[n:]
	for _, d := range got {
		if until, err := a.MemoryBroker.Extend(ctx, d, w.Lease); err == nil { // it may have been here for long
			d.Lease = until
		}
	}
	return got, nil
}

func (a *ahead) Pause(ctx context.Context, _ time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range a.kept {
		if a.how != 0 {
			a.MemoryBroker.Settle(ctx, d, queue.Settlement{Outcome: a.how})
		}
	}
	a.kept = nil
	return nil
}

// aheadConnection is a connection to m that fetches ahead.
func aheadConnection(how queue.MessageOutcome) func(*queue.MemoryBroker) *Connection {
	return func(m *queue.MemoryBroker) *Connection {
		a := &ahead{MemoryBroker: m, how: how}
		return &Connection{Broker: a, Sender: m, Close: func() error {
			a.Pause(context.Background(), time.Time{})
			return nil
		}}
	}
}
