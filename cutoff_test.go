package lull_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/driver"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/cutofftest"
	"github.com/lullgo/lull/internal/must"
)

// Who ended the context of an attempt decides what its end means, not what the operation returns
// then.
func TestWhoCutTheAttemptOff(t *testing.T) {
	for how, do := range doFunctions[int]() {
		t.Run(how, func(t *testing.T) {
			cutofftest.Test(t, func(t *testing.T, p lull.Policy) cutofftest.Call {
				d := newDependency(t, p)
				return func(ctx context.Context, attempt func(context.Context) error) error {
					_, err := do(ctx, d, func(ctx context.Context) (int, error) { return 0, attempt(ctx) })
					return err
				}
			})
		})
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

// An answer keeps its meaning if the time is over by then.
func TestAnAnswerAtTheEndOfTheTime(t *testing.T) {
	for _, kind := range []engine.VerdictKind{lull.KindPermanent, lull.KindRateLimited, lull.KindOverloaded} {
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

// The deadline that an attempt sees is the earlier one of the caller's and the policy's.
func TestTheEarlierDeadlineIsSeen(t *testing.T) {
	for name, do := range doFunctions[int]() {
		for callers, want := range map[time.Duration]time.Duration{
			0: 2 * time.Second, time.Second: time.Second, 2 * time.Second: 2 * time.Second, 3 * time.Second: 2 * time.Second,
		} {
			synctest.Test(t, func(t *testing.T) {
				d := newDependency(t, lull.Policy{AttemptTimeout: 2 * time.Second, Deadline: 2 * time.Second})
				ctx, began := t.Context(), time.Now()
				if callers > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, callers)
					defer cancel()
				}
				do(ctx, d, func(ctx context.Context) (int, error) {
					if end, ok := ctx.Deadline(); !ok || end.Sub(began) != want {
						t.Errorf("%s, the caller's after %v: a deadline after %v (%v), want %v", name, callers, end.Sub(began), ok, want)
					}
					return 1, nil
				})
			})
		}
	}
}

// Rule 8: an operation that was accepted, and is then silent, is a probe beside which other calls
// pass. Only its own call can accept it.
func TestRule08AcceptedStream(t *testing.T) {
	for _, c := range []struct {
		name    string
		timeout time.Duration
		accept  bool
		inside  bool // another call, made within the attempt, is accepted
		want    breaker.CircuitState
	}{
		{"in a context of its own", time.Minute, true, false, breaker.Closed},
		{"without timeouts", lull.NoTimeout, true, false, breaker.Closed},
		{"not accepted", time.Minute, false, false, breaker.Open},
		{"another call is accepted", time.Minute, true, true, breaker.Open},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := lull.Policy{AttemptTimeout: c.timeout, Deadline: c.timeout}
				p.Breaker = breaker.Config{Consecutive: 1, ConsecutiveFor: -1, ProbeTimeout: 5 * time.Second}
				d := newDependency(t, p)
				other := newDependency(t, p)
				_ = lull.Run(t.Context(), d, func(context.Context) error { return lull.Transient(errBlip) }, lull.Once())
				time.Sleep(d.Breaker().RetryAt(d.Now()) - d.Now())
				done := make(chan struct{})
				d.Drive(t.Context(), engine.Spec{Stream: true}, func(ctx context.Context) lull.Verdict {
					switch {
					case c.inside:
						_ = lull.Run(ctx, other, func(ctx context.Context) error { driver.Accepted(ctx); return nil })
					case c.accept:
						driver.Accepted(ctx)
					}
					time.Sleep(5 * time.Second)
					check.Equal(t, d.Breaker().State(d.Now()), c.want, "after the timeout of probes")
					close(done)
					return lull.Verdict{Kind: lull.KindSuccess}
				}, nil, nil)
				<-done
			})
		})
	}
}

// A process without free files or ports, and an operation that panics, show nothing of the
// dependency: circuit and budget stay as they were.
func TestRule23DoOnTheCallersSide(t *testing.T) {
	dial := func(err syscall.Errno) error {
		return fmt.Errorf("get: %w", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", err)})
	}
	for name, c := range map[string]struct {
		op       func(attempt int) error
		attempts int
		reason   lull.Reason
	}{
		"no files":             {func(int) error { return dial(syscall.EMFILE) }, 3, engine.AttemptsExhausted},
		"no files, system":     {func(int) error { return dial(syscall.ENFILE) }, 3, engine.AttemptsExhausted},
		"no ports":             {func(int) error { return dial(syscall.EADDRNOTAVAIL) }, 3, engine.AttemptsExhausted},
		"a file cannot open":   {func(int) error { return &os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE} }, 3, engine.AttemptsExhausted},
		"a mark adds to it":    {func(int) error { return lull.Permanent(dial(syscall.EMFILE)) }, 1, engine.Permanent},
		"a panic":              {func(int) error { panic("bug") }, 1, engine.Panicked},
		"a panic in a retry":   {func(n int) error { return failThenPanic(n) }, 2, engine.Panicked},
		"no files for a retry": {func(n int) error { return failThen(n, dial(syscall.EMFILE)) }, 3, engine.AttemptsExhausted},
	} {
		for _, hedged := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", hedged ", hedged), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := lull.Policy{Attempts: 3, Budget: budget.Config{Stock: 3}, Breaker: breaker.Config{Off: name == "no files for a retry"}}
					do := lull.Do[int]
					if hedged {
						p.Attempts, p.Hedge = 0, hedge.Config{Attempts: 3, Delay: time.Minute}
						do = lull.DoHedged[int]
					}
					d := must.Have(lull.NewDependency("d", p))
					full := d.Budget().Balance(d.Now())
					for range 30 {
						attempts := 0
						err := recovered(func() error {
							_, err := do(t.Context(), d, func(context.Context) (int, error) {
								attempts++
								return 0, c.op(attempts)
							})
							return err
						})
						var e *lull.Error
						if errors.As(err, &e) != (c.reason != engine.Panicked) || e != nil && e.Reason != c.reason || attempts != c.attempts {
							t.Fatalf("%v after %d attempts", err, attempts)
						}
						time.Sleep(500 * time.Millisecond)
					}
					check.Equal(t, d.Budget().Balance(d.Now()), full, "tokens are left")
					if b := d.Breaker(); b != nil && b.State(d.Now()) != breaker.Closed {
						t.Error("the circuit is open")
					}
				})
			})
		}
	}
}

func failThen(attempt int, err error) error {
	if attempt == 1 {
		return lull.Transient(errors.New("blip"))
	}
	return err
}

func failThenPanic(attempt int) error {
	if attempt > 1 {
		panic("bug")
	}
	return failThen(attempt, nil)
}

// recovered returns the error of f, or that it panicked.
func recovered(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}
