package lullamqp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/sleep"
	"github.com/lullgo/lull/queue"
)

const defaultHold = 10_000

// A LettersConfig configures how dead letters are read. It is plain, comparable data.
type LettersConfig struct {
	// Hold is the most letters that are kept out, because they were read and not removed. Zero:
	// 10,000.
	Hold int
	// Management is asked for the queue's limit on deliveries, which AMQP does not always show.
	// Nil: only AMQP is used.
	Management *Management
}

// Letters begins a reading of the queue of dead letters with the given name: from the oldest letter on, until there are none,
// or only those that died later than a minute after it began. Letters that are read and not removed are kept out until the
// reading is closed, at most LettersConfig.Hold of them. Other readers do not see them meanwhile. If the channel is lost (a connection, a
// server, letters that were out for longer than consumer_timeout), the next call opens another, and skips the letters
// that it knows.
//
// RabbitMQ up to 4.2 counts each letter that is put back, and drops it at its queue's limit. So the reading is
// queue.Counted: queue.Inspect, and a redrive that skips letters, are refused with [ErrCounted], unless the queue has a limit
// that is never reached (as in queues that Declare makes), or is known to have none.
//
// A letter that the broker wrote itself (the delivery limit, a message that expired) has no
// envelope. Its reason is queue.ReasonBroker, and its source and time are those in x-death.
func (c *Client) Letters(ctx context.Context, name string, r LettersConfig) (queue.DeadLetters, error) {
	if r.Hold < 0 {
		return nil, fmt.Errorf("LettersConfig.Hold is %d: want a positive number, or 0 for the default of %d", r.Hold, defaultHold)
	}
	r.Hold = cmp.Or(r.Hold, defaultHold)
	if err := c.queue(ctx, name); err != nil {
		return nil, err
	}
	return &letters{client: c, name: name, reading: r, end: time.Now().Add(time.Minute), out: map[*letterReceipt]bool{}, known: map[string][]*letterReceipt{}}, nil
}

// Letters is Client.Letters for the queue's own dead letters.
func (q *Broker) Letters(ctx context.Context) (queue.DeadLetters, error) {
	return q.client.Letters(ctx, q.config.DeadLetters, LettersConfig{})
}

// letters reads with consumers. Each is cancelled when it has its letters, so that no more letters
// are out than are asked for. Each has a channel of its own.
//
// RabbitMQ before 4.1 loses letters otherwise. When a channel ends that had more than 32 consumers
// (each basic.get is one), their letters go back into a quorum queue in the order of a hash. That
// order changes when the server reads its log after a crash. Then the server assigns other letters
// to the acknowledgements in the log: removed letters are there again, and as many others are gone.
type letters struct {
	client  *Client
	name    string
	reading LettersConfig
	end     time.Time // letters that died after this are not read
	done    bool

	channels   []*consumedLetters
	out        map[*letterReceipt]bool     // letters that are out with the channels
	known      map[string][]*letterReceipt // letters that were out with a lost channel, and have not come again, by their digest
	unreturned []*letterReceipt            // letters that were read and not returned yet: found while looking for another, or more than were wanted
	young      int                         // letters in a row that died after end

	// Letters may be out that nobody has: a channel was given up while the server pushed them.
	closing atomic.Int64 // how many such channels have not ended yet
	back    atomic.Int64 // when the letters of the last are in the queue again, in Unix nanoseconds
}

// consumedLetters are the letters of one consumer, on its channel.
type consumedLetters struct {
	ch       *amqp.Channel
	out      int  // how many of them are out
	lost     bool // with the channel: they are in the queue again
	ackTimes ackTimes
}

type letterReceipt struct {
	of           *letters
	channel      *consumedLetters
	d            amqp.Delivery
	digest       string    // the digest of the whole message
	copyID       string    // the id of its copy in a redrive, the same each time: its own, if it has one
	missingSince time.Time // known: since when it is looked for; zero: not yet
	removed      bool
}

