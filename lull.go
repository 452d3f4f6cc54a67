package lull

import (
	"context"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/attempt"
)

// A Policy describes how calls to one dependency are made. The zero Policy is the recommended one. What it does, in six
// sentences:
//
//  1. A call makes up to five attempts of at most ten seconds each, all within thirty seconds.
//  2. Before a retry it waits for a random time, below 100, 200, 400 and 800 ms, or for as long as the server asks; if that is
//     more than thirty seconds, the call ends at once.
//  3. Retries have a budget: 20 in stock, and one for every ten calls that succeeded in the last half minute; what a retry
//     cost is given back if its call succeeds.
//  4. A timeout is final unless the service has answered another attempt of this process, which began later, or at most two
//     seconds earlier.
//  5. Otherwise it is repeated if an attempt that began later was answered quickly; if none was, the call first waits once for
//     as long as an attempt may take, and then also repeats it if no attempt that began later has ended.
//  6. If all calls fail for two seconds, and these are at least three, the circuit opens: only probes and one call in sixteen
//     pass, until one of them succeeds.
//
// Its fields, and what zero means:
//
//	Attempts         int                    most attempts of a call, the first included; 5; 1: no retries
//	AttemptTimeout   time.Duration          of each attempt; 10s; NoTimeout: only the deadline ends it
//	Deadline         time.Duration          of the call, with its waits; 30s; NoTimeout: only the context's
//	Backoff          backoff.Schedule       the waits; up to 100ms, 200ms, 400ms ... 20s, full jitter
//	RateLimitedBase  time.Duration          replaces Backoff.Base after a rate-limited failure; 1s
//	Timeouts         engine.TimeoutRetries  whether a timeout is repeated; by 4 and 5
//	Nested           engine.NestedRetries   whether calls for a retry are retried; never
//	HintLimit        time.Duration          longest Retry-After that a call waits for; 30s
//	Budget           budget.Config          of the retries of all calls; 20 in stock, and 10 % of the successes of 30s
//	Breaker          breaker.Config         opens after failures alone for 2s, 3 at least
//	Hedge            hedge.Config           a second attempt beside a slow one; off
//	Throttle         throttle.Config        holds attempts back from a dependency that refuses many; off
//	Limit            bulkhead.Config        attempts in flight; no limit
//
// Package engine has the long form of each.
type Policy = engine.Policy

// A Verdict is a classifier's judgement on the end of one attempt. The zero Verdict is
// unclassified, never a success.
type Verdict = engine.Verdict

// A Reason is why a call ended. Package engine has its values; those that users ask for are
// errors here.
type Reason = engine.Reason

// The kinds of verdicts. See package engine for what each means.
const (
	KindUnclassified = engine.KindUnclassified
	KindSuccess      = engine.KindSuccess
	KindTransient    = engine.KindTransient
	KindRateLimited  = engine.KindRateLimited
	KindOverloaded   = engine.KindOverloaded
	KindPermanent    = engine.KindPermanent
)

// NoTimeout switches a timeout off: Policy.AttemptTimeout, Policy.Deadline.
const NoTimeout time.Duration = engine.NoTimeout

// Values of Policy.Timeouts and Policy.Nested beside their zero values.
const (
	TimeoutsAlways = engine.TimeoutsAlways // repeat an attempt that timed out as any other
	TimeoutsNever  = engine.TimeoutsNever  // a timeout is final
	NestedAlways   = engine.NestedAlways   // retry also what is done for a request that is itself a retry
)

// An Event is something that happened to a call or a dependency. Package event has its kinds.
type Event = event.Event

type observers []event.Observer

func (o observers) Observe(ctx context.Context, e Event) {
	for _, each := range o {
		each.Observe(ctx, e)
	}
}

// An Attempt describes the attempt in which an operation runs.
type Attempt struct {
	Dependency string
	Operation  string
	Number     int  // from 1
	Of         int  // the most that the policy allows
	Hedge      bool // it began while another attempt of the call was under way
}

// AttemptFrom returns the attempt that the context belongs to. A first attempt whose timeout is
// no nearer than its caller's deadline runs in the caller's own context, to cost nothing: then ok
// is false, and Number is 1.
func AttemptFrom(ctx context.Context) (a Attempt, ok bool) {
	if c := attempt.From(ctx); c != nil {
		return Attempt{Dependency: *c.Dependency, Operation: c.Operation, Number: int(c.Number), Of: c.State.Plan().Attempts(), Hedge: c.Hedge()}, true
	}
	return Attempt{Number: 1}, false
}

// Progress records that the attempt whose context ctx is makes progress: its AttemptTimeout
// starts anew, up to the call's deadline. An operation that sends a long stream calls it for each
// piece, so that the timeout bounds the pauses and not the length. It does nothing for a context
// that has ended, was detached, or has no timeout of its own. It may be called concurrently, and
// costs a clock read.
func Progress(ctx context.Context) {
	if c := attempt.From(ctx); c != nil {
		c.Extend(c.State.Plan().AttemptTimeout())
	}
}
