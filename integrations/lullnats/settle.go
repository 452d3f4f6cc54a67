package lullnats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/sleep"
	"github.com/lullgo/lull/queue"
)

// Texts of acknowledgements. They are sent as requests: the server answers when it has carried them
// out, also those that package jetstream sends without waiting for an answer.
const (
	replyAck      = "+ACK"
	replyProgress = "+WPI"
	replyTerm     = "+TERM "
	replyNak      = "-NAK "
)

// termPrefix begins the reason of a message that was terminated because its dead letter is written.
// The Reaper ignores the server's advisory about it.
const termPrefix = "lull: "

var errReceipt = lull.Permanent(errors.New("lullnats: the delivery is not of this broker"))

// sendReply sends text, one of the texts above, about a delivery that is held, and waits for the answer.
//
// The server looks for the message, and not for the delivery. After a lease has lapsed, it takes the
// text for one from the worker that has the message now, and gives the same answer. So nothing is
// sent once the lease is over, or while there is no connection.
func (b *Broker) sendReply(ctx context.Context, r *receipt, text string) error {
	if err := b.ready(ctx); err != nil {
		return err
	}
	until, err := r.until()
	if err != nil {
		return err
	}
	within, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	_, err = b.nc.RequestWithContext(within, r.reply, []byte(text))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, nats.ErrNoResponders):
		sleep.For(within, 50*time.Millisecond) // until the server is there again
	}
	return fmt.Errorf("lullnats: %s: %w", strings.TrimSpace(text[:4]), err)
}

// Extend is part of queue.Broker. The consumer fixes the length of the lease, whatever is asked
// for.
func (b *Broker) Extend(ctx context.Context, d *queue.Delivery, _ time.Duration) (time.Time, error) {
	r, ok := d.Receipt.(*receipt)
	if !ok {
		return time.Time{}, errReceipt
	}
	if err := b.refresh(ctx); err != nil {
		return time.Time{}, err
	}
	before := time.Now()
	if err := b.sendReply(ctx, r, replyProgress); err != nil {
		return time.Time{}, err
	}
	until := before.Add(b.currentLease())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since, r.lease = before, until
	return until, nil
}

// Settle is part of queue.Broker.
func (b *Broker) Settle(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
	r, ok := d.Receipt.(*receipt)
	if !ok {
		return errReceipt
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := r.until(); err != nil {
		return err
	}
	waits := s.After
	if !b.c.Schedules {
		waits = nakDelay(waits)
	}
	s, err := s.Within(d, waits, MaxDelay, b.c.Source)
	if err != nil {
		return err
	}
	switch s.Outcome {
	case queue.Ack, queue.Drop:
		err = b.sendReply(ctx, r, replyAck)
	case queue.DeadLetter:
		err = b.deadLetter(ctx, d, r, s.Envelope)
	default:
		if b.c.Schedules {
			err = b.putOff(ctx, d, r, s)
		} else {
			err = b.nak(ctx, r, s.After)
		}
	}
	if err == nil {
		b.settle(r)
	}
	return err
}

// nakDelay returns the delay of a nak that keeps a message for d. A server that is restarted keeps
// the time in whole seconds, rounded down. So nakDelay adds a second, except to a delay of less than
// a second: no restart is that short.
func nakDelay(d time.Duration) time.Duration {
	if d >= restartError {
		d += restartError
	}
	return d
}

// nak makes the server keep the message for d.
func (b *Broker) nak(ctx context.Context, r *receipt, d time.Duration) error {
	asked := time.Now()
	if err := b.ready(ctx); err != nil {
		return err
	}
	err := b.sendReply(ctx, r, fmt.Sprintf(`%s{"delay":%d}`, replyNak, nakDelay(d)))
	if err != nil && !errors.Is(err, queue.ErrLost) {
		// The nak may have been carried out. Then another worker may get the message soon.
		r.endBy(asked.Add(d))
	}
	return err
}

// deadLetter writes a dead letter, and then terminates the message.
func (b *Broker) deadLetter(ctx context.Context, d *queue.Delivery, r *receipt, e *queue.Envelope) error {
	if err := b.letter(ctx, b.c, r.origin, r.subject, r.header, d.Body, e); err != nil {
		return err
	}
	return b.sendReply(ctx, r, replyTerm+termPrefix+"dead letter, "+strings.Join(strings.Fields(e.Reason), " "))
}
