package lullnats

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

// letters reads a stream of dead letters by sequence. It takes nothing out, so any number can be
// read at a time, and nothing must be given back.
type letters struct {
	client
	stream, filter string
	next, last     uint64
}

// Letters begins a reading of the dead letters of the queue that c names: those with its
// DeadSubject. Reading takes nothing out, and others see the letters meanwhile. If two readers
// remove the same letter at once, both move it (queue.Redrive then sends it twice under one id, and
// the stream discards the second).
func Letters(ctx context.Context, js jetstream.JetStream, c Config) (queue.DeadLetters, error) {
	c, err := c.checked()
	if err != nil {
		return nil, lull.Permanent(err)
	}
	k, err := newClient(js)
	if err != nil {
		return nil, lull.Permanent(err)
	}
	return k.letters(ctx, c.DeadStream, c.DeadSubject)
}

// letters begins a reading of the messages with a subject in a stream.
func (k client) letters(ctx context.Context, stream, subject string) (queue.DeadLetters, error) {
	if err := k.ready(ctx); err != nil {
		return nil, err
	}
	s, err := k.js.Stream(ctx, stream)
	if err != nil {
		err = fmt.Errorf("lullnats: stream %s: %w", stream, err)
		if absent(err) {
			err = lull.Permanent(err)
		}
		return nil, err
	}
	return &letters{client: k, stream: stream, filter: subject, next: 1, last: s.CachedInfo().State.LastSeq}, nil
}

func (r *letters) Next(ctx context.Context, most int) (all []*queue.Letter, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for len(all) < most && r.next <= r.last {
		m, err := r.message(ctx, r.stream, r.next, r.filter)
		switch {
		case err != nil && len(all) > 0:
			return all, nil // the next call returns the error
		case err != nil:
			return nil, err
		case m == nil || m.Seq > r.last:
			r.next = r.last + 1
			continue
		}
		r.next = m.Seq + 1
		all = append(all, letterOf(r.stream, m))
	}
	if len(all) == 0 {
		return nil, io.EOF
	}
	return all, nil
}

// letterReceipt is the part of a letter that queue.Letter does not have.
type letterReceipt struct {
	seq    uint64
	header nats.Header
}

func letterOf(stream string, m *stored) *queue.Letter {
	d := &queue.Delivery{ID: id(stream, m.Seq, m.Time), Enqueued: m.Time, Body: m.Data}
	d.Headers, d.Group = fromHeader(m.header)
	l := queue.LetterOf(d)
	if l.OriginalID == d.ID {
		l.OriginalID = sentAs(m.header, d.ID)
	}
	l.Receipt = &letterReceipt{m.Seq, m.header}
	return l
}

func (r *letters) Remove(ctx context.Context, l *queue.Letter) error {
	was, ok := l.Receipt.(*letterReceipt)
	if !ok {
		return lull.Permanent(errors.New("lullnats: the letter is not of this reading"))
	}
	return r.remove(ctx, r.stream, was.seq)
}

func (r *letters) Close(context.Context) error { return nil }
