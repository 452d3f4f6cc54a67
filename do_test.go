package lull_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/driver"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

var errBlip = errors.New("blip")

// plenty is a budget that no test here can exhaust.
var plenty = budget.Config{Ratio: 4, Stock: 100}

func newDependency(t testing.TB, p lull.Policy, opts ...lull.Option) *lull.Dependency {
	t.Helper()
	return must.Have(lull.NewDependency("payments", p, append([]lull.Option{lull.WithRand(seed.Source(t))}, opts...)...))
}

// middle is a source of randomness that always draws the middle.
func middle() uint64 { return 1 << 63 }

func TestDoWaitsBetweenAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{Budget: plenty, Backoff: backoff.Schedule{Jitter: backoff.None}})
		start := time.Now()
		var at []time.Duration
		got, err := lull.Do(t.Context(), d, func(context.Context) (string, error) {
			at = append(at, time.Since(start))
			if len(at) < 3 {
				return "", lull.Transient(errBlip)
			}
			return "done", nil
		})
		if got != "done" || err != nil {
			t.Errorf("Do = %q, %v", got, err)
		}
		check.Slices(t, at, []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond}, "attempts at")
	})
}

func TestDoReturnsTheReason(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for name, c := range map[string]struct {
		policy   lull.Policy
		opts     []lull.CallOption
		err      error
		reason   error
		attempts int
	}{
		"unknown error":                     {err: errBlip, reason: lull.ErrPermanent, attempts: 1},
		"marked permanent":                  {err: lull.Permanent(lull.Transient(errBlip)), reason: lull.ErrPermanent, attempts: 1},
		"attempts":                          {err: lull.Transient(errBlip), reason: lull.ErrAttemptsExhausted, attempts: engine.DefaultAttempts},
		"known network error":               {err: refused, reason: lull.ErrAttemptsExhausted, attempts: engine.DefaultAttempts},
		"schedule gives up":                 {policy: lull.Policy{Attempts: 9, Backoff: backoff.Schedule{Kind: backoff.Immediate}}, err: lull.Transient(errBlip), reason: lull.ErrAttemptsExhausted, attempts: 2},
		"budget":                            {policy: lull.Policy{Budget: budget.Config{Ratio: budget.MinRatio, Window: 10 * time.Second}}, err: lull.Transient(errBlip), reason: lull.ErrBudgetExhausted, attempts: 1},
		"not idempotent":                    {opts: []lull.CallOption{lull.NotIdempotent()}, err: lull.Transient(errBlip), reason: lull.ErrNotIdempotent, attempts: 1},
		"not idempotent, but never sent":    {opts: []lull.CallOption{lull.NotIdempotent()}, err: lull.NeverSent(errBlip), reason: lull.ErrAttemptsExhausted, attempts: engine.DefaultAttempts},
		"not idempotent, refused":           {opts: []lull.CallOption{lull.NotIdempotent()}, err: refused, reason: lull.ErrAttemptsExhausted, attempts: engine.DefaultAttempts},
		"hint too long":                     {err: lull.RetryAfter(errBlip, time.Minute), reason: lull.ErrHintTooLong, attempts: 1},
		"hint crosses the deadline":         {policy: lull.Policy{Deadline: 10 * time.Second}, err: lull.RetryAfter(errBlip, 11*time.Second), reason: lull.ErrDeadline, attempts: 1},
		"breaker opens on the first result": {policy: lull.Policy{Breaker: breaker.Config{Consecutive: 1, ConsecutiveFor: -1, OpenFor: time.Second}}, err: lull.Transient(errBlip), reason: lull.ErrAttemptsExhausted, attempts: engine.DefaultAttempts},
		"another dependency behind it":      {err: &lull.Error{Reason: engine.AttemptsExhausted, Last: lull.Transient(nil)}, reason: lull.ErrPermanent, attempts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := c.policy
				if p.Budget == (budget.Config{}) {
					p.Budget = plenty
				}
				d := newDependency(t, p)
				n := 0
				err := lull.Run(t.Context(), d, func(context.Context) error { n++; return c.err }, append(c.opts, lull.Operation("charge"))...)
				var e *lull.Error
				if !errors.As(err, &e) {
					t.Fatalf("error is %v", err)
				}
				if !errors.Is(err, c.reason) || n != c.attempts || e.Attempts != n {
					t.Errorf("%d attempts, %q; want %d and %q", n, err, c.attempts, c.reason)
				}
				if !errors.Is(err, c.err) {
					t.Errorf("the last error %v is lost from %v", c.err, err)
				}
				if !strings.HasPrefix(err.Error(), "payments: charge: ") {
					t.Errorf("error %q does not say which operation", err)
				}
			})
		})
	}
}

