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

// Letters begins a reading of the queue of dead letters with the given name: from the
// oldest on, until there is none, or one that came a minute after the reading began. Letters that are read and not removed are kept
// out until it is closed, at most hold of them (zero: 10,000), and then put back to where they
// were; RabbitMQ counts that, but a queue made by Declare has room for a million readings. Other
// readers do not see them meanwhile.
//
// A letter that the broker wrote itself (the delivery limit, a message that expired) has no
// envelope: its reason is queue.ReasonBroker, its source and time are what RabbitMQ has
// noted in x-death.
func (c *Client) Letters(ctx context.Context, name string, hold int) (queue.DeadLetters, error) {
	if hold < 0 {
		return nil, fmt.Errorf("hold is %d: want a positive number, or 0 for the default of %d", hold, DefaultHold)
	}
	if hold == 0 {
		hold = DefaultHold
	}
	conn, err := c.in.get(ctx)
	if err != nil {
		return nil, err
	}
	ch, err := within(ctx, conn.Channel)
	if err != nil {
		return nil, explain("open a channel", err)
	}
	_, err = within(ctx, func() (amqp.Queue, error) {
		return ch.QueueDeclarePassive(name, true, false, false, false, nil)
	})
	if err != nil {
		go ch.Close()
		return nil, explain("look at the queue "+name, err)
	}
	return &letters{ch: ch, name: name, end: time.Now().Add(time.Minute), hold: hold}, nil
}

// Letters is Client.Letters for the queue's own dead letters.
func (q *Queue) Letters(ctx context.Context) (queue.DeadLetters, error) {
	return q.client.Letters(ctx, q.config.DeadLetters, 0)
}

// letters reads with basic.get, so that it knows when there are no more, and gets no more
// than are asked for.
type letters struct {
	ch   *amqp.Channel
	name string
	end  time.Time // what has died after this is not read
	done bool
	hold int
	held int
}

// held is the receipt of a letter.
type held struct {
	of      *letters
	d       amqp.Delivery
	removed bool
}

func (l *letters) Next(ctx context.Context, most int) ([]*queue.Letter, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []*queue.Letter
	for len(out) < max(most, 1) && !l.done {
		if l.held >= l.hold {
			if len(out) == 0 {
				return nil, lull.Permanent(queue.ErrTooMany)
			}
			break
		}
		d, err := within(ctx, func() (*amqp.Delivery, error) {
			d, ok, err := l.ch.Get(l.name, false)
			if err != nil || !ok {
				return nil, err
			}
			return &d, nil
		})
		switch {
		case err != nil && len(out) > 0:
			return out, nil // the next call will say it
		case ctx.Err() != nil:
			// The answer is still to come, and would be taken for that of the next call.
			go l.ch.Close()
			return nil, ctx.Err()
		case err != nil && l.ch.IsClosed():
			return nil, lull.Permanent(fmt.Errorf("lullamqp: read %s: the connection is lost, and what was read is in the queue again: %w", l.name, err))
		case err != nil:
			return nil, explain("read "+l.name, err)
		case d == nil:
			l.done = true
			continue
		}
		l.held++
		letter := l.letter(d)
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

func (l *letters) letter(d *amqp.Delivery) *queue.Letter {
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
	letter.Receipt = &held{of: l, d: *d}
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
	if h.removed {
		return nil
	}
	_, err := within(ctx, func() (struct{}, error) { return struct{}{}, h.d.Ack(false) })
	if err != nil {
		if l.ch.IsClosed() {
			return lull.Permanent(fmt.Errorf("lullamqp: remove a letter from %s: the connection is lost, and the letter is in the queue again: %w", l.name, err))
		}
		return fmt.Errorf("lullamqp: remove a letter from %s: %w", l.name, err)
	}
	h.removed = true
	l.held--
	return nil
}

func (l *letters) Close(ctx context.Context) error {
	if l.ch.IsClosed() {
		return nil // they are back already
	}
	_, err := within(ctx, func() (struct{}, error) {
		if l.held > 0 {
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
