package lull_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/check"
)

// Rule 17: the driver's own time between attempts is part of the wait, and a call ends at its
// deadline, however long that takes.
func TestRule17WhatIsDiscardedIsPartOfTheWait(t *testing.T) {
	for name, c := range map[string]struct {
		discard, observer time.Duration
		took              time.Duration // the call
		attempts          int
	}{
		"nothing to do":                  {0, 0, 1500 * ms, 2},
		"less than the wait":             {time.Second, 0, 1500 * ms, 2},
		"with an observer":               {time.Second, 200 * ms, 1500 * ms, 2},
		"more than the wait":             {1700 * ms, 0, 1700 * ms, 2},
		"an observer alone":              {0, 1700 * ms, 1700 * ms, 2},
		"all that is left":               {time.Minute, 0, 2 * time.Second, 1},
		"an observer that takes it all":  {0, 3 * time.Second, 3 * time.Second, 1},
		"both":                           {time.Minute, time.Second, 2 * time.Second, 1},
		"an observer, and then nothing":  {time.Minute, 2500 * ms, 2500 * ms, 1},
		"an observer, and then a little": {100 * ms, 1900 * ms, 2 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := observe(func(_ context.Context, e lull.Event) {
					if e.Kind == event.RetryScheduled {
						time.Sleep(c.observer)
					}
				})
				d := newDependency(t, lull.Policy{Deadline: 2 * time.Second, AttemptTimeout: 2 * time.Second, Budget: plenty, Backoff: backoff.Schedule{Base: 1500 * ms, Cap: 1500 * ms, Jitter: backoff.None}}, lull.WithObserver(slow))
				start, attempts := time.Now(), 0
				r := d.Drive(t.Context(), engine.Spec{}, func(context.Context) lull.Verdict {
					if attempts++; attempts == 1 {
						return transient
					}
					return lull.Verdict{Kind: lull.KindSuccess}
				}, func(within time.Duration) { time.Sleep(min(c.discard, within)) }, nil)
				want := engine.Success
				if c.attempts == 1 {
					want = engine.Deadline
				}
				if took := time.Since(start); took != c.took || attempts != c.attempts || r.Reason != want {
					t.Errorf("%v after %v and %d attempts, want %v, %v, %d", r.Reason, took, attempts, want, c.took, c.attempts)
				}
			})
		})
	}
}

// until is a context with a deadline of its own word.
type until struct {
	context.Context
	at time.Time
}

func (u until) Deadline() (time.Time, bool) { return u.at, true }

// A deadline without a monotonic reading (parsed, or from a wire) is measured with the wall
// clock of now. The wall clock when the dependency was made does not matter. If the deadline
// is past while the context lives, the wall clock was set, and the context ends by itself.
func TestADeadlineWithoutAMonotonicReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{})
		time.Sleep(time.Minute)
		for left, want := range map[time.Duration]time.Duration{
			30*time.Second - time.Hour: 10 * time.Second, // the wall clock was set forward: the attempt's timeout alone
			5 * time.Second:            5 * time.Second,
			time.Hour:                  10 * time.Second,
			math.MaxInt64:              10 * time.Second,
		} {
			ctx := until{t.Context(), time.Now().Add(left).Round(0)}
			n, start := 0, time.Now()
			err := lull.Run(ctx, d, func(ctx context.Context) error {
				n++
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(want - 1):
					return nil
				}
			})
			if n != 1 || err != nil {
				t.Errorf("a deadline %v ahead: %d attempts, after %v: %v", left, n, time.Since(start), err)
			}
			var has time.Time
			ctx.at = time.Now().Add(left).Round(0)
			lull.Run(ctx, d, func(ctx context.Context) error {
				has, _ = ctx.Deadline()
				return nil
			})
			if got := time.Until(has); got != want && left != 30*time.Second-time.Hour {
				t.Errorf("a deadline %v ahead: the attempt's is %v ahead, want %v", left, got, want)
			}
		}
	})
	d := newDependency(t, lull.Policy{})
	with := time.Now().Add(-time.Second) //clock: outside of a bubble it has a monotonic reading, and the past stays past
	if err := lull.Run(until{t.Context(), with}, d, succeed); !errors.Is(err, lull.ErrDeadline) {
		t.Errorf("a deadline that is past: %v", err)
	}
}

