package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/engine/consumers"
)

// lease keeps one delivery. A timer extends it every third of its length, and every sixth while that fails, until stop.
// gone is closed when the work under it must end: the lease is lost, or lapses after the margin.
type lease struct {
	c *Consumer
	d *Delivery

	calls sync.Mutex // held during Extend: there is one at a time, and none once stopped

	mu    sync.Mutex
	until time.Time // zero: never
	consumers.Lease
	bound          bool // a handler runs, and its context ends before the lease
	stopped        bool
	lost           bool          // by the broker's report
	why            error         // it is lost, or ended
	ending         bool          // gone is closed
	gone           chan struct{} // closed when the work under it must end
	unwatch        func() bool   // of Delivery.Held
	heartbeatTimer *time.Timer
	expiryTimer    *time.Timer
	ctx            context.Context // of the calls of Extend
	cancel         context.CancelFunc
}

func (c *Consumer) hold(d *Delivery) *lease {
	l := &lease{c: c, d: d, until: d.Lease, gone: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(c.calls)
	l.mu.Lock()
	defer l.mu.Unlock()
	if d.Held != nil {
		l.unwatch = context.AfterFunc(d.Held, func() { l.markLost(context.Cause(d.Held)) })
	}
	if l.until.IsZero() {
		return l
	}
	left := time.Until(l.until)
	l.Lease = consumers.NewLease(left, c.config.Lease, c.config.Margin, c.capabilities.Extends)
	l.expiryTimer = time.AfterFunc(left-l.Margin(), l.expire)
	if !l.Final {
		l.heartbeatTimer = time.AfterFunc(l.AfterExtension(false), l.heartbeat)
	}
	return l
}

func (l *lease) describe(d *engine.Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d.Ending, d.Lease, d.KeepLeft = l.ending, l.First, engine.Never
	if !l.until.IsZero() && l.Final {
		d.KeepLeft = time.Until(l.until) - l.Margin()
	}
}

// end returns when the lease lapses. Zero: never.
func (l *lease) end() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}

// boundHandler(true) returns when the handler's context must end before a lease that cannot be extended, else zero. Its
// timeout ends it then, so expire closes gone only when the lease lapses. boundHandler(false): the handler has returned.
func (l *lease) boundHandler(yes bool) (t time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bound = yes && l.Final
	if !l.bound && l.expiryTimer != nil {
		l.expiryTimer.Reset(time.Until(l.until) - l.Margin())
	}
	if !l.until.IsZero() && l.Final {
		t = l.until.Add(-l.Margin())
	}
	return t
}

// stop ends the heartbeat, and waits for the one under way. It reports whether the lease
// is still held, as far as is known.
func (l *lease) stop() (held bool) {
	l.mu.Lock()
	l.stopped = true
	l.stopTimers()
	if l.unwatch != nil {
		l.unwatch()
	}
	l.cancel()
	l.mu.Unlock()
	l.calls.Lock()
	defer l.calls.Unlock()
	return l.held()
}

// held reports whether the delivery is still this consumer's, as far as is known.
func (l *lease) held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.lost && (l.until.IsZero() || time.Now().Before(l.until))
}

// markLost is called when the broker reports that the delivery is lost.
func (l *lease) markLost(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost, l.why = true, why
	l.finish()
}

// lossReason returns why the work under it must end: ErrLeaseLost, and what is known of the reason.
func (l *lease) lossReason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == nil {
		return ErrLeaseLost
	}
	return fmt.Errorf("%w: %w", ErrLeaseLost, l.why)
}

// stopTimers stops the timers, with l.mu held.
func (l *lease) stopTimers() {
	for _, t := range []*time.Timer{l.heartbeatTimer, l.expiryTimer} {
		if t != nil {
			t.Stop()
		}
	}
}

// finish closes gone, with l.mu held.
func (l *lease) finish() {
	if !l.ending && !l.stopped {
		l.ending = true
		close(l.gone)
		l.stopTimers()
	}
}

// expire is the timer for a lease that was not extended in time.
func (l *lease) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped || l.ending {
		return
	}
	left := time.Until(l.until)
	if !l.bound {
		left -= l.Margin()
	}
	if left > 0 {
		l.expiryTimer.Reset(left) // it was extended meanwhile, or the handler's context ends by itself
		return
	}
	l.finish()
}

func (l *lease) heartbeat() {
	l.mu.Lock()
	if l.stopped || l.ending || l.Final || l.c.abandoned.Load() {
		l.mu.Unlock()
		return
	}
	if wait := l.UntilExtension(time.Until(l.until)); wait > 0 {
		l.heartbeatTimer.Reset(wait)
		l.mu.Unlock()
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, l.AnswerTimeout())
	l.mu.Unlock()
	began := time.Now()
	err := l.extend(ctx, l.c.config.Lease)
	cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped || l.ending || l.Final {
		return
	}
	l.heartbeatTimer.Reset(max(l.AfterExtension(err != nil)-time.Since(began), 0))
}

func (l *lease) extendBy(ctx context.Context, d time.Duration) error {
	l.mu.Lock()
	never, final, ending := l.until.IsZero(), l.Final, l.ending
	l.mu.Unlock()
	switch {
	case ending:
		return ErrLeaseLost
	case never:
		return nil
	case final:
		return errors.New("queue: this lease cannot be extended")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)() // the settlement does not wait for it
	return l.extend(ctx, max(d, l.c.config.Lease))
}

func (l *lease) isEnding() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ending
}

func (l *lease) extend(ctx context.Context, length time.Duration) error {
	l.calls.Lock()
	defer l.calls.Unlock()
	l.mu.Lock()
	stopped := l.stopped
	l.mu.Unlock()
	if stopped {
		return ErrLeaseLost // by a handler that has returned: the message is being settled
	}
	began := time.Now()
	until, err := l.c.broker.Extend(ctx, l.d, length)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.Is(err, ErrLost):
		l.lost, l.why = true, err
		l.finish()
		return err
	case err != nil:
		l.why = err // if it lapses, because of this
		return err
	}
	l.why = nil
	l.until = until
	l.Extended(length, until.Sub(began))
	l.expiryTimer.Reset(time.Until(until) - l.Margin())
	return nil
}
