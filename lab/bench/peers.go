package bench

import (
	"context"
	"errors"
	"time"

	avast "github.com/avast/retry-go/v5"
	cenkalti "github.com/cenkalti/backoff/v7"
	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/throttle"
	"github.com/sony/gobreaker/v2"
)

// What every subject is set to, as far as it has the setting and is not named a
// zero policy: four attempts, a breaker that opens at half of at least 20 calls
// in 10 s and stays open for 5 s, 64 calls in flight.
const (
	attempts    = 4
	minCalls    = 20
	failureRate = 0.5
	window      = 10 * time.Second
	openFor     = 5 * time.Second
	inFlight    = 64
)

// errBlip is worth another attempt to the libraries that retry every error.
var errBlip = errors.New("blip")

// stateless is a caller of which goroutines share nothing but its configuration.
func stateless(bind bindOp) func() bindOp { return func() bindOp { return bind } }

func bare() caller {
	return caller{"bare call", 0, errBlip, stateless(func(ctx context.Context, op op) func() error {
		return func() error { return op(ctx) }
	})}
}

func retryCallers() []caller {
	return []caller{
		bare(),
		{"cenkalti/backoff", retries, errBlip, stateless(func(ctx context.Context, op op) func() error {
			attempt := func() (struct{}, error) { return struct{}{}, op(ctx) }
			return func() error {
				// Its default backoff has state, so that it is made anew for every call.
				_, err := cenkalti.Retry(ctx, attempt, cenkalti.WithMaxTries(attempts))
				return err
			}
		})},
		{"avast/retry-go", retries, errBlip, func() bindOp {
			return avastRetry(avast.New(avast.Attempts(attempts)))
		}},
		{"avast/retry-go per context", retries, errBlip, stateless(func(ctx context.Context, op op) func() error {
			attempt := func() error { return op(ctx) }
			// A context is one of its construction options, so that a call which
			// can be cancelled needs a retrier of its own.
			return func() error { return avast.New(avast.Context(ctx), avast.Attempts(attempts)).Do(attempt) }
		})},
		failsafeCaller("failsafe-go", retries, failsafeRetry),
		failsafeContextCaller("failsafe-go per context", retries, failsafeRetry),
		lullCaller("lull", retries, runOp, retriesOnly()),
		lullCaller("lull adaptive throttle", retries|throttled, runOp, throttledBy(throttle.Adaptive)),
		lullCaller("lull cubic throttle", retries|throttled, runOp, throttledBy(throttle.Cubic)),
		lullCaller("lull zero policy", retries|budgeted|breaks|timed, runOp, lull.Policy{}),
	}
}

func composedCallers() []caller {
	all := untimed()
	all.Limit = bulkhead.Config{InFlight: inFlight}
	return []caller{
		bare(),
		{"gobreaker", breaks, errBlip, func() bindOp {
			cb := newGobreaker()
			return func(ctx context.Context, op op) func() error {
				attempt := func() (struct{}, error) { return struct{}{}, op(ctx) }
				return func() error {
					_, err := cb.Execute(attempt)
					return err
				}
			}
		}},
		{"avast throttle+gobreaker", retries | budgeted | breaks, errBlip, func() bindOp {
			throttle := avast.NewFixedTokenBucketThrottle(avast.FixedTokenBucketThrottleConfig{})
			retrier, cb := avast.New(avast.Attempts(attempts), avast.WithThrottle(throttle)), newGobreaker()
			return func(ctx context.Context, op op) func() error {
				attempt := func() error { return op(ctx) }
				loop := func() (struct{}, error) { return struct{}{}, retrier.Do(attempt) }
				return func() error {
					_, err := cb.Execute(loop)
					return err
				}
			}
		}},
		failsafeCaller("failsafe-go retry+cb+budget", retries|budgeted|breaks, failsafeBreaker, failsafeBudgetedRetry),
		failsafeCaller("failsafe-go retry+cb+budget+bulkhead", retries|budgeted|breaks|limited,
			failsafeBreaker, failsafeBudgetedRetry, failsafeBulkhead),
		failsafeContextCaller("failsafe-go retry+cb+budget+bulkhead per context", retries|budgeted|breaks|limited,
			failsafeBreaker, failsafeBudgetedRetry, failsafeBulkhead),
		lullCaller("lull", retries|budgeted|breaks|limited|observed, runOp, all, lull.WithObserver(&seen)),
		lullCaller("lull unobserved", retries|budgeted|breaks|limited, runOp, all),
		lullCaller("lull zero policy", retries|budgeted|breaks|timed|observed, runOp, lull.Policy{}, lull.WithObserver(&seen)),
	}
}

func failureCallers() []caller {
	loop := retriesOnly()
	loop.Backoff = backoff.Schedule{Kind: backoff.Constant}
	all := untimed()
	all.Backoff = loop.Backoff
	// Three retries of each call must be paid for, and the first ones before any
	// call has earned them.
	all.Budget = budget.Config{Ratio: 4, Stock: 10}
	return []caller{
		bareLoop(),
		{"cenkalti/backoff", retries, errBlip, stateless(func(ctx context.Context, op op) func() error {
			attempt := func() (struct{}, error) { return struct{}{}, op(ctx) }
			return func() error {
				_, err := cenkalti.Retry(ctx, attempt, cenkalti.WithMaxTries(attempts), cenkalti.WithBackOff(&cenkalti.ZeroBackOff{}))
				return err
			}
		})},
		{"avast/retry-go", retries, errBlip, func() bindOp {
			return avastRetry(avast.New(avast.Attempts(attempts), avast.DelayType(noDelay)))
		}},
		{"avast throttle", retries | budgeted, errBlip, func() bindOp {
			// Three retries of each call are paid back by its success.
			throttle := avast.NewFixedTokenBucketThrottle(avast.FixedTokenBucketThrottleConfig{ThrottleCost: 1, SuccessReleaseCost: 3})
			return avastRetry(avast.New(avast.Attempts(attempts), avast.DelayType(noDelay), avast.WithThrottle(throttle)))
		}},
		failsafeCaller("failsafe-go", retries, failsafeRetry),
		failsafeCaller("failsafe-go retry+cb+budget", retries|budgeted|breaks, failsafeBreaker, failsafeBudgetedRetry),
		lullCaller("lull", retries, runOp, loop),
		lullCaller("lull retry+cb+budget", retries|budgeted|breaks, runOp, all),
	}
}

// bareLoop is four calls of the operation and nothing else.
func bareLoop() caller {
	return caller{"bare loop", retries, errBlip, stateless(func(ctx context.Context, op op) func() error {
		return func() error {
			for n := 1; ; n++ {
				if err := op(ctx); err == nil || n == attempts {
					return err
				}
			}
		}
	})}
}

func avastRetry(retrier *avast.Retrier) bindOp {
	return func(ctx context.Context, op op) func() error {
		attempt := func() error { return op(ctx) }
		return func() error { return retrier.Do(attempt) }
	}
}

func noDelay(uint, error, avast.DelayContext) time.Duration { return 0 }

func newGobreaker() *gobreaker.CircuitBreaker[struct{}] {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Interval:     window,
		BucketPeriod: window / 10,
		Timeout:      openFor,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.Requests >= minCalls && float64(c.TotalFailures) >= failureRate*float64(c.Requests)
		},
	})
}