// Rule 2: a wait that would cross the deadline is not begun; the reason and the
// last error come back at once.
func TestRule02NoWaitIntoTheDeadline(t *testing.T) {
	long := backoff.Schedule{Kind: backoff.Constant, Base: 10 * time.Second, Jitter: backoff.None}
	for name, c := range map[string]struct {
		policy lull.Policy
		within time.Duration // of the caller's context
	}{
		"the caller's deadline": {lull.Policy{Backoff: long, Budget: plenty}, 300 * time.Millisecond},
		"the policy's deadline": {lull.Policy{Backoff: long, Budget: plenty, Deadline: 300 * time.Millisecond}, 0},
		"exactly at it":         {lull.Policy{Backoff: long, Budget: plenty, Deadline: 10 * time.Second}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if c.within > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.within)
					defer cancel()
				}
				d := newDependency(t, c.policy)
				start := time.Now()
				err := lull.Run(ctx, d, func(context.Context) error { return lull.Transient(errBlip) })
				check.Equal(t, time.Since(start), 0, "slept")
				if !errors.Is(err, lull.ErrDeadline) || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errBlip) {
					t.Errorf("error %v, want the deadline and the last error", err)
				}
			})
		})
	}
}

func TestASuccessIsNotThrownAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{})
		ctx, cancel := context.WithCancel(t.Context())
		got, err := lull.Do(ctx, d, func(context.Context) (int, error) { cancel(); return 7, nil })
		if got != 7 || err != nil {
			t.Errorf("Do = %v, %v; the operation succeeded", got, err)
		}
	})
}

func TestAContextThatHasEndedMakesNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{})
		why := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		err := lull.Run(ctx, d, func(context.Context) error { t.Error("an attempt was made"); return nil })
		if !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
			t.Errorf("error %v", err)
		}
	})
}

func TestTheLastErrorSurvivesCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{Budget: plenty, Backoff: backoff.Schedule{Jitter: backoff.None}})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(30*time.Millisecond, cancel)
		start := time.Now()
		err := lull.Run(ctx, d, func(context.Context) error { return lull.Transient(errBlip) })
		if !errors.Is(err, errBlip) || !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want both the last error and the cancellation", err)
		}
		check.Equal(t, time.Since(start), 30*time.Millisecond, "returned after")
	})
}

func TestAPanicGivesEverythingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{
			Breaker: breaker.Config{Consecutive: 1, ConsecutiveFor: -1, OpenFor: time.Second, OpenJitter: -1},
			Limit:   bulkhead.Config{InFlight: 1},
			Budget:  plenty,
		})
		call := func(op func() error) (panicked any, err error) {
			defer func() { panicked = recover() }()
			return nil, lull.Run(t.Context(), d, func(context.Context) error { return op() })
		}
		call(func() error { return lull.Transient(errBlip) }) // it opens the breaker
		time.Sleep(time.Second)                               // the next call is a probe
		for range 3 {
			if p, _ := call(func() error { panic("boom") }); p != "boom" {
				t.Fatalf("the panic did not come through: %v", p)
			}
			if n := d.Limiter().InFlight(); n != 0 {
				t.Fatalf("%d permits are still out", n)
			}
		}
		if _, err := call(func() error { return nil }); err != nil {
			t.Errorf("after the panics: %v; the probe's place was not given back", err)
		}
	})
}

func TestWaitingHoldsNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{
			Limit:   bulkhead.Config{InFlight: 1},
			Backoff: backoff.Schedule{Kind: backoff.Constant, Base: time.Second, Jitter: backoff.None},
			Budget:  plenty,
		})
		go lull.Run(t.Context(), d, func(context.Context) error { return lull.Transient(errBlip) })
		time.Sleep(500 * time.Millisecond) // the call above waits for its second attempt
		check.Equal(t, lull.Run(t.Context(), d, func(context.Context) error { return nil }), nil, "a call beside one that waits")
		time.Sleep(time.Minute)
	})
}

func TestTheConcurrencyLimit(t *testing.T) {
	for name, c := range map[string]struct {
		maxWait time.Duration
		end     func(context.Context) (context.Context, context.CancelFunc)
		want    error
		at      time.Duration
	}{
		"refuses at once":    {0, context.WithCancel, lull.ErrLimited, 0},
		"waits in vain":      {time.Second, context.WithCancel, lull.ErrLimited, time.Second},
		"waits for its turn": {3 * time.Second, context.WithCancel, nil, 2 * time.Second},
		"goes away": {time.Minute, func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, context.Canceled, time.Second},
		"runs out of time": {time.Minute, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, lull.ErrDeadline, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDependency(t, lull.Policy{Limit: bulkhead.Config{InFlight: 1, MaxWait: c.maxWait}, Breaker: breaker.Config{Consecutive: 1, ConsecutiveFor: -1, OpenFor: time.Second}})
				go lull.Run(t.Context(), d, func(context.Context) error { time.Sleep(2 * time.Second); return nil })
				synctest.Wait()
				ctx, cancel := c.end(t.Context())
				defer cancel()
				start := time.Now()
				called := false
				err := lull.Run(ctx, d, func(context.Context) error { called = true; return nil })
				if !errors.Is(err, c.want) || called != (c.want == nil) || time.Since(start) != c.at {
					t.Errorf("%v after %v, called: %v; want %v after %v", err, time.Since(start), called, c.want, c.at)
				}
				time.Sleep(time.Minute)
				check.Equal(t, d.Limiter().InFlight()+d.Limiter().Waiting(), 0, "places are still taken")
				check.Equal(t, d.Breaker().State(d.Now()), breaker.Closed, "the circuit after a call that was never made")
			})
		})
	}
}

// A Call that was never started is Done.
func TestTheZeroCall(t *testing.T) {
	var c engine.Call
	w := &bulkhead.Waiter{}
	for name, step := range map[string]engine.Step{
		"Attempt":    c.Attempt(1, nil),
		"Queue":      c.JoinQueue(1, w, nil),
		"LeaveQueue": c.LeaveQueue(1, w, engine.Limited, nil),
		"Next":       c.Next(1, lull.Verdict{Kind: lull.KindTransient}, nil),
		"Stop":       c.Stop(1, engine.Canceled, nil),
	} {
		if !step.Done {
			t.Errorf("%s: %+v", name, step)
		}
	}
	c.Abandon(1)
}

// A circuit that opens while a call waits stops its retry.
func TestARetryStopsWhenTheCircuitOpensMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{Budget: plenty, Backoff: backoff.Schedule{Kind: backoff.Constant, Base: time.Second, Jitter: backoff.None}})
		time.AfterFunc(500*time.Millisecond, func() { d.Breaker().ForceOpen(d.Now()) })
		n := 0
		err := lull.Run(t.Context(), d, func(context.Context) error { n++; return lull.Transient(errBlip) })
		if n != 1 || !errors.Is(err, lull.ErrCircuitOpen) || !errors.Is(err, errBlip) {
			t.Errorf("%d attempts, %v", n, err)
		}
	})
}

func TestWhatCountsAgainstTheDependency(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	for name, c := range map[string]struct {
		ctx   context.Context
		op    func(context.Context) error
		opens bool
	}{
		"transient failure": {t.Context(), func(context.Context) error { return lull.Transient(errBlip) }, true},
		"timeout":           {t.Context(), func(context.Context) error { return context.DeadlineExceeded }, true},
		"known refusal":     {t.Context(), func(context.Context) error { return lull.Permanent(errBlip) }, false},
		"unknown error":     {t.Context(), func(context.Context) error { return errBlip }, false},
		"cancelled":         {ended, func(ctx context.Context) error { cancel(); return lull.Transient(ctx.Err()) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			// It is on the real clock, and must stay open until it is asked.
			d := newDependency(t, lull.Policy{Attempts: 1, Breaker: breaker.Config{Consecutive: 1, ConsecutiveFor: -1, OpenFor: time.Hour}})
			lull.Run(c.ctx, d, c.op)
			check.Equal(t, d.Breaker().State(d.Now()) == breaker.Open, c.opens, "the breaker is open")
		})
	}
}

