package admission

import (
	"time"

	"github.com/lullgo/lull/internal/choice"
)

// ArriveResult is the result of Arrive.
type ArriveResult uint8

const (
	// Admitted: the work may begin. Depart must be called.
	Admitted ArriveResult = iota
	// Queued: it waits. Ticket.Settled is called with Admitted or Refused, unless
	// it leaves before.
	Queued
	// Refused: the work must not be done.
	Refused
)

var outcomeNames = [...]string{"admitted", "queued", "refused"}

// String returns the outcome in lower case, such as "admitted".
func (o ArriveResult) String() string { return choice.Name("outcome", outcomeNames[:], o) }

// RefusalReason is why a request was refused.
type RefusalReason uint8

const (
	// NotRefused: it was admitted or queued.
	NotRefused RefusalReason = iota
	// Full: there is no room, and none in the queue.
	Full
	// Waited: its turn did not come within the bound of the queue.
	Waited
	// Displaced: it waited in a full queue, and made room for one that goes before it.
	Displaced
	// TooLate: its deadline has passed, or is too near for the work to be done by then.
	TooLate
	// ShedRetry: a retry, while first attempts wait or are refused.
	ShedRetry
	// ShedHedge: a hedge, while there is no room to spare.
	ShedHedge
	// RetryBudget: too many of the arrivals are retries and hedges.
	RetryBudget
	// Gone: its caller has gone before its turn came. Nobody reads the answer.
	Gone
)

const reasons = int(Gone) + 1

var reasonNames = [...]string{"", "full", "waited", "displaced", "too_late", "shed_retry", "shed_hedge", "retry_budget", "gone"}

// String returns the reason as a label for logs and metrics, such as "shed_retry"; empty
// for NotRefused.
func (r RefusalReason) String() string { return choice.Name("reason", reasonNames[:], r) }

// A Decision on a request. The zero Decision admits it.
type Decision struct {
	Outcome ArriveResult
	// Reason, RetryAfter and DontRetry are set in a refusal.
	Reason RefusalReason
	// RetryAfter is the least time until the caller comes back. It grows with the number
	// of those that wait or were asked to come back, and is spread by chance. It is also
	// set beside DontRetry, for callers that do not understand that.
	RetryAfter time.Duration
	// DontRetry: the caller should not come back with this request.
	DontRetry bool
}

// Pushback returns the value of gRPC's grpc-retry-pushback-ms (gRFC A6), to be sent in
// milliseconds: the wait before the next attempt, or -1 ms if there should be none.
func (d Decision) Pushback() time.Duration {
	return choice.Either(d.DontRetry, -time.Millisecond, d.RetryAfter)
}

// WorkResult is the result of work that was admitted.
type WorkResult uint8

const (
	// Done: it was of use to its caller.
	Done WorkResult = iota
	// Failed: it was of no use. The adaptive limit counts only what is of use.
	Failed
	// Unmeasured: nothing can be learned from it. Examples are a connection that was
	// taken over, and work that has not begun.
	Unmeasured
)

var resultNames = [...]string{"done", "failed", "unmeasured"}

// String returns the result in lower case, such as "done".
func (r WorkResult) String() string { return choice.Name("result", resultNames[:], r) }
