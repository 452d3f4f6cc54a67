package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/sleep"
)

// A Filter selects dead letters. It is plain, comparable data; the zero
// Filter means all. Every field that is set must match.
type Filter struct {
	// Reason is the envelope's, such as "attempts_exhausted". Empty: any.
	Reason string
	// Code is the envelope's. Empty: any.
	Code string
	// Source is the name of the queue from which they come. Empty: any.
	Source string
	// ID is the original id of one message. Empty: any.
	ID string
	// OlderThan and YoungerThan bound how long ago the message died. A letter without a known
	// time of death matches neither. Zero: any.
	OlderThan, YoungerThan time.Duration
	// MaxRedrives leaves out letters that were put back that often already, and died again.
	// Zero: no matter how often.
	MaxRedrives int
}

// Validate reports everything that is wrong with f at once.
func (f Filter) Validate() error {
	var l problem.List
	l.Check(f.OlderThan >= 0, "OlderThan", f.OlderThan, "a positive duration, or 0 for any age")
	l.Check(f.YoungerThan >= 0, "YoungerThan", f.YoungerThan, "a positive duration, or 0 for any age")
	if f.YoungerThan > 0 && f.YoungerThan <= f.OlderThan {
		l.Add("YoungerThan", f.YoungerThan, "more than OlderThan of "+f.OlderThan.String())
	}
	l.Check(f.MaxRedrives >= 0, "MaxRedrives", f.MaxRedrives, "a positive number, or 0 for any")
	return l.Err()
}

// Match reports whether f selects l, at now.
func (f Filter) Match(l *Letter, now time.Time) bool {
	if f.OlderThan > 0 || f.YoungerThan > 0 {
		died := l.Died()
		if died.IsZero() {
			return false
		}
		age := now.Sub(died)
		if age < f.OlderThan || f.YoungerThan > 0 && age >= f.YoungerThan {
			return false
		}
	}
	return (f.Reason == "" || f.Reason == l.Reason) &&
		(f.Code == "" || f.Code == l.Code) &&
		(f.Source == "" || f.Source == l.Source) &&
		(f.ID == "" || f.ID == l.OriginalID) &&
		(f.MaxRedrives == 0 || l.Redrives < f.MaxRedrives)
}

// A RedriveConfig sets what Redrive does. It is plain, comparable data.
type RedriveConfig struct {
	Filter Filter
	// Rate is how many letters are moved in a second at most, evenly: their queue has
	// other work too. Zero: 10. math.Inf(1): as fast as possible.
	Rate float64
	// Limit is how many are moved at most. Zero: all.
	Limit int
	// DryRun: nothing is moved, and Progress reports what would be.
	DryRun bool
}

// defaultRate is in letters per second.
const defaultRate = 10

// Validate reports everything that is wrong with c at once.
func (c RedriveConfig) Validate() error {
	var l problem.List
	l.In("Filter", c.Filter.Validate())
	l.Check(c.Rate == 0 || c.Rate >= 0.001, "Rate", c.Rate, "0.001 letters a second or more, or 0 for the default of 10")
	l.Check(c.Limit >= 0, "Limit", c.Limit, "a positive number, or 0 for all")
	return l.Err()
}

// Progress is how far Redrive or Inspect has come.
type Progress struct {
	Seen    int // letters that were looked at
	Matched int // of these, selected by the filter
	Moved   int // of the selected, in their queue again (DryRun: would be)
	Failed  int // of the selected, refused by their queue permanently (lull.Permanent): still dead letters
}

// String is for people: "moved 12 of 30 (50 seen)".
func (p Progress) String() string {
	s := fmt.Sprintf("moved %d of %d (%d seen)", p.Moved, p.Matched, p.Seen)
	if p.Failed > 0 {
		s += fmt.Sprintf(", %d failed", p.Failed)
	}
	return s
}

// A LetterResult is one letter that Redrive has dealt with.
type LetterResult struct {
	Progress // with this letter
	Letter   *Letter
	Err      error // why it failed
}

// Redrive puts dead letters back into a queue, each as a message with no attempts made, with the letter's body, headers and
// group, and what else the broker keeps of a message that is retried (Outgoing.Letter). The envelope stays, with Redrives
// one more, so consumers know the message by its original id (Message.ID). progress, which may be nil, is called for each
// letter that the filter selects.
//
// A letter is removed only after Send has succeeded, and no letter is taken for a copy of another. If ctx or a kill
// interrupts Redrive, nothing is lost: run it again, and it continues with what is left. A letter sent but not yet removed
// is sent again under the same id, derived from Letter.ID. A deduplicating broker discards it within its window; on others
// it may come twice.
//
// If a letter that is read and left there counts (Counted), Redrive refuses DryRun and filters. A broker that fails is asked
// again for about a minute. Then its error, or ctx's, is returned. Letters that fail permanently are counted, and Redrive
// continues. from is closed in any case.
func Redrive(ctx context.Context, from DeadLetters, to Sender, c RedriveConfig, progress func(LetterResult)) (Progress, error) {
	r := redrive{letterWalk: letterWalk{from: from, filter: c.Filter}, to: to, c: c}
	if rate := cmp.Or(c.Rate, defaultRate); !math.IsInf(rate, 1) && !c.DryRun {
		r.interval = time.Duration(float64(time.Second) / rate)
	}
	invalid := named("config of a redrive", c.Validate())
	err := r.run(ctx, "redrive", invalid, c.DryRun || c.Filter != (Filter{}), r.batch, func(l *Letter) (bool, error) {
		refused, err := r.move(ctx, l)
		if err != nil {
			return false, err
		}
		if progress != nil {
			progress(LetterResult{Progress: r.Progress, Letter: l, Err: refused})
		}
		return c.Limit == 0 || r.Moved < c.Limit, nil
	})
	return r.Progress, err
}

