//go:build servers

package natstest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/queue"
)

// ackWait changes the consumer's AckWait while it is used.
func (b *bench) ackWait(d time.Duration) {
	b.Helper()
	b.update(b.c.Stream, b.c.Consumer, func(c *jetstream.ConsumerConfig) { c.AckWait = d })
}

// AckWait is made shorter while a handler runs, and the server gives the message to another. The
// first handler's context ends, and an event has the reason. The second one may be lost too: a
// lease is counted from the request for the message, which was before the change.
func TestAckWaitIsMadeShorter(t *testing.T) {
	t.Parallel()
	b := newBench(t, shared(t), lullnats.Config{Lease: patience})
	b.send("hello")
	d, err := lull.NewDependency("ledger", queue.Policy(), lull.WithRand(seed.Source(t)))
	b.ok(err)
	var mu sync.Mutex
	var lost []error
	began, cause := make(chan struct{}, 100), make(chan error, 100)
	q, err := queue.New("orders", b.Broker, d, func(ctx context.Context, m *queue.Message) error {
		began <- struct{}{}
		if m.Attempt > 1 {
			return nil
		}
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil
	}, queue.Config{Lease: patience}, queue.WithObserver(func(_ context.Context, e queue.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind == queue.EventLeaseLost {
			lost = append(lost, e.Err)
		}
	}))
	b.ok(err)
	ctx, cancel := context.WithCancel(bg)
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	<-began
	b.ackWait(2 * time.Second)
	select {
	case err := <-cause:
		if !errors.Is(err, queue.ErrLeaseLost) || !strings.Contains(err.Error(), "AckWait") {
			t.Errorf("the handler's context ended because of %v", err)
		}
	case <-time.After(patience):
		t.Error("the handler's context did not end")
	}
	b.until("it is handled", func() bool { return q.Counts().Acked == 1 })
	cancel()
	b.ok(<-ended)
	if len(lost) == 0 || len(lost) > 2 {
		t.Errorf("events of what was lost: %v", lost)
	}
	for _, err := range lost {
		if !strings.Contains(err.Error(), "AckWait") {
			t.Errorf("a lease was lost because of %v", err)
		}
	}
}

// The same, when another process gets the message: Extend returns an error and does not extend the
// other's lease.
func TestAckWaitIsMadeShorterForAnother(t *testing.T) {
	t.Parallel()
	b := newBench(t, shared(t), lullnats.Config{Lease: patience}) // Extend waits for the server's answer for a twelfth of it
	b.send("hello")
	d := b.one()
	first := b.Broker
	b.ackWait(1500 * time.Millisecond)
	c := b.c
	c.Lease = 0
	var err error
	b.Broker, err = lullnats.Open(bg, b.js, c)
	b.ok(err)
	again := b.one()
	b.equal("attempt", again.Attempt, 2)
	if _, err := first.Extend(bg, d, time.Minute); !errors.Is(err, queue.ErrLost) {
		t.Errorf("Extend of what another has: %v", err)
	}
	<-d.Held.Done()
	if why := context.Cause(d.Held); !strings.Contains(why.Error(), "AckWait of the consumer worker") || !strings.Contains(why.Error(), "1.5s") {
		t.Errorf("it was lost because of %v", why)
	}
	b.ackWait(time.Second)
	b.until("Receive says that no lease is left", func() bool {
		_, err := first.Receive(bg, queue.Want{Max: 1, Lease: time.Second})
		return err != nil && strings.Contains(err.Error(), "AckWait of the consumer worker")
	})
}

// A stream that drops messages before the policy is done with them is a problem, which Check and
// Open report. One that keeps them for long enough is none.
func TestMaxAgeAndThePolicy(t *testing.T) {
	t.Parallel()
	js := shared(t).js(t)
	short := queue.Policy()
	short.HintLimit, short.Attempts, short.AttemptTimeout = time.Second, 3, time.Second
	short.Backoff = backoff.Schedule{Base: time.Second, Cap: 5 * time.Second}
	for _, x := range []struct {
		age    time.Duration
		policy lull.Policy
		want   string
	}{
		{2 * time.Second, short, "MaxAge is 2s: want at least "},
		{time.Hour, lull.Policy{}, "MaxAge is 1h0m0s: want at least 13h"}, // queue.Policy, of which most is HintLimit
		{time.Hour, short, ""},
		{time.Hour, lull.Policy{Attempts: 3, AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout}, "MaxAge is 1h0m0s: want 0, as nothing bounds"},
		{14 * time.Hour, lull.Policy{}, ""},
	} {
		c := fresh(lullnats.Config{MaxAge: x.age, Duplicates: time.Second, Policy: x.policy})
		said := ""
		if err := lullnats.Declare(bg, js, c); err != nil {
			said = err.Error()
		}
		if x.want == "" && said != "" || !strings.Contains(said, x.want) {
			t.Errorf("%v: %q, want %q", x.age, said, x.want)
		}
		_, err := lullnats.Open(bg, js, c)
		check.Equal(t, err != nil, x.want != "", "%v: Open: %v", x.age, err)
		if _, err := js.Stream(bg, c.Stream); errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Error("there is no stream")
		}
	}
}

// mute is a JetStream that answers only the first question about a consumer.
type mute struct {
	jetstream.JetStream
	asked atomic.Int32
}

func (m *mute) Consumer(ctx context.Context, stream, name string) (jetstream.Consumer, error) {
	m.asked.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// Measuring the length of leases costs none of them: Extend and Receive wait for the answer only
// for a moment.
func TestLeasesOutlastALookThatHangs(t *testing.T) {
	t.Parallel()
	const lease = 24 * time.Second
	b := newBench(t, shared(t), lullnats.Config{Lease: lease})
	b.send("hello")
	d := b.one()
	m := &mute{JetStream: b.js}
	q, err := lullnats.Open(bg, m, b.c)
	b.ok(err)
	asked := m.asked.Load()
	ctx, cancel := context.WithTimeout(bg, patience)
	defer cancel()
	b.settle(d, queue.Settlement{Outcome: queue.Defer})
	got, err := q.Receive(ctx, queue.Want{Max: 1, Lease: lease})
	b.ok(err)
	b.equal("messages", len(got), 1)
	for m.asked.Load() == asked && err == nil {
		_, err = q.Extend(ctx, got[0], lease)
	}
	b.ok(err)
	b.ok(q.Settle(ctx, got[0], queue.Settlement{Outcome: queue.Ack}))
}
