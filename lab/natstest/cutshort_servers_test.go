//go:build servers

package natstest

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/queue"
)

// bury makes n dead letters.
func (b *bench) bury(n int) {
	b.Helper()
	for i := range n {
		b.send(fmt.Sprint(i))
		d := b.one()
		b.settle(d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: &queue.Envelope{Reason: "x", OriginalID: d.ID}})
	}
}

// When the server is restarted during a reading, all letters are read, or an error says that they are not.
func TestRule24ReadingsAndRestarts(t *testing.T) {
	t.Parallel()
	const all = 60
	for at := 0; at <= 50; at += 10 {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			r := own(t)
			b := newBench(t, r, calm)
			b.bury(all)
			from, err := lullnats.Letters(bg, b.js, b.c)
			b.ok(err)
			var done sync.WaitGroup
			defer done.Wait()
			n := 0
			p, err := queue.Redrive(bg, from, b.sender, queue.RedriveConfig{Rate: math.Inf(1)}, func(queue.LetterResult) {
				if n++; n == at+1 {
					done.Go(func() { r.restart(t) })
				}
			})
			if err == nil && p.Moved != all {
				t.Errorf("%v, and no error", p)
			}
		})
	}
}

// A server that cannot read its files answers that there is no message. That is no end of a reading.
func TestRule24NoMessageIsNoEnd(t *testing.T) {
	t.Parallel()
	const all = 25
	for _, at := range []int{1, 5, all} {
		for _, always := range []bool{false, true} {
			t.Run(fmt.Sprintf("at %d, for ever %t", at, always), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, shared(t), calm)
				b.bury(all)
				nc := b.js.Conn()
				prefix, n := "API."+b.c.Stream, 0
				sub, err := nc.Subscribe(prefix+".>", func(m *nats.Msg) {
					name := strings.TrimPrefix(m.Subject, prefix+".")
					if strings.HasPrefix(name, "STREAM.MSG.GET.") {
						if n++; n == at || n > at && always {
							m.Respond([]byte(`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`))
							return
						}
					}
					if answer, err := nc.Request("$JS.API."+name, m.Data, patience); err == nil {
						m.Respond(answer.Data)
					}
				})
				b.ok(err)
				js, err := jetstream.NewWithAPIPrefix(nc, prefix)
				b.ok(err)
				from, err := lullnats.Letters(bg, js, b.c)
				b.ok(err)
				within := patience
				if always {
					within = 5 * time.Second // it goes on asking until then
				}
				ctx, cancel := context.WithTimeout(bg, within)
				p, err := queue.Inspect(ctx, from, queue.Filter{}, func(*queue.Letter) (bool, error) { return true, nil })
				cancel()
				if always != (err != nil) || !always && p.Seen != all {
					t.Errorf("%v, %v", p, err)
				}
				sub.Unsubscribe()
			})
		}
	}
}

// A Receive that the server has not answered does not report an empty queue.
func TestRule24ReceiveWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	r := own(t)
	b := newBench(t, r, calm)
	receive := func() error {
		ctx, cancel := context.WithTimeout(bg, 300*time.Millisecond)
		defer cancel()
		got, err := b.Receive(ctx, queue.Want{Max: 1, Lease: time.Second})
		if len(got) > 0 {
			t.Errorf("%d messages", len(got))
		}
		return err
	}
	b.until("it answers in time", func() bool { err := receive(); return err == nil || err == context.DeadlineExceeded })
	r.stop()
	check.Is(t, receive(), queue.ErrUnanswered, "a server that is away")
}