// Inspect shows dead letters without moving any, until visit returns false or an error.
// It closes from. If a letter that is read and left there counts (Counted), Inspect refuses.
func Inspect(ctx context.Context, from DeadLetters, f Filter, visit func(*Letter) (bool, error)) (Progress, error) {
	w := letterWalk{from: from, filter: f}
	err := w.run(ctx, "inspect", named("filter", f.Validate()), true, func() int { return batch }, visit)
	return w.Progress, err
}

func named(what string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return err
}

type letterWalk struct {
	Progress
	from   DeadLetters
	filter Filter
	calls  *lull.Dependency
}

// run calls visit for each letter that the filter selects, until visit returns false or an error, and closes the reading.
// leaves: some letters are read and left there. most returns how many to read at a time.
func (w *letterWalk) run(ctx context.Context, name string, invalid error, leaves bool, most func() int, visit func(*Letter) (bool, error)) error {
	err := invalid
	if c, ok := w.from.(Counted); ok && leaves && err == nil {
		err = c.Uncounted(ctx)
	}
	if err == nil {
		p := settlePolicy(time.Minute)
		p.Deadline = time.Minute // somebody waits for it, and can run it again
		w.calls, err = lull.NewDependency(name, p)
	}
	if err == nil {
		err = w.visitAll(ctx, most, visit)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return errors.Join(err, named("giving letters back", w.from.Close(ctx)))
}

const batch = 10

func (w *letterWalk) visitAll(ctx context.Context, most func() int, visit func(*Letter) (bool, error)) error {
	for {
		var letters []*Letter
		over := false
		var last error // came with letters, which are visited first
		err := w.call(ctx, "read dead letters", func(ctx context.Context) (err error) {
			letters, err = w.from.Next(ctx, most())
			over = isEnd(err)
			switch {
			case over || len(letters) > 0:
				last = err
				return nil
			case err == nil:
				return errors.New("queue: the reading has returned neither letters nor an error")
			case errors.Is(err, ErrTooMany):
				return lull.Permanent(err)
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, l := range letters {
			w.Seen++
			if !w.filter.Match(l, time.Now()) {
				continue
			}
			w.Matched++
			if more, err := visit(l); !more || err != nil {
				return err
			}
		}
		switch {
		case over:
			return nil
		case lull.Classify(last).Kind == lull.KindPermanent:
			return last
		}
	}
}

// isEnd reports whether the error of Next is io.EOF itself. An error that wraps io.EOF deeper is one of a connection that
// the server has closed.
func isEnd(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) == 1 {
		return isEnd(joined.Unwrap()[0])
	}
	return err == io.EOF
}

// call makes a call to a broker. An unclassified error is worth another try.
func (w *letterWalk) call(ctx context.Context, what string, f func(context.Context) error) error {
	return lull.Run(ctx, w.calls, func(ctx context.Context) error {
		err := f(ctx)
		if err != nil && lull.Classify(err).Kind == lull.KindUnclassified {
			return lull.Transient(err)
		}
		return err
	}, lull.Operation(what))
}

type redrive struct {
	letterWalk
	to       Sender
	c        RedriveConfig
	interval time.Duration
	due      time.Time // when the next may be sent
}

// batch is how many letters to read next: no more than the limit still allows to
// move.
func (r *redrive) batch() int {
	if r.c.Limit == 0 {
		return batch
	}
	return max(min(batch, r.c.Limit-r.Moved), 1)
}

// move moves a letter. refused is why its queue does not take it.
func (r *redrive) move(ctx context.Context, l *Letter) (refused, err error) {
	again := l.Envelope
	again.Redrives++
	if r.c.DryRun {
		r.Moved++
		return nil, nil
	}
	now := time.Now()
	if r.due.Before(now) {
		r.due = now
	}
	sleep.For(ctx, r.due.Sub(now)) // the rate
	r.due = r.due.Add(r.interval)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	o := Outgoing{Group: l.Group, Headers: LetterHeaders(l.Headers, &again), Body: l.Body, Letter: l}
	if l.ID != "" {
		o.ID = uniqueID("redrive", l.ID) // the same each time this letter is sent, and no other's
	}
	err = r.call(ctx, "send", func(ctx context.Context) error { return r.to.Send(ctx, o) })
	if failed, ok := errors.AsType[*lull.Error](err); ok && failed.Reason == engine.Permanent && ctx.Err() == nil {
		r.Failed++
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	r.Moved++
	// The message is in its queue. Removing the letter, even after ctx has ended, saves a copy.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return nil, r.call(ctx, "remove the letter", func(ctx context.Context) error { return r.from.Remove(ctx, l) })
}
