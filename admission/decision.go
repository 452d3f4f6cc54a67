package admission

import (
	"time"

	"github.com/lullgo/lull/internal/choice"
)

// Outcome is what Arrive made of a request.
type Outcome uint8

const (
	// Admitted: the work may begin. A Depart is owed.
	Admitted Outcome = iota
	// Queued: it waits. Ticket.Settled is called with Admitted or Refused, unless
	// it leaves before.
	Queued
	// Refused: it is not to be done.
	Refused
)

var outcomeNames = [...]string{"admitted", "queued", "refused"}

// String is the outcome in lower case, such as "admitted".
func (o Outcome) String() string { return choice.Name("outcome", outcomeNames[:], o) }

// Reason says why a request was refused.
type Reason uint8

const (
	// NotRefused: it was not.
	NotRefused Reason = iota
	// Full: there is no room, and none in the queue.
	Full
	// Waited: its turn did not come within the bound of the queue.
	Waited
	// Displaced: it waited, and made room in a full queue for one that goes before it.
	Displaced
	// TooLate: its deadline has passed, or is too near for the work to be done by then.
	TooLate
	// ShedRetry: a retry, while first attempts wait or are refused.
	ShedRetry
	// ShedHedge: a hedge, while there is no room to spare.
	ShedHedge
	// RetryBudget: too many of the arrivals are retries and hedges.
	RetryBudget
	// Gone: its caller has gone before its turn came. Nobody is there to be told.
	Gone
)

const reasons = int(Gone) + 1

var reasonNames = [...]string{"", "full", "waited", "displaced", "too_late", "shed_retry", "shed_hedge", "retry_budget", "gone"}

// String is the reason as a label for logs and metrics, such as "shed_retry"; empty
// for NotRefused.
func (r Reason) String() string { return choice.Name("reason", reasonNames[:], r) }

// A Decision on a request. The zero Decision admits it.
type Decision struct {
	Outcome Outcome
	// Reason, RetryAfter and DontRetry are of a refusal.
	Reason Reason
	// RetryAfter is when to come back, at the earliest: longer the more wait or were
	// told to come back, and spread by chance. Also where DontRetry is set, for
	// those who do not understand that.
	RetryAfter time.Duration
	// DontRetry: the caller should not come back with this request.
	DontRetry bool
}

// Pushback is what gRPC should send under grpc-retry-pushback-ms (gRFC A6), in
// milliseconds: the wait before the next attempt, or -1 ms if there should be none.
func (d Decision) Pushback() time.Duration {
	if d.DontRetry {
		return -time.Millisecond
	}
	return d.RetryAfter
}

// Result is what came of work that was admitted.
type Result uint8

const (
	// Done: it was of use to its caller.
	Done Result = iota
	// Failed: it was not. The adaptive limit counts what is of use.
	Failed
	// Unmeasured: nothing is to be learned from it, such as from a connection that
	// was taken over, or from work that has not begun.
	Unmeasured
)

var resultNames = [...]string{"done", "failed", "unmeasured"}

// String is the result in lower case, such as "done".
func (r Result) String() string { return choice.Name("result", resultNames[:], r) }
