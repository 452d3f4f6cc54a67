package lullamqp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

// publisher publishes for one queue, each message mandatory and confirmed. It has a channel of its
// own: an error of the channel, such as an exchange that is not there, affects no other queue.
type publisher struct {
	link *link
	shared[*pubChannel]
}

func newPublisher(l *link) *publisher {
	return &publisher{l, shared[*pubChannel]{open: l.openPublisher, shut: func(c *pubChannel) error { return c.Close() }}}
}

// pubChannel is a channel in confirm mode.
type pubChannel struct {
	*amqp.Channel
	frame int // the largest frame; the headers must fit into one

	mu      sync.Mutex
	returns <-chan amqp.Return
	waiting map[address][]*publication
	err     error // why the channel ended, if the server gave a reason
	ended   <-chan *amqp.Error
}

// address identifies a message that comes back. Messages with the same address went the same way,
// and have the same outcome.
type address struct{ exchange, key, id string }

type publication struct {
	*call[struct{}]
	returned string // why it came back; guarded by pubChannel.mu
}

// Errors of a message that was published.
var (
	// ErrUnroutable: there is no such queue, or it is not bound. The message came back.
	ErrUnroutable = errors.New("lullamqp: the message came back: no queue takes it")
	// ErrRefused: the queue is full, or has no leader. The message was not taken.
	ErrRefused = errors.New("lullamqp: the broker refused the message (basic.nack)")
	// ErrUnconfirmed: the channel ended before the broker confirmed or refused the message.
	ErrUnconfirmed = errors.New("lullamqp: it is not known whether the broker has the message")
)

// publish sends a message, and waits until the broker has it.
func (p *publisher) publish(ctx context.Context, exchange, key string, m amqp.Publishing, room int) error {
	pub, err := p.start(ctx, exchange, key, m, room)
	if err != nil {
		return err
	}
	return pub.await(ctx)
}

// start sends a message, if its headers fit into a frame with room bytes more. m.MessageId must not
// be empty.
func (p *publisher) start(ctx context.Context, exchange, key string, m amqp.Publishing, room int) (*publication, error) {
	if err := p.link.blockedError(); err != nil {
		return nil, err
	}
	c, err := p.get(ctx)
	if err != nil {
		return nil, err
	}
	if over := headerFrame(&m) + min(room, c.frame*3/4) - c.frame; c.frame > 0 && over > 0 {
		return nil, lull.Permanent(&tooLarge{over, c.frame})
	}
	pub := &publication{}
	at := address{exchange, key, m.MessageId}
	c.mu.Lock()
	c.waiting[at] = append(c.waiting[at], pub)
	c.mu.Unlock()
	pub.call = startRun(func() error {
		// It may block for as long as the server does not read.
		confirm, err := c.PublishWithDeferredConfirm(exchange, key, true, false, m)
		taken := err == nil && confirm.Wait()
		return c.finish(at, pub, err, taken, len(m.Body))
	})
	return pub, nil
}

func (p *publication) await(ctx context.Context) error {
	_, err := p.wait(ctx)
	if err != nil && err == ctx.Err() {
		return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
	}
	return err
}

func (c *pubChannel) finish(at address, pub *publication, err error, taken bool, size int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	// A message comes back before it is confirmed, so it is in the channel by now.
	for len(c.returns) > 0 {
		r := <-c.returns
		for _, each := range c.waiting[address{r.Exchange, r.RoutingKey, r.MessageId}] {
			each.returned = fmt.Sprintf("%s (exchange %q, routing key %q)", r.ReplyText, r.Exchange, r.RoutingKey)
		}
	}
	c.waiting[at] = slices.DeleteFunc(c.waiting[at], func(each *publication) bool { return each == pub })
	if len(c.waiting[at]) == 0 {
		delete(c.waiting, at)
	}
	switch {
	case pub.returned != "":
		return fmt.Errorf("%w: %s", ErrUnroutable, pub.returned)
	case taken:
		return nil
	case err == nil && !c.IsClosed():
		return lull.Transient(ErrRefused)
	}
	select {
	case why, ok := <-c.ended:
		if ok {
			c.err = why
		}
	default:
	}
	why := cmp.Or(c.err, err)
	if why == nil {
		return lull.Transient(ErrUnconfirmed)
	}
	if e, ok := errors.AsType[*amqp.Error](why); ok && e.Server {
		// The error is about one message, and others were under way on the channel.
		var is, limit int
		if n, _ := fmt.Sscanf(e.Reason, "PRECONDITION_FAILED - message size %d is larger than configured max size %d", &is, &limit); n == 2 && is == size {
			return lull.Permanent(fmt.Errorf("lullamqp: the message has %d bytes, the server takes %d (max_message_size)", is, limit))
		}
		if e.Code == amqp.NotFound || e.Code == amqp.AccessRefused {
			return explain("publish", why) // no such exchange, or no right to write to it
		}
	}
	return lull.Transient(fmt.Errorf("%w: %w", ErrUnconfirmed, why))
}

// tooLarge is the error of a message whose headers do not fit into a frame: the server would close
// the connection.
type tooLarge struct{ over, frame int }

func (t *tooLarge) Error() string {
	return fmt.Sprintf("lullamqp: the headers have %d bytes more than fit into a frame, with what the server adds to them (frame_max is %d)", t.over, t.frame)
}

func (t *tooLarge) Unwrap() error { return queue.ErrTooLarge }

func (l *link) openPublisher(ctx context.Context) (*pubChannel, error) {
	conn, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	ch, err := callWithin(ctx, conn.Channel)
	if err != nil {
		return nil, explain("open a channel", err)
	}
	c := &pubChannel{
		Channel: ch, frame: conn.Config.FrameSize, waiting: map[address][]*publication{},
		returns: ch.NotifyReturn(make(chan amqp.Return, 4096)),
		ended:   ch.NotifyClose(make(chan *amqp.Error, 1)),
	}
	return c, explain("ask for confirmations", runWithin(ctx, func() error { return ch.Confirm(false) }))
}
