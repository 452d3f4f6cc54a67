package lullnats

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/sleep"
	"github.com/lullgo/lull/queue"
)

// Receive is part of queue.Broker. It asks for messages, for a quarter of a lease or 5 s, whichever
// is less, and returns none if none has come. If ctx ends and the server has not answered, the error has
// queue.ErrUnanswered in it.
//
// It implements the pull protocol itself. Package jetstream's Fetch waits until it has all messages
// that were asked for, and loses those under way when its context ends, which costs them an
// attempt.
func (b *Broker) Receive(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
	err := b.ready(ctx)
	for deadline := time.Now().Add(b.poll()); errors.Is(err, errAway) && time.Now().Before(deadline); err = b.ready(ctx) {
		sleep.For(ctx, 20*time.Millisecond)
	}
	if err == nil {
		err = b.check(ctx)
	}
	if err == nil {
		err = b.refresh(ctx)
	}
	if err != nil {
		return nil, unanswered(ctx, err)
	}
	// This request does not wait for more than there is: it ends after the first messages. The
	// server refuses it when other requests already wait.
	got, err := b.pull(ctx, min(w.Max, b.batch), true)
	if errors.Is(err, errOthers) {
		got, err = b.pull(ctx, 1, false)
	}
	if len(got) > 0 {
		return got, nil
	}
	return nil, err
}

// unanswered returns err, which is no answer of the server, with queue.ErrUnanswered if ctx has ended. If
// err is nil the connection has ended.
func unanswered(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return cmp.Or(err, errEnded)
	}
	return fmt.Errorf("lullnats: %w: %w", queue.ErrUnanswered, cmp.Or(err, ctx.Err()))
}

var errEnded = lull.Transient(fmt.Errorf("lullnats: the connection has ended: %w", queue.ErrUnanswered))

// errOthers is the server's answer if other requests already wait.
var errOthers = errors.New("lullnats: other requests wait for messages")

// maxGap is the pause between messages after which a request is ended.
const maxGap = 20 * time.Millisecond

func (b *Broker) pull(ctx context.Context, n int, noWait bool) (got []*queue.Delivery, err error) {
	inbox := b.nc.NewInbox()
	in := make(chan *nats.Msg, n+16) // messages, and the server's reports about them
	sub, err := b.nc.ChanSubscribe(inbox, in)
	if err != nil {
		return nil, fmt.Errorf("lullnats: %w", err)
	}
	over := false
	defer func() {
		if over {
			sub.Unsubscribe()
		}
	}()
	poll := b.poll()
	request := must.Have(json.Marshal(struct {
		Batch   int           `json:"batch"`
		Expires time.Duration `json:"expires"`
		NoWait  bool          `json:"no_wait,omitempty"`
	}{n, poll, noWait}))
	reconnects := b.nc.Stats().Reconnects
	asked := time.Now()
	if err := b.nc.PublishRequest(b.next, inbox, request); err != nil {
		over = true
		return nil, fmt.Errorf("lullnats: %w", err)
	}
	take := func(m *nats.Msg) {
		if status := m.Header.Get("Status"); status != "" && len(m.Data) == 0 && m.Reply == "" {
			if status != "100" { // 100 is a sign of life
				over, err = true, b.status(ctx, status, m.Header.Get("Description"), len(got))
			}
			return
		}
		d, bad := b.delivery(m, asked)
		if bad != nil {
			err = bad
			return
		}
		got = append(got, d)
		over = over || len(got) == n
	}
	patience, look := time.NewTimer(poll+time.Second), time.Tick(100*time.Millisecond)
	for waiting := true; waiting && !over; {
		select {
		case m := <-in:
			take(m)
			if len(got) > 0 {
				patience.Reset(maxGap)
			}
		case <-patience.C:
			waiting = false
		case <-look:
			// A request ends with its connection.
			waiting = b.nc.IsConnected() && b.nc.Stats().Reconnects == reconnects
		case <-ctx.Done():
			waiting = false
		}
	}
	heard := over
	if !over {
		heard = b.end(ctx, sub)
		for len(in) > 0 {
			take(<-in)
		}
	}
	if len(got) > 0 {
		return got, nil
	}
	if err != nil || !heard {
		return nil, unanswered(ctx, err)
	}
	return nil, ctx.Err()
}

// end takes a request back: the server delivers nothing to an inbox without a listener. When the
// server has answered, all earlier messages have arrived. end reports whether it has answered.
func (b *Broker) end(ctx context.Context, sub *nats.Subscription) bool {
	if sub.Drain() != nil || !b.nc.IsConnected() {
		sub.Unsubscribe()
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return b.nc.FlushWithContext(ctx) == nil
}

func (b *Broker) status(ctx context.Context, code, text string, got int) error {
	switch {
	case got > 0:
		return nil
	case code == "408" && text == "Requests Pending":
		return errOthers
	case code == "404" || code == "408":
		return nil
	case code == "503":
		// Nobody listens: the consumer is gone, or its server is not there yet. The consumer existed
		// when the queue was opened, and may exist again.
		if _, err := b.js.Consumer(ctx, b.c.Stream, b.c.Consumer); absent(err) {
			return fmt.Errorf("lullnats: consumer %s of %s: %w", b.c.Consumer, b.c.Stream, err)
		}
		sleep.For(ctx, 50*time.Millisecond)
		return fmt.Errorf("lullnats: consumer %s of %s: %w", b.c.Consumer, b.c.Stream, nats.ErrNoResponders)
	case code == "400", code == "409" && text == "Consumer is push based":
		return lull.Permanent(fmt.Errorf("lullnats: consumer %s of %s: %s", b.c.Consumer, b.c.Stream, text))
	case code == "409" && (text == "Server Shutdown" || text == "Leadership Change"):
		return nil
	}
	return fmt.Errorf("lullnats: consumer %s of %s: status %s %s", b.c.Consumer, b.c.Stream, code, text)
}
