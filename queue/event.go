package queue

import (
	"context"
	"time"

	"github.com/lullgo/lull/internal/choice"
)

// An Event is something that happened to a message or to a consumer, by value. Fields
// that a kind does not mention are zero.
type Event struct {
	Kind  EventKind
	Queue string // the consumer's name for it

	// Of the message (all but EventReceiveFailed, EventPaused, EventResumed).
	ID      string
	Attempt int
	Tries   int // runs of the handler in this delivery

	Outcome MessageOutcome // EventSettled, EventSettleFailed: what happens to it; EventRetriedHere: Retry
	Reason  string         // of a dead letter; of a pause
	Code    string         // the classifier's name for the failure, if there was one
	After   time.Duration  // Retry, Defer, EventRetriedHere: the wait; EventPaused: how long at least
	Elapsed time.Duration  // how long the handler ran, over all tries; zero if it did not
	// Err is the handler's; the broker's, of EventReceiveFailed and EventSettleFailed; of
	// EventLeaseLost why it was lost (ErrLeaseLost, the broker's words), with the handler's.
	Err error
}

// EventKind is the kind of an event.
type EventKind uint8

const (
	// EventSettled: the broker knows what happens to the message. Every delivery has one
	// event of EventSettled, EventSettleFailed or EventLeaseLost, unless the process was killed.
	EventSettled EventKind = iota
	// EventSettleFailed: the broker could not be reached for as long as the lease
	// lasted. The message will be delivered again, whatever its handler did.
	EventSettleFailed
	// EventLeaseLost: another may have the message. Nothing was settled.
	EventLeaseLost
	// EventRetriedHere: the handler failed, and will be run again in this process once
	// After has passed (Config.Quick).
	EventRetriedHere
	// EventReceiveFailed: no messages could be fetched. Fetching resumes when After has passed: the policy's wait for
	// that failure count, from 50 ms to 10 s.
	EventReceiveFailed
	// EventPaused: the circuit breaker is not closed, and only its probes are
	// fetched.
	EventPaused
	// EventResumed: the circuit breaker is closed.
	EventResumed
)

var eventNames = [...]string{"settled", "settle_failed", "lease_lost", "retried_here", "receive_failed", "paused", "resumed"}

// String is the kind as a label, such as "lease_lost".
func (k EventKind) String() string { return choice.Name("event", eventNames[:], k) }

// An Observer receives events as they happen, in the goroutine in which they happen.
// It must be safe for concurrent use, should not block, and must not panic.
type Observer func(ctx context.Context, e Event)
