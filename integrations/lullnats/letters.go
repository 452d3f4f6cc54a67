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
	info           jetstream.Stream
	next, last     uint64
	left           uint64 // letters that were read and not removed
}

// Letters begins a reading of the dead letters of the queue that c names: those with its
// DeadLetterSubject. Reading takes nothing out, and others see the letters meanwhile. If two readers
// remove the same letter at once, both move it (queue.Redrive then sends it twice under one id, and
// the stream discards the second).
func Letters(ctx context.Context, js jetstream.JetStream, c Config) (queue.DeadLetters, error) {
	k, c, err := connect(js, c)
	if err != nil {
		return nil, lull.Permanent(err)
	}
	return k.letters(ctx, c.DeadLetters, c.DeadLetterSubject)
}

// LettersIn is Letters for all dead letters of a stream, whatever their queues. It is for tools
// that know the stream and not the queues.
func LettersIn(ctx context.Context, js jetstream.JetStream, stream string) (queue.DeadLetters, error) {
	k, err := clientFor(js, stream)
	if err != nil {
		return nil, lull.Permanent(err)
	}
	return k.letters(ctx, stream, ">")
}

// letters begins a reading of the messages with a subject in a stream.
func (k client) letters(ctx context.Context, stream, subject string) (queue.DeadLetters, error) {
	if err := k.ready(ctx); err != nil {
		return nil, err
	}
	s, err := k.stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	return &letters{client: k, stream: stream, filter: subject, info: s, next: 1, last: s.CachedInfo().State.LastSeq}, nil
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
			if err := r.checkComplete(ctx); err != nil && len(all) == 0 {
				return nil, err
			} else if err != nil {
				return all, nil // the next call asks again
			}
			r.next = r.last + 1
			continue
		}
		r.next = m.Seq + 1
		r.left++
		all = append(all, letterOf(r.stream, m))
	}
	if len(all) == 0 {
		return nil, io.EOF
	}
	return all, nil
}

// checkComplete returns an error if the stream has letters that were not read. The server also answers that there is no message
// when it cannot read its files, or closes them.
func (r *letters) checkComplete(ctx context.Context) error {
	info, err := r.info.Info(ctx, jetstream.WithSubjectFilter(r.filter))
	if err != nil {
		return fmt.Errorf("lullnats: stream %s: %w", r.stream, err)
	}
	is, there := info.State, uint64(0)
	for _, n := range is.Subjects {
		there += n
	}
	if later := is.LastSeq - min(r.last, is.LastSeq); there > r.left+later {
		return lull.Transient(fmt.Errorf("lullnats: stream %s has %d more letters that the server does not return", r.stream, there-r.left-later))
	}
	return nil
}

// letterReceipt is the part of a letter that queue.Letter does not have.
type letterReceipt struct {
	seq     uint64
	header  nats.Header
	removed bool
}

func letterOf(stream string, m *stored) *queue.Letter {
	d := &queue.Delivery{ID: id(stream, m.Seq, m.Time), Enqueued: m.Time, Body: m.Data}
	d.Headers, d.Group = fromHeader(m.header)
	l := queue.LetterOf(d)
	if l.OriginalID == d.ID {
		l.OriginalID = sentAs(m.header, d.ID)
	}
	l.Receipt = &letterReceipt{seq: m.Seq, header: m.header}
	return l
}

func (r *letters) Remove(ctx context.Context, l *queue.Letter) error {
	was, ok := l.Receipt.(*letterReceipt)
	if !ok {
		return lull.Permanent(errors.New("lullnats: the letter is not of this reading"))
	}
	err := r.remove(ctx, r.stream, was.seq)
	if err == nil && !was.removed {
		was.removed = true
		r.left--
	}
	return err
}

func (r *letters) Close(context.Context) error { return nil }
