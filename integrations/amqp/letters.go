package lullamqp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

// DefaultHold is how many letters a reading keeps out.
const DefaultHold = 10_000

// A Reading says how dead letters are read. It is plain, comparable data.
type Reading struct {
	// Hold is the most letters that are kept out, because they were read and not removed. Zero: 10,000.
	Hold int
	// Management is asked for the queue's limit on deliveries, which AMQP does not always show. Nil: AMQP
	// has to do.
	Management *Management
}

// Letters begins a reading of the queue of dead letters with the given name: from the
// oldest on, until there is none, or one that came a minute after the reading began. Letters that are read and not removed are kept
// out until it is closed, at most r.Hold of them, and then put back to where they
// were. Other readers do not see them meanwhile. If the channel is lost (a connection, a server, letters that were
// out for longer than consumer_timeout), the next call opens another, and passes over
// what it knows.
//
// RabbitMQ up to 4.2 counts what is put back, and drops a letter of a quorum queue with
// a limit in the end. So the reading is queue.Counted: queue.Inspect, and a redrive that passes
// letters over, are refused with [ErrCounted] unless the queue has a limit that is never
// reached, as those have that Declare makes, or it is known that there is none.
//
// A letter that the broker wrote itself (the delivery limit, a message that expired) has no
// envelope: its reason is queue.ReasonBroker, its source and time are what RabbitMQ has
// noted in x-death.
func (c *Client) Letters(ctx context.Context, name string, r Reading) (queue.DeadLetters, error) {
	if r.Hold < 0 {
		return nil, fmt.Errorf("Reading.Hold is %d: want a positive number, or 0 for the default of %d", r.Hold, DefaultHold)
	}
	if r.Hold == 0 {
		r.Hold = DefaultHold
	}
	l := &letters{client: c, name: name, reading: r, end: time.Now().Add(time.Minute), out: map[*held]bool{}, known: map[string][]*held{}}
	if err := l.ready(ctx); err != nil {
		return nil, err
	}
	_, err := within(ctx, func() (amqp.Queue, error) {
		return l.ch.QueueDeclarePassive(name, true, false, false, false, nil)
	})
	if err != nil {
		go l.ch.Close()
		return nil, explain("look at the queue "+name, err)
	}
	return l, nil
}

// Letters is Client.Letters for the queue's own dead letters.
func (q *Queue) Letters(ctx context.Context) (queue.DeadLetters, error) {
	return q.client.Letters(ctx, q.config.DeadLetters, Reading{})
}

// letters reads with basic.get, so that it knows when there are no more, and gets no more
// than are asked for.
type letters struct {
	client  *Client
	name    string
	reading Reading
	end     time.Time // what has died after this is not read
	done    bool

	ch     *amqp.Channel
	opened time.Time
	out    map[*held]bool     // what is out with ch
	known  map[string][]*held // what was out with a channel before, and was not met since, by what it is
	ahead  []*held            // met while another was looked for, and not returned yet
}

// held is the receipt of a letter.
type held struct {
	of      *letters
	d       amqp.Delivery
	what    string // all that it is
	removed bool
}

// ready sees that there is a channel. If the former one is lost, what was out with it is in
// the queue again.
func (l *letters) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.ch != nil && !l.ch.IsClosed() {
		return nil
	}
	for h := range l.out {
		l.known[h.what] = append(l.known[h.what], h)
	}
	clear(l.out)
	conn, err := l.client.in.get(ctx)
	if err != nil {
		return err
	}
	ch, err := within(ctx, conn.Channel)
	if err != nil {
		return explain("open a channel", err)
	}
	l.ch, l.opened = ch, time.Now()
	return nil
}

// requeued is how long the server may take to put back what was out with a channel that
// has ended.
const requeued = 5 * time.Second

