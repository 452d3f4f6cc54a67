package lullnats

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/queue"
)

// Headers of the server for scheduled messages.
const (
	scheduleHeader = "Nats-Schedule"
	targetHeader   = "Nats-Schedule-Target"
	laterTTLHeader = "Nats-Schedule-TTL" // Nats-TTL of the message that it becomes
)

// putOff puts a message off. It stores a copy, which the server puts back at its time, and
// acknowledges the old message. A header of the copy has the record.
//
// The copy has an id and a subject that only this message has, and the subject holds one message at
// a time. So if the acknowledgement is lost, and the message comes again and is put off again,
// there is one copy. (If it is acknowledged then instead, the copy still comes.)
func (b *Broker) putOff(ctx context.Context, d *queue.Delivery, r *receipt, s queue.Settlement) error {
	now := time.Now()
	was := moved{
		ID: d.ID, Origin: r.origin, Attempts: max(d.Attempt-s.Uncount, 1), Crashes: s.Crashes, Enqueued: stampOf(d.Enqueued), Ends: stampOf(r.expires),
		Seen: cmp.Or(stampOf(d.FirstSeen), stampOf(now)), Failed: cmp.Or(stampOf(d.FirstFailed), stampOf(s.FirstFailed)),
	}
	if s.Outcome == queue.Defer {
		was.Attempts--
	}
	m := &nats.Msg{Subject: r.subject, Header: keptHeaders(r.header), Data: d.Body}
	m.Header[movedHeader] = []string{was.encode()}
	if live := r.header.Get(jetstream.MsgTTLHeader); live != "" {
		name := choice.Either(s.After > 0, laterTTLHeader, jetstream.MsgTTLHeader)
		if !r.expires.IsZero() {
			seconds := (time.Until(d.Expires) - s.After + time.Second - 1) / time.Second
			live = strconv.FormatInt(int64(max(seconds, 1)), 10)
		}
		m.Header[name] = []string{live}
	}
	name := strconv.FormatUint(r.meta.seq, 10) + "-" + strconv.FormatInt(r.meta.stored.UnixNano(), 36)
	if s.After > 0 {
		ahead, err := b.clock(ctx)
		if err != nil {
			return err
		}
		m.Subject = b.c.LaterSubject + "." + name
		m.Header[scheduleHeader] = []string{"@at " + now.Add(s.After+ahead).UTC().Format(time.RFC3339Nano)}
		m.Header[targetHeader] = []string{r.subject}
	}
	// Do not store a copy when the message may be another worker's.
	until, err := r.until()
	if err != nil {
		return err
	}
	within, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	err = b.publish(within, b.c.Stream, "later-"+b.c.Consumer+"-"+name, m)
	if tooLarge(err) {
		return fmt.Errorf("%w: %w", queue.ErrTooLarge, err)
	}
	if err != nil {
		return err
	}
	return b.sendReply(ctx, r, replyAck)
}

// clockFor is how long a measurement of the server's clock is used.
const clockFor = time.Minute

// clock returns how far the server's clock may be ahead of this one. The value is never too small.
// It is too large by the duration of the answer at most.
func (b *Broker) clock(ctx context.Context) (time.Duration, error) {
	b.mu.Lock()
	ahead, looked := b.clockAhead, b.measured
	b.mu.Unlock()
	if time.Since(looked) < clockFor {
		return ahead, nil
	}
	before := time.Now()
	consumer, err := b.js.Consumer(ctx, b.c.Stream, b.c.Consumer)
	if err != nil {
		return 0, err
	}
	return b.recordClock(before, consumer.CachedInfo().TimeStamp), nil
}

// recordClock records the server's clock. The server read it at some moment since before.
func (b *Broker) recordClock(before, there time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clockAhead, b.measured = there.Sub(before), before
	if there.IsZero() {
		b.clockAhead = 0
	}
	return b.clockAhead
}
