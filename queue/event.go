package queue

import (
	"context"
	"sync/atomic"
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

// Counts are how many events there were of each kind, since the Consumer was made. It is
// plain, comparable data, for metrics that are read from time to time. Every delivery that
// has ended is counted once, in one of the first seven fields.
type Counts struct {
	Acked        int64 // EventSettled, by outcome
	Retried      int64
	Deferred     int64
	DeadLettered int64
	Dropped      int64

	SettleFailed  int64 // the other kinds of event
	LeaseLost     int64
	RetriedHere   int64
	ReceiveFailed int64
	Paused        int64
	Resumed       int64
}

// Counts returns the counts up to now. They are read one after the other, not at one moment.
func (c *Consumer) Counts() Counts {
	n := &c.counts
	return Counts{
		Acked: n.outcomes[Ack].Load(), Retried: n.outcomes[Retry].Load(), Deferred: n.outcomes[Defer].Load(),
		DeadLettered: n.outcomes[DeadLetter].Load(), Dropped: n.outcomes[Drop].Load(),
		SettleFailed: n.kinds[EventSettleFailed].Load(), LeaseLost: n.kinds[EventLeaseLost].Load(),
		RetriedHere: n.kinds[EventRetriedHere].Load(), ReceiveFailed: n.kinds[EventReceiveFailed].Load(),
		Paused: n.kinds[EventPaused].Load(), Resumed: n.kinds[EventResumed].Load(),
	}
}

type counts struct {
	kinds    [len(eventNames)]atomic.Int64
	outcomes [Drop + 1]atomic.Int64 // of EventSettled
}

func (n *counts) add(e Event) {
	n.kinds[e.Kind].Add(1)
	if e.Kind == EventSettled {
		n.outcomes[e.Outcome].Add(1)
	}
}
