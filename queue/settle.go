package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/choice"
)

// settlePolicy is the policy for settling a message: it retries for the whole lease.
// It needs no budget: there is at most one call for each message out.
func settlePolicy(lease time.Duration) lull.Policy {
	p := lull.Policy{
		Attempts: 1000, AttemptTimeout: max(lease/6, 100*time.Millisecond), Deadline: lull.NoTimeout,
		Backoff:  backoff.Schedule{Base: 50 * time.Millisecond, Cap: 2 * time.Second},
		Timeouts: lull.TimeoutsAlways, Nested: lull.NestedAlways, Budget: budget.Config{Unlimited: true},
	}
	p.Breaker.Off = true
	return p
}

// settleFor is how long a settlement is tried if there are no leases.
const settleFor = 30 * time.Second

func (w *workInHand) settle(f disposition) {
	c := w.c
	f.Redelivery = f.Redelivery.Within(w.d.lifeLeft())
	held := w.lease.stop()
	e := w.event(Event{Kind: EventSettled, Outcome: f.Outcome, Reason: f.reason(), After: f.After, Code: w.verdict.Code, Err: w.err})
	if c.abandoned.Load() || !held && f.Outcome != Ack && f.Outcome != Drop {
		// Another consumer may have the message. If it was handled here, it is settled
		// all the same; if not, it is left to the other.
		e.Kind, e.Err = EventLeaseLost, w.lostBecause(nil)
		c.histories.lost(w, f)
		c.notify(e)
		return
	}
	s := Settlement{Outcome: f.Outcome, After: f.After}
	if c.capabilities.Losses && (f.Outcome == Retry || f.Outcome == Defer) {
		s.Uncount, s.Crashes = w.d.Attempt-w.attempt, w.crashes
	}
	now := time.Now()
	first := w.d.FirstFailed
	if first.IsZero() && w.failed {
		first = choice.Either(w.attempt > 1 && !w.d.FirstSeen.IsZero(), w.d.FirstSeen, now)
	}
	switch f.Outcome {
	case DeadLetter:
		s.Envelope = w.envelope(f.reason(), first, now)
	case Retry, Defer:
		s.FirstFailed = first
	}
	until := w.lease.end()
	if until.IsZero() || !held {
		until = now.Add(settleFor)
	}
	ctx, cancel := context.WithDeadline(c.calls, until)
	defer cancel()
	var lost error
	err := lull.Run(ctx, c.settles, func(ctx context.Context) error {
		err := c.broker.Settle(ctx, w.d, s)
		if r := f.TooLarge(); errors.Is(err, ErrTooLarge) && r.Outcome != s.Outcome {
			f = disposition{Redelivery: r}
			e.Outcome, e.Reason, e.After = f.Outcome, f.reason(), f.After
			s = Settlement{Outcome: f.Outcome, Envelope: w.envelope(f.reason(), first, now)}
			s.Envelope.Errors = append([]string{err.Error()}, s.Envelope.Errors...)
			err = c.broker.Settle(ctx, w.d, s)
		}
		if errors.Is(err, ErrLost) {
			lost = err
			return nil
		}
		// An adapter's errors are its client's, which this package does not know. And a permanent
		// refusal (a queue is missing) may be mended while the message is held.
		return lull.Transient(err)
	}, lull.Operation("settle"))
	switch {
	case lost != nil:
		c.histories.lost(w, f)
		e.Kind, e.Err = EventLeaseLost, w.lostBecause(lost)
	case err != nil:
		e.Kind, e.Err = EventSettleFailed, err
		c.histories.lost(w, f)
		defer w.awaitGiveBack()
	default:
		c.histories.settled(w, f.Outcome)
	}
	c.notify(e)
}

// awaitGiveBack waits until the broker takes back a message that could not be
// settled, since it counts towards Config.Concurrency until then.
func (w *workInHand) awaitGiveBack() {
	rest := GiveBackAfter
	if end := w.lease.end(); !end.IsZero() {
		rest = time.Until(end)
	}
	select {
	case <-time.After(rest):
	case <-w.c.stopping:
	}
}

// lostBecause returns why a delivery is lost, joined with the handler's error. answer is the
// broker's, or nil.
func (w *workInHand) lostBecause(answer error) error {
	why := w.lease.lossReason()
	if answer != nil && w.lease.held() {
		why = fmt.Errorf("%w: %w", ErrLeaseLost, answer)
	}
	return errors.Join(why, w.err)
}

func (w *workInHand) envelope(reason string, first, now time.Time) *Envelope {
	e := &Envelope{
		Reason: reason, Code: w.verdict.Code, Errors: errorTexts(w.err), Attempts: w.attempt,
		FirstFailure: first, LastFailure: now, Source: w.c.name, OriginalID: w.m.ID, Redrives: w.m.Redrives,
		TraceParent: w.d.Headers["traceparent"], TraceState: w.d.Headers["tracestate"],
	}
	if reason == ReasonExpired && w.tries == 0 {
		e.Attempts-- // the handler did not run
		e.LastFailure = time.Time{}
	}
	if reason == ReasonCrashed {
		e.Attempts-- // the handler did not run
		if c := w.c.capabilities; c.Losses {
			e.Attempts += w.crashes
		}
		if e.FirstFailure.IsZero() {
			e.FirstFailure = w.d.FirstSeen
		}
		e.LastFailure = time.Time{} // nobody saw it
	}
	return e
}

// event fills in what all events of the message have in common.
func (w *workInHand) event(e Event) Event {
	e.ID, e.Attempt, e.Tries, e.Elapsed = w.m.ID, w.attempt, w.tries, w.elapsed
	return e
}
