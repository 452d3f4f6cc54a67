package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/sleep"
)

// DeadLetters is one reading of a queue of dead letters: [Inspect] and [Redrive] go
// through it from one end to the other. [Scan] makes one of a Broker; a
// broker that can be read without taking messages out has a better one.
//
// It is used by one goroutine.
type DeadLetters interface {
	// Next returns some letters, 1 to max, that it has not returned before, in any order. It
	// returns io.EOF itself when it has returned all that were there when the reading began;
	// later ones may be among them. (An error that wraps io.EOF is one of a connection.)
	Next(ctx context.Context, max int) ([]*Letter, error)

	// Remove deletes a letter that Next returned. nil means that it is gone, or was gone
	// already. After any other error that is not known, and Remove may be called again.
	Remove(ctx context.Context, l *Letter) error

	// Close ends the reading. What was not removed is in the queue as before, at once or
	// when a lease lapses; if the process dies instead of calling Close, likewise.
	Close(ctx context.Context) error
}

// Counted is a reading of a broker that may count how often a letter is read and left
// there, and drop it in the end: RabbitMQ, where a queue has a limit on deliveries.
type Counted interface {
	DeadLetters
	// Uncounted returns nil if letters can be read and left there any number of times,
	// else an error with the reason and what to do. It is called before Next.
	Uncounted(ctx context.Context) error
}

// A Letter is a dead letter.
type Letter struct {
	Envelope
	// ID is the broker's name for the letter, as Delivery.ID is for a message: the same in
	// every reading, and no other letter's, whatever messages they were. Empty: it has none.
	ID       string
	Enqueued time.Time // when it became a dead letter. Zero: not known
	Group    string
	Headers  Headers // the message's, without the envelope
	Body     []byte
	Receipt  any // the adapter's own
}

// LetterOf is the letter in a delivery of a queue of dead letters. Without a readable
// envelope (the broker put the letter there) its reason is ReasonBroker, and its OriginalID
// is d.ID. The receipt is d.
func LetterOf(d *Delivery) *Letter {
	l := &Letter{ID: d.ID, Enqueued: d.Enqueued, Group: d.Group, Body: d.Body, Receipt: d}
	if e, ok := EnvelopeOf(d.Headers); ok {
		l.Envelope = *e
	} else {
		l.Reason = ReasonBroker
	}
	l.OriginalID = cmp.Or(l.OriginalID, d.ID)
	l.Headers = make(Headers, len(d.Headers))
	maps.Copy(l.Headers, d.Headers)
	delete(l.Headers, EnvelopeHeader)
	return l
}

// Died is when the message died: its last failure, or when it became a dead letter.
// Zero: not known.
func (l *Letter) Died() time.Time {
	if !l.LastFailure.IsZero() {
		return l.LastFailure
	}
	return l.Enqueued
}

// A ScanConfig sets how Scan reads. It is plain, comparable data.
type ScanConfig struct {
	// Idle is how long the broker must report no other letter, at least twice, before the reading
	// ends. It must exceed the broker's time to find a message. Zero: 2 s.
	Idle time.Duration
	// Lease is how long the letters stay out if the process dies. After the broker has failed to
	// answer, the reading continues for at least as long, since letters that were handed out
	// unseen come back then. Zero: 30 s.
	Lease time.Duration
	// Hold is the most letters that are kept out at a time. Next returns ErrTooMany when this
	// many were not removed. Zero: 10,000. Brokers have limits too (SQS: 120,000).
	Hold int
}

// Validate reports everything that is wrong with c at once.
func (c ScanConfig) Validate() error {
	var l problem.List
	l.Check(c.Idle >= 0, "Idle", c.Idle, "a positive duration, or 0 for the default of 2s")
	l.Check(c.Lease == 0 || c.Lease >= minLease && c.Lease <= maxLease, "Lease", c.Lease, "a duration from 100ms to 12h, or 0 for the default of 30s")
	l.Check(c.Hold >= 0, "Hold", c.Hold, "a positive number, or 0 for the default of 10000")
	return l.Err()
}

// ErrTooMany ends a scan that would have to hold too many letters.
var ErrTooMany = errors.New("queue: more letters are passed over than can be held (ScanConfig.Hold)")

// Scan reads a queue of dead letters that can only be consumed: letters that are not
// removed are kept out, their leases extended by a goroutine, and given back by
// Close. Brokers may count that as a delivery: the queue of dead letters must have no
// limit on deliveries. Other readers do not see the letters that this one holds. If the queue
// keeps an order, only the first letter of each group is seen until it is removed.
//
// Next returns io.EOF only after the broker has reported an empty queue (see Broker.Receive). If the
// broker could not be asked, refused, or did not answer in time, Next returns that error.
func Scan(b Broker, c ScanConfig) (DeadLetters, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("config of a scan: %w", err)
	}
	c.Idle, c.Lease, c.Hold = cmp.Or(c.Idle, 2*time.Second), cmp.Or(c.Lease, 30*time.Second), cmp.Or(c.Hold, 10_000)
	s := &scan{b: b, c: c, held: map[string]*Delivery{}, seen: map[string]bool{}, repeated: map[string]bool{}}
	s.open, s.stop = context.WithCancel(context.Background())
	s.extending.Go(s.extendLeases)
	return s, nil
}

