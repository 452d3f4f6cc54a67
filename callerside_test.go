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
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/must"
)

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
					if got := d.Budget().Balance(d.Now()); got != full {
						t.Errorf("%v of %v tokens are left", got, full)
					}
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