// findLostChannels finds channels that were lost: their letters are in the queue again.
func (l *letters) findLostChannels() {
	l.channels = slices.DeleteFunc(l.channels, func(p *consumedLetters) bool {
		p.lost = p.lost || p.ch.IsClosed()
		return p.lost
	})
	for h := range l.out {
		if h.channel.lost {
			h.missingSince = time.Time{}
			l.known[h.digest] = append(l.known[h.digest], h)
			delete(l.out, h)
		}
	}
}

// requeued is how long the server may take to put back the letters of a channel that has ended.
const requeued = 5 * time.Second

// youngInARow is how many letters that died after the reading began end it.
const youngInARow = 100

const pollInterval = 50 * time.Millisecond

// fetch takes up to n letters out. It returns those that were not read before, and the number of
// all. If all is 0, the queue has none.
func (l *letters) fetch(ctx context.Context, n int) (fresh []*letterReceipt, all int, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	l.findLostChannels()
	conn, err := l.client.in.get(ctx)
	if err != nil {
		return nil, 0, err
	}
	ch, err := callWithin(ctx, conn.Channel)
	if err != nil {
		return nil, 0, explain("open a channel", err)
	}
	now := time.Now()
	for h := range l.missing() {
		if h.missingSince.IsZero() {
			h.missingSince = now
		}
	}
	got, err := l.consume(ctx, ch, n)
	switch {
	case ctx.Err() != nil:
		l.giveUp(conn, ch)
		return nil, 0, ctx.Err()
	case answered(err, amqp.NotFound) || answered(err, amqp.AccessRefused):
		return nil, 0, explain("read "+l.name, err)
	case err != nil:
		l.giveUp(conn, ch)
		return nil, 0, lull.Transient(fmt.Errorf("lullamqp: read %s: %w", l.name, withoutServerMark(err)))
	case len(got) == 0:
		go ch.Close()
		return nil, 0, nil
	}
	l.findLostChannels() // letters of a channel that has ended meanwhile may be among them
	p := &consumedLetters{ch: ch, out: len(got)}
	l.channels = append(l.channels, p)
	for i := range got {
		if h, again := l.register(p, &got[i]); !again {
			fresh = append(fresh, h)
		}
	}
	return fresh, len(got), nil
}

// giveUp closes a channel to which letters may have been pushed. The server puts them back when it has closed it.
// If the connection is lost, that is when the server notices: it looks at each heartbeat, and closes at the second one
// that it has missed.
func (l *letters) giveUp(conn *amqp.Connection, ch *amqp.Channel) {
	l.closing.Add(1)
	go func() {
		defer l.closing.Add(-1)
		wait := requeued
		if ch.Close() != nil || conn.IsClosed() {
			wait += 3 * conn.Config.Heartbeat
		}
		l.back.Store(max(l.back.Load(), time.Now().Add(wait).UnixNano()))
	}()
}

// missing yields the letters that were out and have not come again.
func (l *letters) missing() iter.Seq[*letterReceipt] {
	return func(yield func(*letterReceipt) bool) {
		for _, alike := range l.known {
			for _, h := range alike {
				if !yield(h) {
					return
				}
			}
		}
	}
}

// gone reports whether h is not in the queue: it has been looked for long enough.
func (h *letterReceipt) gone() bool {
	return !h.missingSince.IsZero() && time.Since(h.missingSince) > requeued
}