func TestAttemptInformation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{Attempts: 3, Budget: plenty, Backoff: backoff.Schedule{Kind: backoff.Constant}})
		inner := newDependency(t, lull.Policy{AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout})
		var seen []string
		lull.Run(t.Context(), d, func(ctx context.Context) error {
			a, ok := lull.AttemptFrom(ctx)
			seen = append(seen, fmt.Sprint(a.Operation, " ", a.Number, "/", a.Of, " ", ok))
			// A call inside is a call of its own: its first attempt is number 1.
			lull.Run(ctx, inner, func(ctx context.Context) error {
				if a, _ := lull.AttemptFrom(ctx); a.Number != 1 || a.Of != engine.DefaultAttempts {
					t.Errorf("inside attempt %d another call's first attempt is %+v", len(seen), a)
				}
				return nil
			})
			return lull.Transient(errBlip)
		}, lull.Operation("charge"))
		check.Slices(t, seen, []string{"charge 1/3 true", "charge 2/3 true", "charge 3/3 true"}, "attempts saw")
		if a, ok := lull.AttemptFrom(t.Context()); ok || a.Number != 1 {
			t.Errorf("a context of no attempt: %+v, %v", a, ok)
		}
	})
}

func TestDetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{AttemptTimeout: time.Second})
		var stream context.Context
		var detached driver.Detached
		lull.Run(t.Context(), d, func(ctx context.Context) error {
			stream, detached = ctx, driver.Detach(ctx)
			return nil
		})
		time.Sleep(time.Minute)
		check.Equal(t, stream.Err(), nil, "the stream's context")
		detached.Release()
		<-stream.Done()
		detached.Release()
		driver.Detach(t.Context()).Release() // of no attempt
	})
}

// The context of an attempt must behave like one of the context package's own.
func TestAttemptContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{AttemptTimeout: time.Second, Attempts: 1})
		type key struct{}
		parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		defer cancel()
		run := func(op func(context.Context)) {
			lull.Run(parent, d, func(ctx context.Context) error { op(ctx); return nil })
		}
		run(func(ctx context.Context) {
			check.Equal(t, ctx.Value(key{}), "value", "the caller's values are gone")
			child, stop := context.WithCancel(ctx)
			defer stop()
			time.Sleep(time.Second)
			<-child.Done()
			if child.Err() != context.DeadlineExceeded || ctx.Err() != context.DeadlineExceeded {
				t.Errorf("after the timeout: %v, and %v in a child", ctx.Err(), child.Err())
			}
		})
		run(func(ctx context.Context) {
			time.Sleep(2 * time.Second)
			check.Equal(t, ctx.Err(), context.DeadlineExceeded, "nobody watched: Err")
			<-ctx.Done()
		})
		var after context.Context
		var child context.Context
		run(func(ctx context.Context) {
			var stop context.CancelFunc
			child, stop = context.WithCancel(ctx)
			context.AfterFunc(child, stop)
			after = ctx
		})
		<-child.Done()
		check.Equal(t, after.Err(), context.Canceled, "after the attempt returned")
	})
}

// eventLog remembers events.
type eventLog struct {
	mu     sync.Mutex
	events []lull.Event
}

