// Package event is what happens to calls and dependencies, for those who watch: metrics,
// traces, logs. A dependency with lull.WithObserver reports to an [Observer].
package event

import (
	"context"
	"time"

	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/choice"
)

// Kind says what happened.
type Kind uint8

const (
	// CallEnded: a call has its result. Every call has exactly one such event, and
	// it is the call's last: also one that was refused before its first attempt, and
	// one whose operation panicked.
	CallEnded Kind = iota
	// RetryScheduled: an attempt failed, and another will follow after Delay.
	RetryScheduled
	// RetryStarted: the wait is over (it took Slept), the next attempt begins.
	RetryStarted
	// CircuitChanged: the breaker went from Circuit.From to Circuit.To.
	CircuitChanged
	// BudgetExhausted: the retry budget has just refused for the first time
	// since it last paid. What it refused is told by the event that follows.
	BudgetExhausted
	// HedgeStarted: another attempt of a hedged call begins, beside those in
	// flight or after they have failed.
	HedgeStarted
	// HedgeRefused: none may begin now, for Reason, and the others go on.
	HedgeRefused
	// AttemptFailed: an attempt of a hedged call failed, and the call goes on.
	// (A failure that ends the call is told by CallEnded alone.)
	AttemptFailed
)

var kindNames = [...]string{"call_ended", "retry_scheduled", "retry_started", "circuit_changed", "budget_exhausted",
	"hedge_started", "hedge_refused", "attempt_failed"}

// String is the kind as a label, such as "retry_scheduled".
func (k Kind) String() string { return choice.Name("kind", kindNames[:], k) }

// An Event is something that happened to a call or a dependency, by value.
// Fields that a kind does not mention are zero.
type Event struct {
	Kind       Kind
	Reason     engine.Reason // CallEnded, BudgetExhausted: why the call ended; HedgeRefused: why
	Attempt    int           // the latest attempt that has begun, or (RetryStarted) begins now; AttemptFailed: the one that failed; from 1
	Of         int           // the most attempts that the policy allows
	Dependency string
	Operation  string
	Verdict    engine.Verdict // what the last attempt came to; the server's hint is Verdict.After; the zero Verdict if none has ended
	Err        error          // the last attempt's error, if the driver has one

	// Elapsed is the time since the call started; at least 1 ns if an attempt was
	// made. It is zero for a call whose first attempt succeeded, unless the
	// dependency has lull.WithTiming.
	Elapsed time.Duration

	// By is the attempt of which the event tells that it has ended, from 1; zero if it
	// tells of none. Each attempt is told of at most once so: by RetryScheduled
	// and AttemptFailed, or by CallEnded, whose result is then that
	// attempt's. (A call that ended in a wait, or was refused, was ended by none; of
	// attempts that lost to another nobody is told.)
	By int
	// Took is how long that attempt took; at least 1 ns, but zero for a first attempt
	// that succeeded, unless the dependency has lull.WithTiming.
	Took time.Duration
	// Waited is how much of the call went by, after its first attempt had begun, while no
	// attempt was under way (CallEnded): waits before retries, also those that were
	// cut short, and for room and the throttle.
	Waited time.Duration

	// Of the wait (RetryScheduled, RetryStarted).
	Ceiling time.Duration // the wait before jitter
	Delay   time.Duration // the wait after jitter
	Slept   time.Duration // RetryStarted: how long the wait really took

	// Circuit is what the breaker did (CircuitChanged), else nil. It must not
	// be written to.
	Circuit *breaker.Change
}

// An Observer is told of events as they happen, on the goroutine that they
// happen on: it must be quick, safe for concurrent use, and must not panic. The call
// goes on when it has returned, so it must not wait for anything that the call does.
// A breaker's events have context.Background.
type Observer interface {
	Observe(context.Context, Event)
}
