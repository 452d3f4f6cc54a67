package queue_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// handedOut returns what a queue hands out now: the bodies, in a line, and the deliveries.
func handedOut(t *testing.T, m *queue.MemoryBroker) (bodies string, out []*queue.Delivery) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	out, _ = m.Receive(ctx, queue.Want{Max: 10, Lease: time.Minute})
	for _, d := range out {
		bodies += string(d.Body)
	}
	return bodies, out
}

// Where an order is kept, a message is handed out once the one before it is gone, and a group
// that was empty for a while continues like any other.
func TestMemoryHandsOutTheNextOfAGroup(t *testing.T) {
	for order, groups := range map[queue.Order][]string{queue.PerGroup: {"a"}, queue.Total: {"a", "b"}} {
		bubble(t, func(t *testing.T) {
			m := memory(t, queue.MemoryBrokerConfig{Order: order})
			n := 0
			put := func() {
				n++
				o := queue.Outgoing{Group: groups[n%len(groups)], Body: []byte(fmt.Sprint(n))}
				must.Succeed(m.Send(t.Context(), o))
			}
			next := func(want string) {
				t.Helper()
				got, ds := handedOut(t, m)
				check.Equal(t, got, want, "%v: handed out", order)
				for _, d := range ds {
					must.Succeed(m.Settle(t.Context(), d, queue.Settlement{Outcome: queue.Ack}))
				}
			}
			for range 3 {
				put()
			}
			for _, want := range []string{"1", "2", "3", ""} {
				next(want)
			}
			put()
			next("4")
		})
	}
}

// A message with the ID of another is discarded for as long as MemoryBrokerConfig.Duplicates: five
// minutes if that is zero, and not at all if it is negative.
func TestMemoryDiscardsDuplicates(t *testing.T) {
	for _, c := range []struct {
		config, until time.Duration
	}{
		{0, 5 * time.Minute}, {time.Second, time.Second}, {1, 1}, {-1, 0},
	} {
		bubble(t, func(t *testing.T) {
			m := memory(t, queue.MemoryBrokerConfig{Duplicates: c.config})
			check.Equal(t, m.Capabilities().Deduplicates, c.until > 0, "deduplicates")
			check.Equal(t, m.DeadLetters().Capabilities().Deduplicates, c.until > 0, "deduplicates dead letters")
			put := func(id string, want int) {
				t.Helper()
				must.Succeed(m.Send(t.Context(), queue.Outgoing{ID: id}))
				check.Equal(t, m.Len(), want, "Duplicates %v: messages", c.config)
			}
			put("x", 1)
			put("y", 2)
			put("", 3)
			put("", 4) // without an ID, no message is another's duplicate
			n := 4
			if c.until > 0 {
				put("x", n)
				time.Sleep(c.until - 1)
				put("x", n)
				time.Sleep(time.Nanosecond)
			}
			put("x", n+1)
		})
	}
}

// A delivery comes back when its lease ends, whether others were extended or not.
func TestMemoryHandsOutWhatWasNotExtended(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t, queue.MemoryBrokerConfig{}, "a", "b", "c")
		got, ds := handedOut(t, m)
		check.Equal(t, got, "abc", "handed out")
		must.Have(m.Extend(t.Context(), ds[0], time.Hour))
		time.Sleep(time.Minute)
		got, _ = handedOut(t, m)
		check.Equal(t, got, "bc", "a minute later")
		time.Sleep(59 * time.Minute)
		got, _ = handedOut(t, m)
		check.Equal(t, got, "bca", "an hour later")
	})
}

// What a message costs that is fetched, handled and acknowledged, with a broker that is
// in memory and so costs little itself.
func BenchmarkMessage(b *testing.B) {
	for name, wait := range map[string]bool{"ack": false, "retried": true} {
		b.Run(name, func(b *testing.B) {
			m := memory(b, queue.MemoryBrokerConfig{Limit: 1 << 30})
			body := make([]byte, 100)
			for range b.N {
				m.Send(b.Context(), queue.Outgoing{Body: body})
			}
			p := plain(2)
			p.Backoff.Base = 100 * time.Microsecond
			p.Breaker.Off = wait // or the failures open it
			d := dependency(b, p)
			var left atomic.Int64
			left.Store(int64(b.N))
			ctx, cancel := context.WithCancel(b.Context())
			c := must.Have(queue.New("orders", m, d, func(_ context.Context, m *queue.Message) error {
				if wait && m.Attempt == 1 {
					return lull.Transient(errBlip)
				}
				if left.Add(-1) == 0 {
					cancel()
				}
				return nil
			}, queue.Config{}))
			b.ReportAllocs()
			b.ResetTimer()
			must.Succeed(c.Run(ctx))
		})
	}
}
