package lullnats

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/sleep"
	"github.com/lullgo/lull/queue"
)

// advisory is the server's report on a message that it will not deliver any more.
type advisory struct {
	Type       string    `json:"type"`
	Time       time.Time `json:"timestamp"`
	Stream     string    `json:"stream"`
	Consumer   string    `json:"consumer"`
	Seq        uint64    `json:"stream_seq"`
	Deliveries int       `json:"deliveries"`
	Reason     string    `json:"reason"`
}

const (
	typeExceeded   = "io.nats.jetstream.advisory.v1.max_deliver"
	typeTerminated = "io.nats.jetstream.advisory.v1.terminated"
)

func parseAdvisory(text []byte) (a advisory, err error) {
	if err := json.Unmarshal(text, &a); err != nil {
		return advisory{}, fmt.Errorf("lullnats: an advisory that cannot be read: %w", err)
	}
	if a.Type != typeExceeded && a.Type != typeTerminated || a.Seq == 0 || a.Deliveries < 0 {
		return advisory{}, fmt.Errorf("lullnats: an advisory of type %q about message %d, delivered %d times", a.Type, a.Seq, a.Deliveries)
	}
	return a, nil
}

// A Reaper makes dead letters of messages that the server has given up: those that were delivered
// as often as the consumer's MaxDeliver allows and never settled, because every worker that had
// them died, and those that others terminated.
//
// Such a message stays in a work queue for ever, and only an advisory names it. Declare makes a stream that keeps the
// advisories. If an advisory was lost, the Reaper finds the message in a work queue: the message is still there although
// the consumer has nothing out or waiting, or only later messages.
//
// Any number of processes may run a Reaper, and may be killed at any moment. A dead letter is written before the message is
// removed, under an id by which the stream for dead letters recognises it (for Config.Duplicates). The advisory is removed
// last.
type Reaper struct {
	client
	c Config

	checked bool
	// The consumer that was made at created is done with all messages up to floor. left has those that
	// were still in the stream, and since when. (An acknowledged message may be there for a moment.)
	created time.Time
	floor   uint64
	left    map[uint64]time.Time
}

// Reaped counts the work of a Reaper.
type Reaped struct {
	Letters int // dead letters that were written
	Gone    int // advisories about messages that are gone, or are dead letters already
	Failed  int // advisories that will come again, because of an error
}

// NewReaper returns a reaper for the queue that c names. It calls Check, and fails like Open. If the
// server cannot be asked now, the first Reap that reaches it checks.
func NewReaper(ctx context.Context, js jetstream.JetStream, c Config) (*Reaper, error) {
	k, c, err := connect(js, c)
	if err == nil && !c.reaps() {
		err = errors.New("lullnats: with a negative Config.DeliveryLimit the server gives no message up")
	}
	if err != nil {
		return nil, lull.Permanent(err)
	}
	r := &Reaper{client: k, c: c, left: map[uint64]time.Time{}}
	return r, refusal(ctx, r.check(ctx))
}

// check checks once that everything is as it must be.
func (r *Reaper) check(ctx context.Context) error {
	if r.checked {
		return nil
	}
	_, err := r.verify(ctx, r.c)
	r.checked = err == nil
	return err
}

// Run reaps at once, and then at the given interval, until ctx ends. Then it returns nil. Zero
// means every 10 s. Errors go to failed, if it is not nil. Only an error that is marked with
// lull.Permanent ends Run, which returns it.
func (r *Reaper) Run(ctx context.Context, every time.Duration, failed func(error)) error {
	if every <= 0 {
		every = 10 * time.Second
	}
	for ctx.Err() == nil {
		_, err := r.Reap(ctx)
		if v := lull.Classify(err); err != nil && ctx.Err() == nil {
			if v.Kind == lull.KindPermanent {
				return err
			}
			if failed != nil {
				failed(err)
			}
		}
		sleep.For(ctx, every)
	}
	return nil
}

// Reap handles all advisories, and looks for messages whose advisory was lost. A later call handles
// these, when they have been there for a lease. Only one goroutine may call Reap at a time.
func (r *Reaper) Reap(ctx context.Context) (done Reaped, err error) {
	if err := r.check(ctx); err != nil {
		return done, err
	}
	if err := r.ready(ctx); err != nil {
		return done, err
	}
	var problems []error
	for ctx.Err() == nil {
		m, err := r.advisory(ctx)
		if err != nil {
			problems = append(problems, fmt.Errorf("advisories: %w", err))
		}
		if m == nil {
			break
		}
		written, err := r.advised(ctx, m.Data)
		switch {
		case err != nil:
			done.Failed++
			problems = append(problems, err)
			r.nc.Publish(m.Reply, []byte(replyNak+`{"delay":5000000000}`))
			continue
		case written:
			done.Letters++
		default:
			done.Gone++
		}
		if _, err := r.request(ctx, m.Reply, []byte(replyAck)); err != nil {
			problems = append(problems, fmt.Errorf("advisories: %w", err)) // it comes again
		}
	}
	n, err := r.sweep(ctx)
	done.Letters += n
	if err != nil {
		problems = append(problems, err)
	}
	if ctx.Err() != nil {
		problems = append(problems, ctx.Err())
	}
	return done, errors.Join(problems...)
}

