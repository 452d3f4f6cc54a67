package bulkhead

import (
	"context"
	"errors"
	"time"
)

// ErrFull: there was no permit, and the caller could not wait, or waited in vain.
var ErrFull = errors.New("bulkhead: too many calls in flight")

// Acquire is a driver in real time, for tests: it takes a permit, waiting for one no longer
// than MaxWait. The error is ErrFull, or that of ctx. With an error there is no permit, even
// if it arrived in the moment in which ctx ended: it has gone to the next.
func (l *Limiter) Acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.TryAcquire() {
		return nil
	}
	if l.maxWait <= 0 {
		return ErrFull
	}
	return l.wait(ctx)
}

func (l *Limiter) wait(ctx context.Context) error {
	ready := make(chan struct{})
	w := Waiter{Admit: func() { close(ready) }}
	switch l.Join(0, &w) {
	case Admitted:
		return nil
	case Refused:
		return ErrFull
	}
	timer := time.NewTimer(l.maxWait) //clock: no test asserts anything about when it fires
	defer timer.Stop()
	select {
	case <-ready:
	case <-timer.C:
	case <-ctx.Done():
	}
	left := l.Leave(&w)
	err := ctx.Err()
	switch {
	case err != nil && !left:
		l.Release()
	case err == nil && left:
		err = ErrFull
	}
	return err
}