func (l *eventLog) Observe(_ context.Context, e lull.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

func TestEventsOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log, second eventLog
		d := newDependency(t, lull.Policy{
			Attempts: 2, Budget: budget.Config{Stock: 1, Window: 10 * time.Second},
			Breaker: breaker.Config{Consecutive: 2, ConsecutiveFor: -1, OpenFor: time.Hour, OpenMax: time.Hour, OpenJitter: -1},
		}, lull.WithObserver(&log), lull.WithObserver(&second), lull.WithRand(middle), lull.WithClassifier(func(error) lull.Verdict {
			return lull.Verdict{Kind: lull.KindTransient, Code: "503", After: time.Second}
		}))
		fail := func(context.Context) error { return errBlip }
		lull.Run(t.Context(), d, fail)
		lull.Run(t.Context(), d, fail)
		lull.Run(t.Context(), d, fail)
		var got []string
		for _, e := range log.events {
			switch e.Kind {
			case event.RetryScheduled, event.RetryStarted:
				got = append(got, fmt.Sprint(e.Kind, " ", e.Attempt, "/", e.MaxAttempts, " hint ", e.Verdict.After, " ", e.Ceiling, "→", e.Delay, " slept ", e.Slept, ": ", e.Err))
			case event.CircuitChanged:
				got = append(got, fmt.Sprint(e.Kind, " ", e.Circuit.From, "→", e.Circuit.To))
			default:
				got = append(got, fmt.Sprint(e.Kind, " ", e.Reason, " after ", e.Attempt))
			}
		}
		want := []string{
			"retry_scheduled 1/2 hint 1s 1s→1.5s slept 0s: blip",
			"retry_started 2/2 hint 1s 1s→1.5s slept 1.5s: blip",
			"call_ended attempts_exhausted after 2",
			"circuit_changed closed→open",
			"budget_exhausted budget_exhausted after 1",
			"call_ended budget_exhausted after 1",
			"call_ended circuit_open after 0",
		}
		if !slices.Equal(got, want) {
			t.Errorf("events:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		check.Equal(t, len(second.events), len(log.events), "events that the second observer saw")
	})
}

// The failed attempts stand only in the event of the call's end, not in that of the budget before
// it.
func TestEarlierAttemptsAreReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log eventLog
		d := newDependency(t, lull.Policy{Budget: budget.Config{Stock: 1}}, lull.WithObserver(&log))
		lull.Run(t.Context(), d, func(context.Context) error { return lull.Transient(errBlip) })
		earlier := map[event.Kind]bool{}
		for _, e := range log.events {
			earlier[e.Kind] = e.Earlier != nil
		}
		if exhausted, is := earlier[event.BudgetExhausted]; !is || exhausted || !earlier[event.CallEnded] {
			t.Errorf("%v", earlier)
		}
	})
}

func TestMarks(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want lull.Verdict
	}{
		"transient":        {lull.Transient(errBlip), lull.Verdict{Kind: lull.KindTransient, Code: "transient"}},
		"permanent":        {lull.Permanent(errBlip), lull.Verdict{Kind: lull.KindPermanent, Code: "permanent"}},
		"after":            {lull.RetryAfter(errBlip, time.Second), lull.Verdict{Kind: lull.KindRateLimited, Code: "rate_limited", After: time.Second}},
		"after, negative":  {lull.RetryAfter(errBlip, -1), lull.Verdict{Kind: lull.KindRateLimited, Code: "rate_limited"}},
		"never sent":       {lull.NeverSent(errBlip), lull.Verdict{Kind: lull.KindTransient, Code: "never_sent", NeverSent: true}},
		"combined":         {lull.RetryAfter(lull.NeverSent(errBlip), 1), lull.Verdict{Kind: lull.KindRateLimited, Code: "never_sent", After: 1, NeverSent: true}},
		"combined, wraps":  {fmt.Errorf("reading: %w", lull.NeverSent(lull.Transient(errBlip))), lull.Verdict{Kind: lull.KindTransient, Code: "transient", NeverSent: true}},
		"no mark, unknown": {errBlip, lull.Verdict{Kind: lull.KindUnclassified, Code: engine.CodeUnclassified}},
	} {
		check.Equal(t, lull.Classify(c.err), c.want, "%s", name)
		if !errors.Is(c.err, errBlip) || !strings.Contains(c.err.Error(), "blip") {
			t.Errorf("%s: the mark hides its error: %v", name, c.err)
		}
	}
	for _, marked := range []error{lull.Transient(nil), lull.Permanent(nil), lull.RetryAfter(nil, 1), lull.NeverSent(nil)} {
		if marked != nil {
			t.Error("a mark made an error of nil")
		}
	}
}

