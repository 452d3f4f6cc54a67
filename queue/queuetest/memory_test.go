package queuetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// slow is a Memory whose answers take that long.
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
		if !strings.Contains(r.text(), "memory_test.go:") {
			t.Errorf("no line of the check in:\n%s", r.text())
		}
	}
}

// ahead is a Memory of which messages are fetched ahead, as NATS and RabbitMQ do.
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
		// What is sent in the same moment comes along, and not now and then.
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

// held is a Memory without leases, as RabbitMQ has none: what is out is ready again
// when its connection ends.
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