// get takes the next letter out. again: it was read before. nil: there is none.
func (l *letters) get(ctx context.Context) (h *held, again bool, err error) {
	for {
		if err := l.ready(ctx); err != nil {
			return nil, false, err
		}
		d, err := within(ctx, func() (*amqp.Delivery, error) {
			d, ok, err := l.ch.Get(l.name, false)
			if err != nil || !ok {
				return nil, err
			}
			return &d, nil
		})
		switch {
		case ctx.Err() != nil:
			// The answer is still to come, and would be taken for that of the next call.
			go l.ch.Close()
			return nil, false, ctx.Err()
		case said(err, amqp.NotFound) || said(err, amqp.AccessRefused):
			return nil, false, explain("read "+l.name, err)
		case err != nil:
			return nil, false, lull.Transient(fmt.Errorf("lullamqp: read %s: %w", l.name, temporary(err)))
		case d != nil:
			h, again := l.met(d)
			return h, again, nil
		case len(l.known) == 0 || time.Since(l.opened) > requeued:
			return nil, false, nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// met finds out whether a letter was read before: then it is that. Of several that are the
// same in all it may be any.
func (l *letters) met(d *amqp.Delivery) (h *held, again bool) {
	what := digest(d, true)
	if before := l.known[what]; len(before) > 0 {
		h, again = before[0], true
		if l.known[what] = before[1:]; len(before) == 1 {
			delete(l.known, what)
		}
		h.d = *d
	} else {
		h = &held{of: l, d: *d, what: what}
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
		if len(l.ahead) == 0 && len(l.out)+len(l.known) >= l.reading.Hold {
			if len(out) == 0 {
				return nil, lull.Permanent(queue.ErrTooMany)
			}
			break
		}
		h, err := l.next(ctx)
		switch {
		case err != nil && len(out) > 0:
			return out, nil // the next call will say it
		case err != nil:
			return nil, err
		case h == nil:
			l.done = true
			continue
		}
		letter := l.letter(h)
		if letter.Enqueued.After(l.end) {
			// The clocks that a minute is more than enough for are those of the machines
			// on which messages die. Without an end, a redrive would go round with what dies again at once.
			l.done = true
			continue
		}
		out = append(out, letter)
	}
	if len(out) == 0 {
		return nil, io.EOF
	}
	return out, nil
}

// next is a letter that was not returned before. nil: there is none.
func (l *letters) next(ctx context.Context) (*held, error) {
	if len(l.ahead) > 0 {
		h := l.ahead[0]
		l.ahead = l.ahead[1:]
		return h, nil
	}
	for {
		h, again, err := l.get(ctx)
		if err != nil || h == nil || !again {
			return h, err
		}
	}
}

func (l *letters) letter(h *held) *queue.Letter {
	d := &h.d
	r := recordOf(d.Headers)
	if r.id == "" {
		r.id = identify(d)
	}
	letter := queue.LetterOf(&queue.Delivery{ID: r.id, Enqueued: r.enqueued, Group: r.group, Headers: headersOf(d.Headers), Body: d.Body})
	if death, ok := deathOf(d.Headers); ok {
		// The broker put it here. An envelope in it is of an earlier death.
		letter.Envelope = queue.Envelope{
			Reason: queue.ReasonBroker, Code: death.reason, Source: death.queue, Attempts: r.attempts + max(death.deliveries, 1),
			FirstFailure: r.firstFailed, OriginalID: letter.OriginalID, Redrives: letter.Redrives,
			TraceParent: letter.Headers["traceparent"], TraceState: letter.Headers["tracestate"],
		}
		letter.Enqueued = death.at
	}
	letter.ID = "" // RabbitMQ discards no duplicates, and others may have given one id to many
	letter.Receipt = h
	return letter
}

func (l *letters) Remove(ctx context.Context, letter *queue.Letter) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h, ok := letter.Receipt.(*held)
	if !ok || h.of != l {
		return lull.Permanent(errors.New("lullamqp: the letter is not of this reading"))
	}
	for {
		if h.removed {
			return nil
		}
		if err := l.ready(ctx); err != nil {
			return err
		}
		if l.out[h] {
			break
		}
		// It is in the queue again.
		met, again, err := l.get(ctx)
		switch {
		case err != nil:
			return err
		case met == nil: // it is gone, or out with another reader
			h.removed = true
		case !again:
			l.ahead = append(l.ahead, met)
		}
	}
	_, err := within(ctx, func() (struct{}, error) { return struct{}{}, h.d.Ack(false) })
	if err != nil {
		return lull.Transient(fmt.Errorf("lullamqp: remove a letter from %s: %w", l.name, temporary(err)))
	}
	h.removed = true
	delete(l.out, h)
	return nil
}

func (l *letters) Close(ctx context.Context) error {
	if l.ch.IsClosed() {
		return nil // they are back already
	}
	_, err := within(ctx, func() (struct{}, error) {
		if len(l.out) > 0 {
			// 0 and multiple: all. The end of the channel would do, but counts on more
			// versions.
			if err := l.ch.Nack(0, true, true); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, l.ch.Close()
	})
	if errors.Is(err, amqp.ErrClosed) {
		err = nil
	}
	return err
}
