package idempotency

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrLeaseLost is the cause (context.Cause) with which a handler's context ends when
// its lease could not be extended in time and another may have taken over. If another
// certainly has taken over, the cause is ErrFenced.
var ErrLeaseLost = errors.New("idempotency: the lease could not be extended, and another request may have taken over")

// lease is extended every third of its length for as long as the handler runs, and
// every sixth while that fails, by a timer: a handler that is done sooner never needs
// a goroutine.
type lease struct {
	m             *Middleware
	claim         *Claim
	cancelHandler context.CancelCauseFunc // of the handler's context

	mu         sync.Mutex
	timer      *time.Timer
	ctx        context.Context // of the calls to the store
	stopped    bool
	cancel     context.CancelFunc
	validUntil time.Time // as far as this process knows
}

// holdLease extends the lease of c, which was claimed after began, until stop.
func (m *Middleware) holdLease(ctx context.Context, c *Claim, began time.Time, cancelHandler context.CancelCauseFunc) *lease {
	l := &lease{m: m, claim: c, cancelHandler: cancelHandler, validUntil: began.Add(c.Lease)}
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.mu.Lock()
	l.timer = time.AfterFunc(c.Lease/3, l.extend)
	l.mu.Unlock()
	return l
}

func (l *lease) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.timer.Stop()
	l.cancel()
}

// extend extends the lease once, and sets the timer for the next time.
func (l *lease) extend() {
	c := l.claim
	began := time.Now()
	ctx, cancel := context.WithTimeout(l.ctx, c.Lease/6)
	err := l.m.store.Extend(ctx, c.Key, c.Token, c.Lease, c.Retention)
	cancel()

	l.mu.Lock()
	defer l.mu.Unlock()
	next := c.Lease / 6
	switch {
	case l.stopped:
		return
	case err == nil:
		next = c.Lease / 3
		l.validUntil = began.Add(c.Lease)
	case errors.Is(err, ErrFenced):
		l.cancelHandler(ErrFenced)
		return
	case c.Resume && !time.Now().Before(l.validUntil):
		// Without Resume nobody can take over, so the handler continues.
		l.cancelHandler(ErrLeaseLost)
		return
	}
	l.timer.Reset(max(0, next-time.Since(began)))
}
