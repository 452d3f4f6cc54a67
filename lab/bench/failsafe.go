package bench

import (
	"context"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
)

// failsafe-go composes policies in the order in which they are listed, the first
// one outermost. They are listed here in lull's order: breaker, retries, limit.

type failsafePolicy func() failsafe.Policy[any]

func failsafeRetry() failsafe.Policy[any] {
	return retrypolicy.NewBuilder[any]().WithMaxAttempts(attempts).Build()
}

func failsafeBudgetedRetry() failsafe.Policy[any] {
	return retrypolicy.NewBuilder[any]().WithMaxAttempts(attempts).WithBudget(budget.New()).Build()
}

func failsafeBreaker() failsafe.Policy[any] {
	return circuitbreaker.NewBuilder[any]().
		WithFailureRateThreshold(failureRate, minCalls, window).WithDelay(openFor).Build()
}

func failsafeBulkhead() failsafe.Policy[any] { return bulkhead.New[any](inFlight) }

// failsafeExecutor makes the policies anew: they hold the shared state.
func failsafeExecutor(policies []failsafePolicy) failsafe.Executor[any] {
	var made []failsafe.Policy[any]
	for _, policy := range policies {
		made = append(made, policy())
	}
	return failsafe.With(made...)
}

// failsafeCaller is the cheapest form: no context reaches the executor, so that
// a cancelled caller still sits out the delays.
func failsafeCaller(name string, does feature, policies ...failsafePolicy) caller {
	return caller{name, does, errBlip, func() bindOp {
		executor := failsafeExecutor(policies)
		return func(ctx context.Context, op op) func() error {
			attempt := func() error { return op(ctx) }
			return func() error { return executor.Run(attempt) }
		}
	}}
}

// failsafeContextCaller hands every call's context to the executor, and the
// executor's to the operation.
func failsafeContextCaller(name string, does feature, policies ...failsafePolicy) caller {
	return caller{name, does, errBlip, func() bindOp {
		executor := failsafeExecutor(policies)
		return func(ctx context.Context, op op) func() error {
			attempt := func(e failsafe.Execution[any]) error { return op(e.Context()) }
			return func() error { return executor.WithContext(ctx).RunWithExecution(attempt) }
		}
	}}
}
