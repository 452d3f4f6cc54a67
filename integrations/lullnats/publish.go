package lullnats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

// Answers of the server that package jetstream has no names for.
const (
	codeMessageTooLarge = jetstream.ErrorCode(10054) // message size exceeds maximum allowed
	codeHeaders         = jetstream.ErrorCode(10097) // header size exceeds maximum allowed of 64k
	codeOtherStream     = jetstream.ErrorCode(10060) // expected stream does not match
)

// publish stores a message in that stream, under that id if there is one. It returns when the
// server has confirmed it.
func (k client) publish(ctx context.Context, stream, id string, m *nats.Msg) error {
	options := []jetstream.PublishOpt{jetstream.WithExpectStream(stream)}
	if id != "" {
		options = append(options, jetstream.WithMsgID(id))
	}
	return k.store(ctx, stream, m, options...)
}

func (k client) store(ctx context.Context, stream string, m *nats.Msg, options ...jetstream.PublishOpt) error {
	if err := k.ready(ctx); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := k.js.PublishMsg(within, m, options...)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err = k.failed("storing a message in "+stream, err)
	if tooLarge(err) || isAPIError(err, codeOtherStream) {
		return lull.Permanent(err)
	}
	return err
}

func tooLarge(err error) bool {
	return errors.Is(err, nats.ErrMaxPayload) || isAPIError(err, codeMessageTooLarge, codeHeaders)
}

// letter stores a dead letter: the message unchanged, its subject, and the envelope. If that is too large for a message, the
// envelope has no errors. If it still is, headers are shortened, and the envelope says so. If the body nearly fills a
// message, the letter has only this package's headers. If the body fills it, the letter is the message as it was, without
// an envelope.
//
// The server discards a letter with an id that it has had, and answers as if it were stored. The id consists of the stream,
// the consumer, and the stream's name of the message when it was sent (its sequence and its time). So only the same letter
// is discarded, which an earlier call has written.
func (k client) letter(ctx context.Context, c Config, origin, subject string, header nats.Header, body []byte, e *queue.Envelope) error {
	m := &nats.Msg{Subject: c.DeadLetterSubject, Header: keptHeaders(header), Data: body}
	m.Header[subjectHeader] = []string{subject}
	m.Header[queue.EnvelopeHeader] = []string{e.Encode()}
	id := queue.DeadLetterID(c.Stream, c.Consumer, origin)
	err := k.publish(ctx, c.DeadLetters, id, m)
	bare := *e
	bare.Errors = nil
	for _, smaller := range []func(){
		func() { m.Header[queue.EnvelopeHeader] = []string{bare.Encode()} },
		func() { shorten(m.Header, e) },
		func() { m.Header = nats.Header{subjectHeader: {subject}, queue.EnvelopeHeader: {bare.Encode()}} },
	} {
		if !tooLarge(err) {
			return err
		}
		smaller()
		err = k.publish(ctx, c.DeadLetters, id, m)
	}
	if tooLarge(err) {
		err = k.store(ctx, c.DeadLetters, &nats.Msg{Subject: c.DeadLetterSubject, Header: keptHeaders(header), Data: body})
	}
	return err
}

// additions is the most bytes that a dead letter adds to its message: the envelope, the subject, the
// id, and the name of its stream.
const additions = queue.MaxEnvelope + 1024

// shorten makes the headers of a dead letter, which has the envelope e, as small as those of its
// message.
func shorten(h nats.Header, e *queue.Envelope) {
	sizes := map[string]int{}
	for name, values := range h {
		if name != queue.EnvelopeHeader && name != subjectHeader {
			for _, value := range values {
				sizes[name] += len(name) + len(value) + 4
			}
		}
	}
	e, keep := e.Shortened(sizes, additions)
	for name, n := range keep {
		n -= len(name) + 4
		if n < 0 || ownHeader(name) { // a part of what is encoded is of no use
			delete(h, name)
			continue
		}
		value := h[name][0]
		h[name] = []string{strings.TrimSpace(strings.ToValidUTF8(value[:min(n, len(value))], ""))}
	}
	h[queue.EnvelopeHeader] = []string{e.Encode()}
}

// A Sender puts messages into a stream. It is a queue.Sender, and safe for concurrent use.
type Sender struct {
	client
	stream, subject string
}

var _ queue.Sender = (*Sender)(nil)

// NewSender returns a sender of messages with that subject into that stream. It does not check that
// the stream exists. A subject with wildcards is for queue.Redrive: each message goes back under
// the subject that it had, if the wildcards match it.
func NewSender(js jetstream.JetStream, stream, subject string) (*Sender, error) {
	k, err := clientFor(js, stream)
	switch {
	case err != nil:
		return nil, err
	case !validFilter.MatchString(subject):
		return nil, fmt.Errorf("lullnats: the subject %q: want a subject, such as orders.new, or orders.> for the subjects that letters had", subject)
	}
	return &Sender{client: k, stream: stream, subject: subject}, nil
}

// Send is part of queue.Sender. The stream stores only one of two messages with one ID within its
// window for duplicates. Headers with names that begin with Nats- are refused: they are orders to
// the server. A dead letter from a reading of this package is sent with all its headers.
func (s *Sender) Send(ctx context.Context, o queue.Outgoing) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !validID.MatchString(o.ID) {
		return lull.Permanent(fmt.Errorf("lullnats: the id %q: want 1 to 128 printable ASCII characters without spaces", o.ID))
	}
	had := "" // the subject
	var h nats.Header
	var err error
	var was *letterReceipt // of a reading of this package
	if o.Letter != nil {
		was, _ = o.Letter.Receipt.(*letterReceipt)
	}
	if was == nil {
		h, err = toHeader(o.Headers, o.Group)
	} else {
		h, had = keptHeaders(was.header), was.header.Get(subjectHeader)
		h[queue.EnvelopeHeader] = []string{o.Headers[queue.EnvelopeHeader]}
	}
	if err != nil {
		return err
	}
	subject, err := s.subjectFor(had)
	if err != nil {
		return err
	}
	return s.publish(ctx, s.stream, o.ID, &nats.Msg{Subject: subject, Header: h, Data: o.Body})
}

// subjectFor returns the subject for a message. had is the subject in its letter; empty if there is none.
func (s *Sender) subjectFor(had string) (string, error) {
	switch {
	case validSubject.MatchString(s.subject):
		return s.subject, nil
	case had == "":
		return "", lull.Permanent(fmt.Errorf("lullnats: it is not known which subject the message had: name one in place of %s", s.subject))
	case !validSubject.MatchString(had) || !matchesAll(s.subject, had):
		return "", lull.Permanent(fmt.Errorf("lullnats: the message had the subject %s, which is none of %s: name one", had, s.subject))
	}
	return had, nil
}
