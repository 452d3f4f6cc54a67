package queue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

// deliveries is a broker that counts each delivery, as SQS does.
type deliveries struct{ *queue.Memory }

func (b deliveries) Capabilities() queue.Capabilities {
	c := b.Memory.Capabilities()
	c.FreeDefer, c.Losses = false, false
	return c
}

func (b deliveries) Settle(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
	if s.Outcome == queue.Defer {
		s.Outcome = queue.Retry
	}
	return b.Memory.Settle(ctx, d, s)
}

// A message that its handler defers for ever has crashed nobody: it has used up its attempts where
// each delivery is one, and does not end elsewhere.
func TestDeferredForEver(t *testing.T) {
	for _, attempts := range []int{1, 3} {
		for _, free := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				memory, err := queue.NewMemory(queue.MemoryConfig{})
				must(t, err)
				var b queue.Broker = memory
				if !free {
					b = deliveries{memory}
				}
				p := queue.Policy()
				p.Attempts = attempts
				dep, err := lull.NewDependency("backend", p)
				must(t, err)
				must(t, memory.Send(t.Context(), queue.Outgoing{Body: []byte("x")}))
				runs, reason := 0, ""
				c, err := queue.New("orders", b, dep, func(context.Context, *queue.Message) error {
					runs++
					return queue.DeferFor(errors.New("not yet"), time.Minute)
				}, queue.Config{}, queue.WithObserver(func(_ context.Context, e queue.Event) {
					if e.Outcome == queue.DeadLetter {
						reason = e.Reason
					}
				}))
				must(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				must(t, c.Run(ctx))
				switch {
				case free && (reason != "" || runs < 50):
					t.Errorf("Attempts %d, free deferrals: %d runs, then a dead letter: %q", attempts, runs, reason)
				case !free && (reason != "attempts_exhausted" || runs != attempts):
					t.Errorf("Attempts %d, each delivery counts: %d runs, then a dead letter: %q", attempts, runs, reason)
				}
			})
		}
	}
}
