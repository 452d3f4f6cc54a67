package lull_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

var errReset = errors.New("connection reset")

// An option of one call holds for that call. If two options contradict each other, the
// later one counts.
func TestCallOptionsOfOneCall(t *testing.T) {
	for _, c := range []struct {
		name     string
		opts     []lull.CallOption
		policy   lull.Policy
		err      error
		attempts int
		reason   lull.Reason
	}{
		{"nothing", nil, lull.Policy{}, errReset, 4, engine.AttemptsExhausted},
		{"once", []lull.CallOption{lull.Once()}, lull.Policy{}, errReset, 1, engine.AttemptsExhausted},
		{"once, hedged", []lull.CallOption{lull.Once()}, lull.Policy{Hedge: hedge.Config{Attempts: 2}}, errReset, 1, engine.AttemptsExhausted},
		{"once, never sent", []lull.CallOption{lull.Once(), lull.NotIdempotent()}, lull.Policy{}, lull.NeverSent(errReset), 1, engine.AttemptsExhausted},
		{"not idempotent", []lull.CallOption{lull.NotIdempotent()}, lull.Policy{}, errReset, 1, engine.NotIdempotent},
		{"taken back", []lull.CallOption{lull.NotIdempotent(), lull.Idempotent()}, lull.Policy{}, errReset, 4, engine.AttemptsExhausted},
		{"taken back again", []lull.CallOption{lull.Idempotent(), lull.NotIdempotent()}, lull.Policy{}, errReset, 1, engine.NotIdempotent},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.policy.Hedge.Attempts == 0 {
					c.policy.Attempts = 4
				}
				c.policy.Budget.Stock = 100
				d := must.Have(lull.NewDependency("d", c.policy, lull.WithRand(seed.Source(t))))
				n := 0
				_, err := lull.DoHedged(t.Context(), d, func(context.Context) (int, error) {
					n++
					return 0, lull.Transient(c.err)
				}, c.opts...)
				e, ok := errors.AsType[*lull.Error](err)
				if !ok || n != c.attempts || e.Reason != c.reason {
					t.Errorf("%d attempts, %v; want %d, %v", n, err, c.attempts, c.reason)
				}
			})
		})
	}
}

// A call made for a request that is a retry is not retried, except where the policy
// allows it.
func TestSpecForRetry(t *testing.T) {
	for nested, want := range map[engine.NestedRetries]lull.Reason{engine.NestedNever: engine.RetriedAbove, lull.NestedAlways: engine.Success} {
		d := must.Have(lull.NewDependency("d", lull.Policy{Nested: nested, Budget: budget.Config{Unlimited: true}}))
		next := func(c engine.Call) lull.Reason {
			c.Attempt(0, nil)
			return c.Next(1, lull.Verdict{Kind: lull.KindTransient, NeverSent: true}, nil).Reason
		}
		for _, spec := range []engine.Spec{{ForRetry: true}, {ForRetry: true, NotIdempotent: true}} {
			c, _ := d.State().Start(0, spec)
			if got := next(c); got != want {
				t.Errorf("Nested %v, %+v: %v; want %v", nested, spec, got, want)
			}
		}
		c, _ := d.State().Start(0, engine.Spec{ForRetry: true, NotReplayable: true})
		if got := next(c); got != engine.NotReplayable {
			t.Errorf("Nested %v, not replayable: %v", nested, got)
		}
		c, _ = d.State().Start(0, engine.Spec{ForRetry: true, Once: true})
		if got := next(c); got != engine.AttemptsExhausted {
			t.Errorf("Nested %v, once: %v", nested, got)
		}
		c, _ = d.State().Resume(0, engine.Spec{ForRetry: true}, 1)
		if got := next(c); got != want {
			t.Errorf("Nested %v, resumed: %v; want %v", nested, got, want)
		}
	}
}

// A permanent failure that was never sent is no answer: it does not end a row of failures.
func TestPermanentNeverSentIsNoAnswer(t *testing.T) {
	for _, never := range []bool{false, true} {
		p := lull.Policy{Attempts: 1}
		p.Breaker.Consecutive, p.Breaker.ConsecutiveFor, p.Breaker.OpenFor = 3, 2*time.Second, time.Hour
		d := must.Have(lull.NewDependency("d", p))
		call := func(now time.Duration, v lull.Verdict) lull.Reason {
			c, step := d.State().Start(now, engine.Spec{})
			if !step.Done {
				c.Attempt(now, nil)
				step = c.Next(now+1, v, nil)
			}
			return step.Reason
		}
		for n := range time.Duration(4) { // two failures, that one, and one more
			v := lull.Verdict{Kind: lull.KindTransient}
			if n == 2 {
				v = lull.Verdict{Kind: lull.KindPermanent, Code: "no", NeverSent: never}
			}
			call((n+1)*time.Second, v)
		}
		opened := call(5*time.Second, lull.Verdict{Kind: lull.KindSuccess}) == engine.CircuitOpen
		if opened != never {
			t.Errorf("never sent: %v; the circuit is open: %v", never, opened)
		}
	}
}

func ExampleOnce() {
	payments, _ := lull.NewDependency("payments", lull.Policy{})
	attempts := 0
	err := lull.Run(context.Background(), payments, func(context.Context) error {
		attempts++
		return lull.Transient(errors.New("connection reset"))
	}, lull.Once())
	fmt.Println(attempts, errors.Is(err, lull.ErrAttemptsExhausted))
	// Output: 1 true
}
