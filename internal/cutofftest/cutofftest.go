// Package cutofftest has the tests of a rule for every driver: the end of an attempt is judged by who ended its
// context, whatever error the attempt returns then.
package cutofftest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
)

// A Call makes one call. attempt makes its attempts. The error contains a *lull.Error.
type Call func(ctx context.Context, attempt func(context.Context) error) error

// returned are what clients return when a context has ended, or when they believe that one has.
var returned = map[string]func(ctx context.Context) error{
	"the context's error": func(ctx context.Context) error { return ctx.Err() },
	"its cause":           func(ctx context.Context) error { return context.Cause(ctx) },
	"context.Canceled":    func(context.Context) error { return fmt.Errorf("get: %w", context.Canceled) },
	"DeadlineExceeded":    func(context.Context) error { return fmt.Errorf("get: %w", context.DeadlineExceeded) },
	"a text of it":        func(ctx context.Context) error { return fmt.Errorf("get: %v", ctx.Err()) },
	"an i/o timeout":      func(context.Context) error { return errors.New("driver: i/o timeout") },
	"a transaction":       func(context.Context) error { return sql.ErrTxDone },
	"a closed connection": func(context.Context) error { return &net.OpError{Op: "read", Net: "tcp", Err: net.ErrClosed} },
	"a broken connection": func(context.Context) error { return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET} },
	"an unexpected end":   func(context.Context) error { return io.ErrUnexpectedEOF },
	"a mark":              func(context.Context) error { return lull.Transient(errors.New("blip")) },
}

// errGone is why the caller is no longer interested.
var errGone = errors.New("the user has closed the page")

// Test tests the driver that a call is made with. newCall makes one under a policy, in a bubble of synctest.
func Test(t *testing.T, newCall func(t *testing.T, p lull.Policy) Call) {
	// A call that is not safe to repeat, or ran out of what pays for it, ends after a timeout, too.
	timeout := []lull.Reason{engine.AttemptsExhausted, engine.Unanswered, engine.BudgetExhausted, engine.NotIdempotent, engine.NotReplayable}
	for who, c := range map[string]struct {
		policy lull.Policy
		caller func(ctx context.Context) (context.Context, context.CancelFunc)
		want   []lull.Reason // one of them
		late   bool          // it is a timeout (or was never sent, which is known better), and opens the circuit
	}{
		"the attempt's time":             {policy: lull.Policy{AttemptTimeout: time.Second}, want: timeout, late: true},
		"the call's time, by the policy": {policy: lull.Policy{Deadline: time.Second}, want: append(timeout, engine.Deadline), late: true},
		"the call's time, by the caller": {
			policy: lull.Policy{AttemptTimeout: time.Minute},
			caller: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(ctx, time.Second, errGone)
			},
			want: append(timeout, engine.Deadline), late: true,
		},
		"the caller": {
			policy: lull.Policy{AttemptTimeout: time.Minute},
			caller: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(time.Second, func() { cancel(errGone) })
				return ctx, func() { cancel(nil) }
			},
			want: []lull.Reason{engine.Canceled},
		},
	} {
		for what, returned := range returned {
			t.Run(who+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					policy := c.policy
					policy.Hedge = hedge.Config{Attempts: 2, Delay: time.Hour} // for drivers that hedge
					policy.Breaker = breaker.Config{Consecutive: 5}
					call := newCall(t, policy)
					for range 20 {
						ctx, cancel := t.Context(), context.CancelFunc(func() {})
						if c.caller != nil {
							ctx, cancel = c.caller(ctx)
						}
						err := call(ctx, func(ctx context.Context) error {
							<-ctx.Done()
							return returned(ctx)
						})
						cancel()
						e, ok := errors.AsType[*lull.Error](err)
						switch {
						case !ok:
							t.Fatalf("the error is %v", err)
						case e.Reason == engine.CircuitOpen && c.late:
							return
						case !slices.Contains(c.want, e.Reason), c.late && e.Verdict.Code != engine.CodeTimeout && !e.Verdict.NeverSent:
							t.Fatalf("%v: reason %v, verdict %+v; want one of %v", err, e.Reason, e.Verdict, c.want)
						}
					}
					if c.late {
						t.Error("the circuit is closed after 20 calls that were not answered")
					}
				})
			})
		}
	}
	// Errors of contexts that are not the call's: the caller still waits.
	for what, returned := range map[string]func() error{
		"context.Canceled": func() error { return context.Canceled },
		"wrapped":          func() error { return fmt.Errorf("get: %w", context.Canceled) },
		"the cause of a time of its own": func() error {
			ctx, cancel := context.WithTimeoutCause(context.Background(), 0, errGone)
			defer cancel()
			return context.Cause(ctx)
		},
	} {
		t.Run("nobody, "+what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call := newCall(t, lull.Policy{Breaker: breaker.Config{Consecutive: 2}})
				for range 5 {
					err := call(t.Context(), func(context.Context) error { return returned() })
					e, ok := errors.AsType[*lull.Error](err)
					if !ok || e.Reason == engine.Canceled || e.Verdict.Kind == engine.KindCanceled {
						t.Fatalf("%v: %+v, though the caller still waits", err, e)
					}
				}
			})
		})
	}
}
