// Package event describes what happens to calls and dependencies, for metrics, traces and
// logs. A dependency with lull.WithObserver reports its events to an [Observer].
package event

import (
	"context"
	"time"

	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/choice"
)

// Kind is the kind of an event.
type Kind uint8

const (
	// CallEnded: a call has its result. Every call has exactly one such event, even if it was
	// refused or its operation panicked. It is the call's last, but for FallbackEnded.
	CallEnded Kind = iota
	// RetryScheduled: an attempt failed, and another will follow after Delay.
	RetryScheduled
	// RetryStarted: the wait is over (it took Slept), and the next attempt begins.
	RetryStarted
	// CircuitChanged: the breaker went from Circuit.From to Circuit.To.
	CircuitChanged
	// BudgetExhausted: the retry budget has refused for the first time since it last paid. The
	// event that follows reports what it refused.
	BudgetExhausted
	// HedgeStarted: another attempt of a hedged call begins, beside those in flight or after
	// them.
	HedgeStarted
	// HedgeRefused: no hedge may begin now, for Reason. The attempts in flight continue.
	HedgeRefused
	// AttemptFailed: an attempt of a hedged call failed, and the call continues.
	AttemptFailed
	// FallbackEnded: the fallback of a call that failed for Reason has ended (lull.DoOr). It gave
	// an answer if Err is nil, else Err is its failure. It follows a CallEnded with Fallback.
	FallbackEnded
	// RetriesInLayers: a call was repeated, or would have been, and another layer of the program
	// has made it again, too. So the attempts of both multiply. Err is a [*Layers]. A dependency
	// has one such event for each layer above it.
	RetriesInLayers
)

// Layers are two layers of a program that both repeat what fails. One of them should not.
type Layers struct{ Above, Below Layer }

// A Layer is a part of a program that repeats what has failed.
type Layer struct {
	Name string // such as "payments", or "the AWS SDK"
	Off  string // the setting that switches its retries off
}

// Error returns which they are, and the settings that switch them off.
func (l *Layers) Error() string {
	return "the retries of " + l.Above.Name + " multiply those of " + l.Below.Name + " below it; switch one of them off: " + l.Above.Off + ", or " + l.Below.Off
}

var kindNames = [...]string{"call_ended", "retry_scheduled", "retry_started", "circuit_changed", "budget_exhausted",
	"hedge_started", "hedge_refused", "attempt_failed", "fallback_ended", "retries_in_layers"}

// String is the kind as a label, such as "retry_scheduled".
func (k Kind) String() string { return choice.Name("kind", kindNames[:], k) }

// An Event is something that happened to a call or a dependency. Fields that a kind does not
// mention are zero.
type Event struct {
	Kind   Kind
	Reason engine.Reason // CallEnded, FallbackEnded, BudgetExhausted: why the call ended; HedgeRefused: why
	// Fallback (CallEnded): the call failed, and its fallback runs next.
	Fallback bool
	// OutcomeUnknown (CallEnded): the operation may have been carried out, and must not be carried
	// out twice (engine.Result). Somebody has to look: the context has the caller's own key of it.
	OutcomeUnknown bool

	Attempt     int // the latest attempt that has begun, or (RetryStarted) begins now; AttemptFailed: the one that failed; from 1
	MaxAttempts int // the most attempts that the policy allows
	Dependency  string
	Operation   string
	Verdict     engine.Verdict // on the last attempt; the server's hint is Verdict.After; the zero Verdict if none has ended
	Err         error          // the last attempt's error, if the driver has one

	// Elapsed is the time since the call started, at least 1 ns after an attempt. It is zero for
	// a call whose first attempt succeeded, unless the dependency has lull.WithTiming.
	Elapsed time.Duration

	// EndedAttempt is the attempt whose end the event reports, from 1; zero if none. Each end is
	// reported at most once: by RetryScheduled, by AttemptFailed, or by CallEnded if the call has
	// that attempt's result. The ends of attempts that lost to another are not reported.
	EndedAttempt int
	// AttemptTook is the duration of EndedAttempt, at least 1 ns. It is zero for a first attempt
	// that succeeded, unless the dependency has lull.WithTiming.
	AttemptTook time.Duration
	// Waited is how long no attempt was under way, from the beginning of the first attempt to the
	// end of the call (CallEnded).
	Waited time.Duration

	// Of the wait (RetryScheduled, RetryStarted).
	Ceiling time.Duration // the wait before jitter
	Delay   time.Duration // the wait after jitter
	Slept   time.Duration // RetryStarted: how long the wait really took

	// Earlier has the failed attempts before this event, the latest first (CallEnded); nil if
	// there were none. It must not be written to.
	Earlier *Earlier

	// Circuit is what the breaker did (CircuitChanged), else nil. It must not be written to.
	Circuit *breaker.Change
}

// An Earlier is an attempt that failed in a call that continued.
type Earlier struct {
	Attempt int // from 1
	Verdict engine.Verdict
	Err     error // if the driver has one
	Took    time.Duration

	// The wait that followed: before jitter, after jitter, and its real length. All are zero in a
	// hedged call; Slept is zero if the call ended in the wait.
	Ceiling, Delay, Slept time.Duration

	Before *Earlier // the one before; nil if there was none
}

// An Observer receives events as they happen, on the goroutine of the call, which waits for it.
// So it must be quick, and must not wait for anything that the call does. It must be safe for
// concurrent use, and must not panic. Observers are called one after the other. The events of a
// hedged call, and those of a breaker, come one at a time and in order; each change of a breaker
// begins with the state with which the one before it ended.
//
// The context has the values of the call's context, and has not ended. It does not end with the
// call's, except for a first attempt that succeeded. A breaker's events have context.Background.
type Observer interface {
	Observe(context.Context, Event)
}
