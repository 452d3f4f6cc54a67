package lull_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
)

// What clients return when a context has ended, or when they believe that one has.
var cutOffErrors = map[string]func(ctx context.Context) error{
	"the context's error": func(ctx context.Context) error { return ctx.Err() },
	"its cause":           func(ctx context.Context) error { return context.Cause(ctx) },
	"context.Canceled":    func(context.Context) error { return fmt.Errorf("get: %w", context.Canceled) },
	"a text of it":        func(ctx context.Context) error { return fmt.Errorf("get: %v", ctx.Err()) },
	"an i/o timeout":      func(context.Context) error { return errors.New("driver: i/o timeout") },
	"a transaction":       func(context.Context) error { return sql.ErrTxDone },
	"a closed connection": func(context.Context) error { return &net.OpError{Op: "read", Net: "tcp", Err: net.ErrClosed} },
	"a broken connection": func(context.Context) error { return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET} },
	"an unexpected end":   func(context.Context) error { return io.ErrUnexpectedEOF },
	"a mark":              func(ctx context.Context) error { return lull.Transient(errors.New("blip")) },
}

// What ended an attempt is decided by who ended its context, whatever the operation returns then.
func TestWhoCutTheAttemptOff(t *testing.T) {
	gone := errors.New("the user has closed the page")
	for who, c := range map[string]struct {
		policy lull.Policy
		caller func(ctx context.Context) (context.Context, context.CancelFunc)
		want   []lull.Reason // one of them
		code   string
		opens  bool // the circuit, as nobody is ever answered
	}{
		"the attempt's time": {
			policy: lull.Policy{AttemptTimeout: time.Second},
			want:   []lull.Reason{engine.AttemptsExhausted, engine.Unanswered, engine.BudgetExhausted, engine.CircuitOpen}, code: engine.CodeTimeout, opens: true,
		},
		"the call's time, by the policy": {
			policy: lull.Policy{Deadline: time.Second},
			want:   []lull.Reason{engine.Deadline}, code: engine.CodeTimeout, opens: true,
		},
		"the call's time, by the caller": {
			policy: lull.Policy{AttemptTimeout: time.Minute},
			caller: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(ctx, time.Second, gone)
			},
			want: []lull.Reason{engine.Deadline}, code: engine.CodeTimeout, opens: true,
		},
		"the caller": {
			policy: lull.Policy{AttemptTimeout: time.Minute},
			caller: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(time.Second, func() { cancel(gone) })
				return ctx, func() { cancel(nil) }
			},
			want: []lull.Reason{engine.Canceled},
		},
	} {
		for what, returned := range cutOffErrors {
			for how, do := range map[string]func(context.Context, *lull.Dependency, func(context.Context) (int, error), ...lull.CallOption) (int, error){
				"Do": lull.Do[int], "DoHedged": lull.DoHedged[int],
			} {
				t.Run(fmt.Sprintf("%s, %s/%s", who, what, how), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						policy := c.policy
						policy.Hedge = hedge.Config{Attempts: 2, Delay: time.Hour}
						policy.Breaker = breaker.Config{Consecutive: 5}
						d := newDependency(t, policy)
						for range 20 {
							ctx, cancel := t.Context(), context.CancelFunc(func() {})
							if c.caller != nil {
								ctx, cancel = c.caller(ctx)
							}
							_, err := do(ctx, d, func(ctx context.Context) (int, error) {
								<-ctx.Done()
								return 0, returned(ctx)
							})
							cancel()
							e, ok := errors.AsType[*lull.Error](err)
							if !ok {
								t.Fatalf("the error is %v", err)
							}
							if e.Reason == engine.CircuitOpen && c.opens {
								return
							}
							as := false
							for _, r := range c.want {
								as = as || e.Reason == r
							}
							if !as || c.code != "" && e.Verdict.Code != c.code {
								t.Fatalf("%v: reason %v, verdict %+v; want one of %v, code %q", err, e.Reason, e.Verdict, c.want, c.code)
							}
						}
						if c.opens {
							t.Error("the circuit is closed after 20 calls that were not answered")
						}
						if who == "the caller" && d.Breaker().State(d.Now()) != breaker.Closed {
							t.Error("the circuit is open, though only callers went away")
						}
					})
				})
			}
		}
	}
}

// An error of a context that is not the call's shows nothing: the caller still waits.
func TestACanceledContextThatIsNotTheCalls(t *testing.T) {
	for what, returned := range map[string]error{"context.Canceled": context.Canceled, "wrapped": fmt.Errorf("get: %w", context.Canceled)} {
		d := newDependency(t, lull.Policy{Breaker: breaker.Config{Consecutive: 2}})
		for range 5 {
			_, err := lull.Do(t.Context(), d, func(context.Context) (int, error) { return 0, returned })
			e, _ := errors.AsType[*lull.Error](err)
			if e == nil || e.Reason != engine.Permanent || e.Verdict.Kind != lull.KindUnclassified {
				t.Fatalf("%s: %#v, want that nothing is known of it", what, err)
			}
		}
	}
}

// An answer that arrives is what it says, also if the time is over by then.
func TestAnAnswerAtTheEndOfTheTime(t *testing.T) {
	for _, kind := range []engine.Kind{lull.KindPermanent, lull.KindRateLimited, lull.KindOverloaded} {
		synctest.Test(t, func(t *testing.T) {
			d := newDependency(t, lull.Policy{AttemptTimeout: time.Second, Attempts: 1}, lull.WithClassifier(func(error) lull.Verdict {
				return lull.Verdict{Kind: kind, Code: "answer"}
			}))
			_, err := lull.Do(t.Context(), d, func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, errors.New("no")
			})
			if e, _ := errors.AsType[*lull.Error](err); e == nil || e.Verdict.Kind != kind || e.Verdict.Code != "answer" {
				t.Errorf("%v: %#v", kind, err)
			}
		})
	}
}
