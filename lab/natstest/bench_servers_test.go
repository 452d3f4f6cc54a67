//go:build servers

package natstest

import (
	"testing"
	"time"

	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/queue"
)

// BenchmarkReceive measures the cost of a message, client and server together, one after the other.
func BenchmarkReceive(b *testing.B) {
	for _, x := range []struct {
		name      string
		schedules bool
		outcome   queue.MessageOutcome
	}{
		{"ack", false, queue.Ack},
		{"retry", false, queue.Retry},
		{"retry scheduled", true, queue.Retry},
		{"dead letter", false, queue.DeadLetter},
	} {
		b.Run(x.name, func(b *testing.B) {
			q := newBench(b, shared(b), lullnats.Config{Lease: time.Minute, Schedules: x.schedules, Outstanding: -1})
			for range b.N {
				q.send("hello")
			}
			b.ResetTimer()
			for done := 0; done < b.N; {
				got, err := q.Receive(bg, queue.Want{Max: 10, Lease: time.Minute})
				q.ok(err)
				for _, d := range got {
					s := queue.Settlement{Outcome: x.outcome}
					switch x.outcome {
					case queue.Retry:
						s.After = time.Hour
					case queue.DeadLetter:
						s.Envelope = &queue.Envelope{Reason: "x", OriginalID: d.ID}
					}
					q.settle(d, s)
					done++
				}
			}
		})
	}
}
