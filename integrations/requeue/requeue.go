// Package requeue decides when a Kubernetes controller tries an item again that failed.
//
//	d, err := lull.NewDependency("cloud", requeue.Policy())
//	...
//	limiter, err := requeue.New[Request](d) // reconcile.Request, as a rule
//
// A [RateLimiter] is a TypedRateLimiter of client-go's workqueue, for the options of a controller (controller-runtime's
// RateLimiter) and workqueue.NewTypedRateLimitingQueue. The package imports nothing of Kubernetes.
//
// client-go's own limiter has no jitter, counts each item for itself, and delays healthy items like the others. Here every
// item has backoff with jitter, and all items together have the budget and the breaker of the dependency, which may be
// shared with calls of lull.Do. If the budget does not pay for a retry, the item waits as long as if it had failed three
// times more, and at least half a second. While the breaker is open no item comes back. Then the items come back spread over
// their own backoff. An item always comes back: after Policy.Attempts failures the wait no longer grows.
//
// The interface does not pass the error: each failure (When) counts as transient, and each Forget as a success. A controller
// that asks to be called again without an error should set a time (RequeueAfter). Otherwise that counts as a failure, and in
// a quiet controller a single bad object may open the circuit. That delays retries, and no new items.
//
// When and Forget together take 2 µs and allocate nothing. Memory: one entry for each item that has failed and was not
// forgotten since.
package requeue

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
)

// Policy returns the recommended policy for items that a controller reconciles. Its waits are those
// of client-go's default limiter: from 5 ms, doubled for each failure, to 1000 s.
func Policy() lull.Policy {
	return lull.Policy{
		Attempts: 20,
		Deadline: lull.NoTimeout,
		Backoff:  backoff.Schedule{Base: 5 * time.Millisecond, Cap: 1000 * time.Second},
		Breaker:  breaker.Config{OpenFor: time.Second}, // of which each probe is an item that fails once more
	}
}

// A RateLimiter decides when items come back. It may be used concurrently. Make one with [New].
type RateLimiter[T comparable] struct {
	d      *lull.Dependency
	broker engine.BrokerCapabilities

	mu     sync.Mutex
	failed map[T]int // how often, since it was forgotten
}

// New returns a limiter by the policy of d.
func New[T comparable](d *lull.Dependency) (*RateLimiter[T], error) {
	if d == nil {
		return nil, errors.New("requeue: New: the dependency is nil: make one with lull.NewDependency")
	}
	if n := d.Plan().Attempts(); n < 2 {
		return nil, fmt.Errorf("requeue: New: Policy.Attempts of %s is %d: want at least 2, after how many failures the wait no longer grows", d.Name(), n)
	}
	return &RateLimiter[T]{d: d, broker: engine.BrokerCapabilities{MaxDelay: engine.Never, FreeDefer: true}, failed: map[T]int{}}, nil
}

// When returns how long an item waits that has failed now. Each call counts as one failure.
func (l *RateLimiter[T]) When(item T) time.Duration {
	l.mu.Lock()
	l.failed[item]++
	n := l.failed[item]
	l.mu.Unlock()

	s, now, random := l.d.State(), l.d.Now(), l.d.Rand()
	v := lull.Verdict{Kind: lull.KindTransient}
	// The last attempt of a message has no retry. An item has, always.
	of := engine.Delivery{BrokerCapabilities: l.broker, Attempt: min(n, max(s.Current().Plan().Attempts()-1, 1)), RetryLeft: engine.Never, KeepLeft: engine.Never}
	call, step := s.ResumeDelivery(now, engine.Spec{Operation: operation}, of)
	if !step.Done {
		step = call.Attempt(now, random)
		if step.Full || step.Wait > 0 { // for a limit on calls, which this is none of
			call.Abandon(now)
			return s.Wait(of.Attempt, v, random)
		}
	}
	if step.Done {
		// All items that fail meanwhile wait for the same moment, and then as long as each would.
		return s.Refused(now, step.Reason, v, of, random).After + s.Wait(of.Attempt, v, random)
	}
	return call.Handled(now, engine.Handled{Verdict: v}, of, func(int) bool { return false }, random).After
}

const operation = "reconcile"

// Forget records that an item has succeeded, or is given up.
func (l *RateLimiter[T]) Forget(item T) {
	l.mu.Lock()
	delete(l.failed, item)
	l.mu.Unlock()

	s, now := l.d.State(), l.d.Now()
	call, step := s.Start(now, engine.Spec{Operation: operation})
	if step.Done {
		return
	}
	if step = call.Attempt(now, l.d.Rand()); step.Full || step.Wait > 0 {
		call.Abandon(now)
		return
	}
	if !step.Done {
		call.Next(now, lull.Verdict{Kind: lull.KindSuccess}, l.d.Rand())
	}
}

// NumRequeues returns how often an item has failed since it was forgotten.
func (l *RateLimiter[T]) NumRequeues(item T) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed[item]
}