// consume makes the server push up to n letters, until none is ready.
func (l *letters) consume(ctx context.Context, ch *amqp.Channel, n int) (got []amqp.Delivery, err error) {
	const tag = "lull"
	pushed, err := callWithin(ctx, func() (<-chan amqp.Delivery, error) {
		if err := ch.Qos(n, 0, false); err != nil {
			return nil, err
		}
		return ch.Consume(l.name, tag, false, false, false, false, nil)
	})
	if err != nil {
		return nil, err
	}
	for empty := false; len(got) < n && !empty; {
		// The answer comes after the letters that were pushed before it.
		is, err := callWithin(ctx, func() (amqp.Queue, error) { return ch.QueueDeclarePassive(l.name, true, false, false, false, nil) })
		if err != nil {
			return nil, err
		}
		empty = is.Messages == 0
		patience := time.After(pollInterval)
		for more := true; more && len(got) < n; {
			select {
			case d, ok := <-pushed:
				if !ok {
					return nil, amqp.ErrClosed
				}
				got = append(got, d)
			case <-patience:
				more = false
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	rest, err := callWithin(ctx, func() (rest []amqp.Delivery, err error) {
		if err := ch.Cancel(tag, false); err != nil {
			return nil, err
		}
		for d := range pushed { // those under way
			rest = append(rest, d)
		}
		return rest, nil
	})
	if got = append(got, rest...); len(got) > 0 || err != nil {
		return got, err
	}
	// RabbitMQ reports no messages for a queue that did not answer in time. Only the queue itself answers
	// basic.get. (It refuses if it has a single active consumer.)
	err = runWithin(ctx, func() error {
		d, ok, err := ch.Get(l.name, false)
		if ok {
			got = append(got, d)
		}
		return err
	})
	if answered(err, amqp.ResourceLocked) {
		return nil, nil
	}
	return got, err
}

// register reports whether a letter was read before, and returns its receipt. Of several equal letters
// it may be any.
func (l *letters) register(p *consumedLetters, d *amqp.Delivery) (h *letterReceipt, again bool) {
	what := digest(d, true)
	if before := l.known[what]; len(before) > 0 {
		h, again = before[0], true
		if l.known[what] = before[1:]; len(before) == 1 {
			delete(l.known, what)
		}
		h.d, h.channel = *d, p
	} else {
		h = &letterReceipt{of: l, channel: p, d: *d, digest: what, copyID: cmp.Or(recordOf(d.Headers).id, rand.Text())}
	}
	l.out[h] = true
	return h, again
}

func (l *letters) Next(ctx context.Context, most int) ([]*queue.Letter, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []*queue.Letter
	for len(out) < max(most, 1) && !l.done {
		if len(l.unreturned) == 0 && len(l.out)+len(l.known) >= l.reading.Hold {
			if len(out) == 0 {
				return nil, lull.Permanent(queue.ErrTooMany)
			}
			break
		}
		h, err := l.next(ctx, max(most, 1)-len(out))
		switch {
		case err != nil && len(out) > 0:
			return out, nil // the next call returns the error
		case err != nil:
			return nil, err
		case h == nil:
			l.done = true
			continue
		}
		letter := l.letter(h)
		if died := letter.Enqueued; died.After(l.end) && !died.After(time.Now().Add(time.Minute)) {
			// Without an end, a redrive would never stop if messages die again at once. But a few such letters may be
			// from a machine whose clock is wrong, and others behind them.
			l.young++
			l.done = l.young >= youngInARow
		} else {
			l.young = 0
		}
		out = append(out, letter)
	}
	if len(out) == 0 {
		return nil, io.EOF
	}
	return out, nil
}

// next returns a letter that was not returned before; nil if no letter is left. It fetches about
// as many as are wanted.
func (l *letters) next(ctx context.Context, wanted int) (*letterReceipt, error) {
	for len(l.unreturned) == 0 {
		// If many letters are left where they are, fetch more at a time: otherwise there would be
		// as many channels.
		n := max(wanted, len(l.out)/4)
		fresh, all, err := l.fetch(ctx, max(min(n, l.reading.Hold-len(l.out)-len(l.known), maxPrefetch), 1))
		switch {
		case err != nil:
			return nil, err
		case all > 0:
			l.unreturned = fresh
		case l.settled():
			return nil, nil
		default:
			sleep.For(ctx, pollInterval)
		}
	}
	h := l.unreturned[0]
	l.unreturned = l.unreturned[1:]
	return h, nil
}

// settled reports whether no letter can come any more: all missing ones are gone, and no channel that was given up has any.
func (l *letters) settled() bool {
	if l.closing.Load() > 0 || time.Now().UnixNano() < l.back.Load() {
		return false
	}
	for h := range l.missing() {
		if !h.gone() {
			return false
		}
	}
	return true
}

func (l *letters) letter(h *letterReceipt) *queue.Letter {
	d := &h.d
	r := recordOf(d.Headers)
	if r.id == "" {
		r.id = identify(d)
	}
	letter := queue.LetterOf(&queue.Delivery{ID: r.id, Enqueued: r.enqueued, Group: r.group, Headers: headersOf(d.Headers), Body: d.Body})
	if death, ok := deathOf(d.Headers); ok {
		// The broker put it here. An envelope in it is from an earlier death.
		letter.Envelope = queue.Envelope{
			Reason: queue.ReasonBroker, Code: death.reason, Source: death.queue, Attempts: r.attempts + max(death.deliveries, 1),
			FirstFailure: r.firstFailed, OriginalID: letter.OriginalID, Redrives: letter.Redrives,
			TraceParent: letter.Headers["traceparent"], TraceState: letter.Headers["tracestate"],
		}
		letter.Enqueued = death.at
	}
	letter.ID = "" // RabbitMQ discards no duplicates, and other senders may give one id to many
	letter.Receipt = h
	return letter
}

func (l *letters) Remove(ctx context.Context, letter *queue.Letter) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h, ok := letter.Receipt.(*letterReceipt)
	if !ok || h.of != l {
		return lull.Permanent(errors.New("lullamqp: the letter is not of this reading"))
	}
	for {
		if h.removed {
			return nil
		}
		l.findLostChannels()
		if l.out[h] {
			break
		}
		// It is in the queue again.
		fresh, all, err := l.fetch(ctx, min(max(len(l.known), 1), maxPrefetch))
		if err != nil {
			return err
		}
		l.unreturned = append(l.unreturned, fresh...)
		switch {
		case all > 0:
		case h.gone():
			l.recordRemoved(h) // removed, or out with another reader
		default:
			sleep.For(ctx, pollInterval)
		}
	}
	err := runWithin(ctx, func() error {
		if err := h.d.Ack(false); err != nil {
			return err
		}
		// The server answers any request after it has read the acknowledgement. A channel that the
		// server has ended returns an error.
		return h.channel.ch.Qos(1, 0, false)
	})
	if err != nil {
		return lull.Transient(fmt.Errorf("lullamqp: remove a letter from %s: %w", l.name, withoutServerMark(err)))
	}
	h.removed = true
	h.channel.ackTimes.note(time.Now())
	delete(l.out, h)
	h.channel.out--
	l.closeEmpty(ctx)
	return nil
}

// recordRemoved records that h, which is missing, was removed.
func (l *letters) recordRemoved(h *letterReceipt) {
	h.removed = true
	alike := slices.DeleteFunc(l.known[h.digest], func(each *letterReceipt) bool { return each == h })
	if l.known[h.digest] = alike; len(alike) == 0 {
		delete(l.known, h.digest)
	}
}

// closeEmpty closes the channels without letters, once all acknowledgements on them have been
// carried out.
func (l *letters) closeEmpty(ctx context.Context) {
	l.channels = slices.DeleteFunc(l.channels, func(p *consumedLetters) bool {
		if p.out > 0 || p.ackTimes.keepOpen(time.Now()) > 0 {
			return false
		}
		runWithin(ctx, p.ch.Close) // the server has read it
		return true
	})
}

func (l *letters) Close(ctx context.Context) error {
	var problems []error
	for _, p := range l.channels {
		sleep.For(ctx, p.ackTimes.keepOpen(time.Now()))
		if p.ch.IsClosed() {
			continue // they are back already
		}
		err := runWithin(ctx, func() error {
			// 0 and multiple: all letters. Closing the channel would do, but counts on more
			// versions.
			if err := p.ch.Nack(0, true, true); err != nil {
				return err
			}
			return p.ch.Close()
		})
		if err != nil && !p.ch.IsClosed() { // else they are back, too
			problems = append(problems, err)
		}
	}
	l.channels = nil
	return errors.Join(problems...)
}
