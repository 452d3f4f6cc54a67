package queue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

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
			c, err := queue.New("orders", m, d, func(_ context.Context, m *queue.Message) error {
				if wait && m.Attempt == 1 {
					return lull.Transient(errBlip)
				}
				if left.Add(-1) == 0 {
					cancel()
				}
				return nil
			}, queue.Config{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			if err := c.Run(ctx); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// What the broker's own half of it costs: receive and acknowledge.
func BenchmarkMemory(b *testing.B) {
	m := memory(b, queue.MemoryBrokerConfig{Limit: 1 << 30})
	body := make([]byte, 100)
	for range b.N {
		m.Send(b.Context(), queue.Outgoing{Body: body})
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		got, err := m.Receive(b.Context(), queue.Want{Max: 10, Lease: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		for _, d := range got {
			m.Settle(b.Context(), d, queue.Settlement{Outcome: queue.Ack})
		}
		n += len(got)
	}
}

func BenchmarkEnvelope(b *testing.B) {
	e := full()
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e.Encode()
		}
	})
	text := e.Encode()
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			queue.DecodeEnvelope(text)
		}
	})
}
