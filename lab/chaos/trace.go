package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// A trace writes down what happens to each message and each letter, a line each: when, which process, what, whose,
// its number, how often it was redriven, and the error. So one that is lost can be followed by its number.
type trace struct{ w io.Writer }

func openTrace(name string) trace {
	if name == "" {
		return trace{}
	}
	return trace{must.Have(os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644))}
}

func (t trace) note(what, whose, number string, redrives int, id any, err error) {
	fmt.Fprintf(t.w, "%s %d %s %s n=%s redrives=%d %v %v\n", time.Now().Format("15:04:05.000"), os.Getpid(), what, whose, number, redrives, id, err)
}

func redrives(h queue.Headers) int {
	if e, ok := queue.EnvelopeOf(h); ok {
		return e.Redrives
	}
	return 0
}

// queue traces b if there is a trace.
func (t trace) queue(name string, b queue.Broker) queue.Broker {
	if t.w == nil {
		return b
	}
	traced := tracedQueue{b, t, name}
	if p, ok := b.(pauses); ok {
		return struct {
			tracedQueue
			pauses
		}{traced, p}
	}
	return traced
}

// What some brokers and readings can do beside: each without the rest, so that it can be embedded.
type (
	pauses interface {
		Pause(ctx context.Context, until time.Time) error
	}
	uncounted interface {
		Uncounted(ctx context.Context) error
	}
)

type tracedQueue struct {
	queue.Broker
	t    trace
	name string
}

func (q tracedQueue) Settle(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
	err := q.Broker.Settle(ctx, d, s)
	q.t.note(fmt.Sprint("settled:", s.Outcome), q.name, d.Headers[numberHeader], redrives(d.Headers), d.ID, err)
	return err
}

func (t trace) letters(l queue.DeadLetters) queue.DeadLetters {
	if t.w == nil {
		return l
	}
	traced := tracedLetters{l, t}
	if c, ok := l.(uncounted); ok {
		return struct {
			tracedLetters
			uncounted
		}{traced, c}
	}
	return traced
}

type tracedLetters struct {
	queue.DeadLetters
	t trace
}

func (l tracedLetters) Next(ctx context.Context, most int) ([]*queue.Letter, error) {
	all, err := l.DeadLetters.Next(ctx, most)
	for _, each := range all {
		l.t.note("read", each.Source, each.Headers[numberHeader], each.Redrives, each.ID, nil)
	}
	if err != nil {
		l.t.note("read", "-", "-", 0, "-", err)
	}
	return all, err
}

func (l tracedLetters) Remove(ctx context.Context, each *queue.Letter) error {
	err := l.DeadLetters.Remove(ctx, each)
	l.t.note("removed", each.Source, each.Headers[numberHeader], each.Redrives, each.ID, err)
	return err
}

func (l tracedLetters) Close(ctx context.Context) error {
	err := l.DeadLetters.Close(ctx)
	l.t.note("closed", "-", "-", 0, "-", err)
	return err
}

func (t trace) sender(name string, s queue.Sender) queue.Sender {
	if t.w == nil {
		return s
	}
	return tracedSender{s, t, name}
}

type tracedSender struct {
	queue.Sender
	t    trace
	name string
}

func (s tracedSender) Send(ctx context.Context, o queue.Outgoing) error {
	err := s.Sender.Send(ctx, o)
	s.t.note("sent", s.name, o.Headers[numberHeader], redrives(o.Headers), o.ID, err)
	return err
}