type scan struct {
	b Broker
	c ScanConfig

	mu   sync.Mutex // held during Extend and Settle too
	held map[string]*Delivery
	seen map[string]bool

	lost        bool      // the last call may have taken letters out that nobody has
	unsureUntil time.Time // until then they may be out

	// The answers since the last new letter.
	emptyAnswers int             // how many in a row had nothing new
	since        time.Time       // when the first of these was asked for
	repeated     map[string]bool // letters that came again

	open      context.Context // until Close
	stop      func()
	extending sync.WaitGroup
}

func (s *scan) extendLeases() {
	if !s.b.Capabilities().Extends {
		return
	}
	t := time.NewTicker(s.c.Lease / 3)
	defer t.Stop()
	for {
		select {
		case <-s.open.Done():
			return
		case <-t.C:
		}
		s.mu.Lock()
		ids := slices.Collect(maps.Keys(s.held))
		s.mu.Unlock()
		for _, id := range ids {
			s.extend(id)
		}
	}
}

func (s *scan) extend(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.held[id]; d != nil && s.open.Err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), s.c.Lease/6)
		defer cancel()
		s.b.Extend(ctx, d, s.c.Lease) // if it fails, the letter comes once more and is passed over
	}
}

// requiredAnswers is how many times a broker must report that there is nothing. One answer may be false: only
// a part of the broker was asked, or letters that it had handed out were just coming back.
const requiredAnswers = 2

func (s *scan) Next(ctx context.Context, most int) ([]*Letter, error) {
	for asked := false; ; asked = true {
		s.mu.Lock()
		room := s.c.Hold - len(s.held)
		s.mu.Unlock()
		if room <= 0 {
			return nil, ErrTooMany
		}
		began := time.Now()
		if end, ok := ctx.Deadline(); ok && asked && end.Sub(began) < s.c.Idle/requiredAnswers {
			<-ctx.Done() // an answer would come too late, and letters with it
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		patience, cancel := context.WithTimeout(ctx, s.c.Idle/requiredAnswers)
		got, err := s.b.Receive(patience, Want{Max: min(most, room), Lease: s.c.Lease})
		answered := err == nil || err == patience.Err()
		if len(got) == 0 && answered {
			sleep.For(patience, minReceiveInterval-time.Since(began)) // the broker should have waited
		}
		cancel()
		letters := s.take(got, began, answered)
		if answered && s.lost { // a server that was stopped may still carry out earlier requests
			s.lost, s.unsureUntil = false, began.Add(s.c.Lease+s.c.Idle/requiredAnswers)
		}
		if v := lull.Classify(err); !answered && !v.NeverSent && v.Kind != lull.KindPermanent && v.Kind != lull.KindRateLimited {
			s.lost = s.b.Capabilities().Leases
		}
		switch {
		case len(letters) > 0:
			return letters, nil
		case ctx.Err() != nil:
			return nil, cmp.Or(err, ctx.Err())
		case !answered:
			return nil, err
		case s.emptyAnswers >= requiredAnswers && time.Since(s.since) >= s.c.Idle && !time.Now().Before(s.unsureUntil):
			return nil, io.EOF
		}
	}
}

// take returns the letters of an answer that are new.
func (s *scan) take(got []*Delivery, began time.Time, answered bool) (letters []*Letter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	repeated := 0
	for _, d := range got {
		switch {
		case !s.seen[d.ID]:
			s.seen[d.ID] = true
			letters = append(letters, LetterOf(d))
		case s.repeated[d.ID]:
			repeated++
		}
		s.repeated[d.ID] = true
		s.held[d.ID] = d // its latest delivery
	}
	switch {
	case len(letters) > 0:
		s.emptyAnswers = 0
		clear(s.repeated)
	case !answered || repeated < len(got): // more leases may have lapsed while nobody extended them
		s.emptyAnswers = 0
	default:
		if s.emptyAnswers++; s.emptyAnswers == 1 {
			s.since = began
		}
	}
	return letters
}

func (s *scan) Remove(ctx context.Context, l *Letter) error {
	d, ok := l.Receipt.(*Delivery)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !ok || !s.seen[d.ID] {
		return lull.Permanent(errors.New("queue: the letter is not of this reading"))
	}
	held := s.held[d.ID]
	if held == nil {
		return nil // it was removed
	}
	err := s.b.Settle(ctx, held, Settlement{Outcome: Ack})
	if err == nil {
		delete(s.held, d.ID)
	}
	return err
}

func (s *scan) Close(ctx context.Context) error {
	s.stop()
	s.extending.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var problems []error
	for id, d := range s.held {
		err := s.b.Settle(ctx, d, Settlement{Outcome: Defer})
		if err != nil && !errors.Is(err, ErrLost) {
			problems = append(problems, err)
			if ctx.Err() != nil {
				break
			}
		}
		delete(s.held, id)
	}
	return errors.Join(problems...)
}
