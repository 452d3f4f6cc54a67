//go:build servers

package natstest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/queue"
)

// If no message can be had, Receive waits with one request or two and does not ask again and again,
// whatever the reason, and although others ask too.
func TestReceiveDoesNotSpin(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(b *bench){
		"nothing there": func(*bench) {},
		"all that may be outstanding is waiting": func(b *bench) {
			b.send("1", "2", "3", "4", "5")
			for range 2 {
				b.settle(b.one(), queue.Settlement{Outcome: queue.Retry, After: time.Hour})
			}
		},
		"paused at the server": func(b *bench) {
			b.send("1", "2", "3")
			_, err := b.js.PauseConsumer(bg, b.c.Stream, b.c.Consumer, time.Now().Add(time.Hour))
			b.ok(err)
		},
	} {
		b := newBench(t, shared(t), lullnats.Config{Lease: patience, Outstanding: 2})
		prepare(b)
		ctx, cancel := context.WithTimeout(bg, 2*time.Second)
		defer cancel()
		before := b.js.Conn().Stats().OutMsgs
		var calls atomic.Int64
		var work sync.WaitGroup
		for range 4 {
			o, err := lullnats.Open(bg, b.js, b.c)
			b.ok(err)
			work.Go(func() {
				for ctx.Err() == nil {
					calls.Add(1)
					got, err := o.Receive(ctx, queue.Want{Max: 10, Lease: patience})
					if len(got) > 0 || err != nil && ctx.Err() == nil {
						t.Errorf("%s: %d messages, %v", name, len(got), err)
					}
				}
			})
		}
		work.Wait()
		out := b.js.Conn().Stats().OutMsgs - before
		if calls.Load() > 8 || out > 60 {
			t.Errorf("%s: %d calls and %d requests within 2 s", name, calls.Load(), out)
		}
		t.Logf("%s: %d calls and %d requests", name, calls.Load(), out)
	}
}