// A classifier without a default fails fast: the zero Verdict is no success for the caller or the
// breaker.
func TestAClassifierThatForgetsACaseFailsFast(t *testing.T) {
	forgets := lull.WithClassifier(func(err error) (v lull.Verdict) {
		if errors.Is(err, errBlip) {
			v.Kind = lull.KindTransient
		}
		return v
	})
	lost := errors.New("connection lost")
	for _, hedged := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var log eventLog
			p := lull.Policy{Breaker: breaker.Config{MinCalls: 1, FailureRate: 0.5}}
			if hedged {
				p = hedging(2)
			}
			d := newDependency(t, p, forgets, lull.WithObserver(&log))
			attempts := 0
			_, err := lull.DoHedged(t.Context(), d, func(context.Context) (int, error) { attempts++; return 0, lost })
			want := lull.Verdict{Kind: lull.KindUnclassified, Code: engine.CodeUnclassified}
			var e *lull.Error
			if !errors.As(err, &e) || e.Reason != engine.Permanent || e.Verdict != want || e.Last != lost || attempts != 1 {
				t.Errorf("hedged %v: %d attempts, error %#v", hedged, attempts, err)
			}
			if all := log.events; len(all) != 1 || all[0].Verdict != want || all[0].Err != lost {
				t.Errorf("hedged %v: events %+v", hedged, all)
			}
			if b := d.Breaker(); b != nil {
				if calls, failures, _ := b.Counts(d.Now()); calls != 0 {
					t.Errorf("hedged %v: the breaker has learned %d calls, %d failures", hedged, calls, failures)
				}
			}
		})
	}
}

// An error of an open circuit has how long it has been open, and the last failure, which it does
// not wrap.
func TestErrorsOfAnOpenCircuit(t *testing.T) {
	for _, hedged := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := lull.Policy{Attempts: 1, Breaker: breaker.Config{Consecutive: 2, ConsecutiveFor: -1, OpenFor: 10 * time.Second, OpenJitter: -1}}
			if hedged {
				p.Hedge, p.Attempts = hedge.Config{Attempts: 2}, 0
			}
			d := newDependency(t, p)
			call := func(err error) error {
				_, err = lull.DoHedged(t.Context(), d, func(context.Context) (int, error) { return 0, err })
				return err
			}
			why := errors.New("no route")
			call(lull.Transient(errBlip))
			call(lull.Transient(why))
			time.Sleep(4 * time.Second)
			var e *lull.Error
			err := call(nil)
			if !errors.As(err, &e) || e.Reason != engine.CircuitOpen || e.OpenFor != 4*time.Second || e.RetryAt != 6*time.Second || !errors.Is(e.OpenedBy, why) || errors.Is(err, why) {
				t.Errorf("hedged %v: %#v", hedged, e)
			}
			if want := "open for 4s, and the next probe is in 6s (Policy.Breaker); the last failure: " + why.Error(); !strings.HasSuffix(err.Error(), want) {
				t.Errorf("hedged %v: %v\nwant ... %s", hedged, err, want)
			}
		})
	}
}

// An option that would have no effect in a driver is refused.
func TestAClassifierOfADriverIsTheOnlyOne(t *testing.T) {
	classify := lull.WithClassifier(lull.Classify)
	for _, opts := range [][]lull.Option{{classify, lull.ClassifiedBy("x.WithClassifier")}, {lull.ClassifiedBy("x.WithClassifier"), classify}} {
		if _, err := lull.NewDependency("d", lull.Policy{}, opts...); err == nil || !strings.Contains(err.Error(), "use x.WithClassifier") {
			t.Errorf("%v", err)
		}
	}
	d := newDependency(t, lull.Policy{}, lull.ClassifiedBy("x.WithClassifier"))
	if err := d.Error("", engine.Result{Attempts: 1, Reason: engine.Permanent}, errBlip); !strings.Contains(err.Error(), "x.WithClassifier") {
		t.Errorf("%v", err)
	}
}