// advisory returns an advisory. nil: the server has no undelivered one.
func (r *Reaper) advisory(ctx context.Context) (*nats.Msg, error) {
	for left, tries := uint64(1), 10; left > 0; tries-- {
		m, err := r.fetch(ctx, r.c.AdvisoryStream, r.c.reaper())
		if m != nil {
			return m, nil
		}
		info, failed := r.consumer(ctx, r.c.AdvisoryStream, r.c.reaper())
		switch {
		case failed != nil:
			return nil, failed
		case err != nil:
			return nil, err
		}
		if left = info.NumPending; left > 0 && tries == 0 {
			return nil, fmt.Errorf("lullnats: the server has %d and hands out none", left)
		}
	}
	return nil, nil
}

// advised handles one advisory. It reports whether a dead letter was written.
func (r *Reaper) advised(ctx context.Context, text []byte) (bool, error) {
	a, err := parseAdvisory(text)
	if err != nil || a.Stream != r.c.Stream || a.Consumer != r.c.Consumer {
		return false, nil // useless, also when it comes again
	}
	if a.Type == typeTerminated && strings.HasPrefix(a.Reason, termPrefix) {
		return false, nil // its dead letter was written before
	}
	m, err := r.message(ctx, r.c.Stream, a.Seq, "")
	if err != nil {
		return false, err
	}
	if m == nil || m.Time.After(a.Time) {
		return false, nil
	}
	e := r.envelope(m, a.Deliveries)
	if a.Type == typeTerminated {
		e.Reason, e.LastFailure = queue.ReasonBroker, a.Time
		if a.Reason != "" {
			e.Errors = []string{a.Reason}
		}
	}
	return true, r.deadLetter(ctx, m, e, a.Deliveries)
}

// envelope returns the envelope that the Consumer would write.
func (r *Reaper) envelope(m *stored, deliveries int) *queue.Envelope {
	h, _ := fromHeader(m.header)
	e := &queue.Envelope{
		Reason: queue.ReasonCrashed, Attempts: deliveries, Source: r.c.Source, OriginalID: sentAs(m.header, id(r.c.Stream, m.Seq, m.Time)),
		TraceParent: h["traceparent"], TraceState: h["tracestate"],
	}
	if was, ok := movedOf(m.header); ok {
		e.OriginalID = was.ID
		e.Attempts += was.Attempts
		e.FirstFailure = cmp.Or(was.Failed, was.Seen).time()
	}
	if former, ok := queue.EnvelopeOf(h); ok {
		e.Redrives, e.OriginalID = former.Redrives, cmp.Or(former.OriginalID, e.OriginalID)
	}
	return e
}

// deadLetter writes the dead letter of m, and removes m from the stream if no other consumer needs it.
func (r *Reaper) deadLetter(ctx context.Context, m *stored, e *queue.Envelope, deliveries int) error {
	origin := id(r.c.Stream, m.Seq, m.Time)
	if was, ok := movedOf(m.header); ok {
		origin = was.Origin
	}
	if err := r.letter(ctx, r.c, origin, m.Subject, m.header, m.Data, e); err != nil {
		return err
	}
	s, err := r.js.Stream(ctx, r.c.Stream)
	if err != nil {
		return err
	}
	switch s.CachedInfo().Config.Retention {
	case jetstream.WorkQueuePolicy:
		return r.remove(ctx, r.c.Stream, m.Seq)
	case jetstream.InterestPolicy:
		return r.release(ctx, m, deliveries)
	}
	return nil
}

// release acknowledges a message in the name of the consumer. Other consumers may still need it:
// the server removes it when all have acknowledged it.
func (r *Reaper) release(ctx context.Context, m *stored, deliveries int) error {
	at := fmt.Sprintf("$JS.ACK.%s.%s.%d.%d.1.%d.0", r.c.Stream, r.c.Consumer, max(deliveries, 1), m.Seq, m.Time.UnixNano())
	if _, err := r.request(ctx, at, []byte(replyAck)); err != nil {
		return fmt.Errorf("lullnats: acknowledging message %d of %s for %s: %w", m.Seq, r.c.Stream, r.c.Consumer, err)
	}
	return nil
}

// sweep finds messages of a work queue that are still there although the consumer is done with
// them. Their advisories were lost, or were sent before there was a stream for them.
func (r *Reaper) sweep(ctx context.Context) (written int, err error) {
	s, err := r.stream(ctx, r.c.Stream)
	if err != nil {
		return 0, err
	}
	if s.CachedInfo().Config.Retention != jetstream.WorkQueuePolicy {
		return 0, nil
	}
	info, err := r.consumer(ctx, r.c.Stream, r.c.Consumer)
	if err != nil {
		return 0, err
	}
	if info.Created != r.created || info.Delivered.Stream < r.floor {
		r.created, r.floor = info.Created, 0
		clear(r.left)
	}
	r.floor = max(r.floor, info.AckFloor.Stream)
	if info.NumAckPending == 0 {
		// The server moves AckFloor only when a message is acknowledged.
		r.floor = max(r.floor, info.Delivered.Stream)
	}
	now := time.Now()
	left := map[uint64]time.Time{}
	for seq := uint64(1); seq <= r.floor && len(left) < 10_000; {
		m, err := r.message(ctx, r.c.Stream, seq, r.c.Subject)
		if err != nil {
			return written, err
		}
		if m == nil || m.Seq > r.floor {
			break
		}
		seq = m.Seq + 1
		since, known := r.left[m.Seq]
		if !known {
			since = now
		}
		left[m.Seq] = since
		if !known || now.Sub(since) < info.Config.AckWait {
			continue
		}
		deliveries := max(info.Config.MaxDeliver, 1)
		if err := r.deadLetter(ctx, m, r.envelope(m, deliveries), deliveries); err != nil {
			return written, err
		}
		delete(left, m.Seq)
		written++
	}
	r.left = left
	return written, nil
}