// AttemptTimeout bounds the time without progress, and the call's deadline the whole attempt.
func TestProgressRestartsTheAttemptsTimeout(t *testing.T) {
	for _, c := range []struct {
		name     string
		pieces   int // each after 60 ms, and then silence
		watched  bool
		ctx      time.Duration
		progress bool
		want     time.Duration
	}{
		{"without", 8, true, 0, false, 100 * time.Millisecond},
		{"with", 8, true, 0, true, 580 * time.Millisecond},
		{"nobody watches the context", 8, false, 0, true, 580 * time.Millisecond},
		{"up to the call's deadline", 50, true, 0, true, time.Second},
		{"up to the caller's deadline", 50, true, 250 * time.Millisecond, true, 250 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDependency(t, lull.Policy{Attempts: 1, AttemptTimeout: 100 * time.Millisecond, Deadline: time.Second})
				ctx := t.Context()
				if c.ctx > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.ctx)
					defer cancel()
				}
				start := time.Now()
				var ended time.Duration
				err := lull.Run(ctx, d, func(ctx context.Context) error {
					if c.watched {
						ctx.Done()
					}
					for range c.pieces {
						time.Sleep(60 * time.Millisecond)
						if ctx.Err() != nil {
							break
						}
						if c.progress {
							lull.Progress(ctx)
						}
					}
					if c.watched {
						<-ctx.Done()
					} else {
						for ctx.Err() == nil {
							time.Sleep(time.Millisecond)
						}
					}
					ended = time.Since(start)
					lull.Progress(ctx) // too late
					return context.Cause(ctx)
				})
				// Who looks only now and then sees the end up to 60 ms late.
				if !errors.Is(err, context.DeadlineExceeded) || ended < c.want || ended > c.want+60*time.Millisecond {
					t.Errorf("the attempt ended after %v, %v; want %v", ended, err, c.want)
				}
			})
		})
	}
}

// Progress does nothing without a timeout.
func TestProgressOfNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lull.Progress(t.Context())
		d := newDependency(t, lull.Policy{AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout})
		attempts := 0
		err := lull.Run(t.Context(), d, func(ctx context.Context) error {
			if attempts++; attempts == 1 {
				lull.Progress(ctx)
				return lull.Transient(errors.New("once"))
			}
			lull.Progress(ctx)
			if _, bounded := ctx.Deadline(); bounded {
				t.Error("Progress made a deadline")
			}
			return nil
		})
		if err != nil || attempts != 2 {
			t.Errorf("%v after %d attempts", err, attempts)
		}
	})
}

// Continue reports as Drive does: the attempts that were made, also if the caller has gone by then; a
// fallback that was announced; and that nobody knows what came of a write.
func TestContinueReportsLikeDrive(t *testing.T) {
	cut := lull.Verdict{Kind: lull.KindTransient, Code: "unexpected_eof"}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx               context.Context
		spec              engine.Spec
		reason            lull.Reason
		fallback, unknown bool
	}{
		"the attempts are used up": {ctx: t.Context(), spec: engine.Spec{Fallback: true}, reason: engine.AttemptsExhausted, fallback: true},
		"the caller has gone":      {ctx: gone, spec: engine.Spec{Fallback: true}, reason: engine.Canceled},
		"a write":                  {ctx: t.Context(), spec: engine.Spec{Fallback: true, NotIdempotent: true}, reason: engine.NotIdempotent, unknown: true},
	} {
		var end lull.Event
		d, err := lull.NewDependency("files", lull.Policy{Attempts: 2}, lull.WithObserver(observe(func(_ context.Context, e lull.Event) { end = e })))
		if err != nil {
			t.Fatal(err)
		}
		r := d.Continue(c.ctx, c.spec, 2, cut, nil, nil, nil)
		if r.Reason != c.reason || r.Attempts != 2 || r.OutcomeUnknown != c.unknown || r.Degrades() != c.fallback {
			t.Errorf("%s: %+v", name, r)
		}
		check.Equal(t, end.EndedAttempt, 0, "%s: the attempt whose end is reported: Drive has reported it", name)
		if end.Kind != event.CallEnded || end.Attempt != 2 || end.Fallback != c.fallback || end.OutcomeUnknown != c.unknown {
			t.Errorf("%s: %+v", name, end)
		}
	}
}
