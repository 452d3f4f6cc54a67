package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/choice"
)

// A Broker is one connection to one queue, as a [Consumer] uses it. Package queuetest
// has the tests that every Broker must pass.
//
// # A message
//
//	ready     Receive may hand it out
//	waiting   it becomes ready when a time has come (Retry, Defer)
//	out       it was handed out and is not settled. It becomes ready when its lease
//	          lapses, if the broker has leases, or when the connection ends
//	gone      acknowledged, dropped, or dead-lettered
//
// # Attempt numbers
//
// Delivery.Attempt is 1 at the first delivery of a message. Each later delivery has the
// previous Attempt plus at least:
//
//	1   after Retry
//	0   after Defer, if Capabilities.FreeDefer; else 1
//	1   if the previous one was never settled: lease lapsed, connection ended, killed
//
// With Capabilities.Losses, Delivery.Lost counts the unsettled deliveries since the last settlement;
// Settlement.Uncount may subtract them. Attempt is larger if the broker counts deliveries that
// this package did not see: of a message that was fetched ahead and given back, or to another kind of
// consumer. It survives a restart of the broker. (A broker that is killed may forget its last moments.)
//
// A limit that the broker itself has (RabbitMQ's delivery limit, JetStream's
// MaxDeliver, SQS' maxReceiveCount) must be larger than Policy.Attempts, by 2 at
// least: the broker dead-letters without an envelope, or not at all.
//
// # Time
//
// Times that a Broker returns are this process's, and never later than the server's: time.Now of the
// moment before the request was sent, plus the duration that the server was asked for. A delay is counted
// from when Settle was called, and may be rounded up, never down: no message comes early.
//
// # Errors
//
// ErrLost (wrapped or not) is an answer: the delivery is not the caller's any more, and
// nothing was changed, except that a dead letter, or a copy of the message with its ID, may have
// been written. After any other error of Settle or Extend it is not known whether the call took effect, and
// the same call may be made again. If the first took effect, the second returns nil or ErrLost and changes
// nothing. Without leases, a delivery returns to the queue GiveBackAfter after its last failed Settle.
//
// An error that is marked with lull.Permanent means that calling again is of no use
// (no such queue, access denied); from Receive it ends Consumer.Run.
//
// A method returns promptly when ctx ends. (Receive may wait some seconds for a poll under way,
// if cancelling it would hide messages for the length of a lease.) If ctx has ended before the
// call, a method changes nothing and returns an error for which errors.Is(err, ctx.Err()) holds.
//
// # Concurrency
//
// Receive is called by one goroutine at a time. Extend and Settle may be called
// concurrently with it and each other, though not for the same delivery at the same
// time. After Consumer.Run has returned nothing more is called; closing the connection is
// its owner's business.
type Broker interface {
	// Capabilities returns what the broker can do. It does not change.
	Capabilities() Capabilities

	// Receive waits until there is at least one message. It returns what there is, at most w.Max,
	// without waiting for more. It may give up after a while (a long poll) and return none.
	// The order is the queue's, as far as it has one.
	//
	// The lease of each is w.Lease, or what the broker has fixed, from a moment before
	// the call returned. Messages that the server has handed out are returned, even if ctx has
	// ended meanwhile, or become ready again at the latest when their lease lapses.
	//
	// If Capabilities.Order is PerGroup or Total, at most one message of a group is out
	// at a time, over all connections, and no other message of the group is handed out
	// while one is waiting.
	//
	// If ctx ends: no messages with nil or ctx.Err() itself means that the server last reported an empty queue.
	// Another last answer (a refusal, a rate limit) is in the error. If a polled server has not answered, the
	// error is ErrUnanswered: nobody knows whether there are messages.
	Receive(ctx context.Context, w Want) ([]*Delivery, error)

	// Extend gives the delivery a lease of the given length from now on, or of what the
	// broker has fixed, and returns its end. It may shorten a lease. If Capabilities.MaxLease does not
	// allow that length, the lease is extended as far as possible.
	//
	// ErrLost if the lease has lapsed and the message may have been handed out again, or
	// it was settled. It is only called if Capabilities.Extends.
	Extend(ctx context.Context, d *Delivery, lease time.Duration) (time.Time, error)

	// Settle reports what happens to a delivery:
	//
	//	Ack         gone
	//	Retry       waiting for s.After, then ready; Attempt rises
	//	Defer       waiting for s.After, then ready; Attempt rises unless FreeDefer
	//	DeadLetter  a dead letter is written: the same body, headers and group, and the
	//	            header EnvelopeHeader with s.Envelope.Encode() (in place of a former
	//	            one). When the broker has it for certain, the message is gone
	//	Drop        gone
	//
	// A Retry or Defer after which d has expired is a DeadLetter (Settlement.Within).
	//
	// After is 0 to Capabilities.MaxDelay. Zero is at once.
	//
	// A call that is cut short may leave both the dead letter and the message, never
	// neither. With Capabilities.Deduplicates the dead letter has an id (DeadLetterID) that
	// is this message's and this consumer's alone: a second copy of it is discarded, but no
	// other message's letter. On other brokers both copies have the same OriginalID.
	//
	// ErrLost if the delivery was settled, or its lease has lapsed and the message may
	// have been handed out again. A settlement that comes after the lease but before
	// another delivery may take effect; then Settle returns nil.
	Settle(ctx context.Context, d *Delivery, s Settlement) error
}

// A Pauser is a Broker that needs to know of a pause, because it fetches ahead or the
// server pushes to it.
type Pauser interface {
	Broker

	// Pause announces that Receive will not be called before until, because the circuit
	// breaker is open, or what is handled next may crash this process. Messages that were fetched ahead, and that
	// Receive has not returned, must not lose an attempt: Pause gives them back if that is free, else keeps
	// them and extends their leases. It must not stop other consumers of the queue. It may be
	// called again during a pause. The next Receive ends the pause, also before until.
	Pause(ctx context.Context, until time.Time) error
}

// Capabilities describe what a broker can do. They are plain, comparable data.
type Capabilities struct {
	// ExactDelay: a message is ready when its delay has passed, apart from the time that the
	// network takes. Otherwise delays are rounded up to what the broker has.
	ExactDelay bool
	// MaxDelay is the longest Settlement.After that Settle takes. Zero: there are no
	// delays, and every After is zero.
	MaxDelay time.Duration
	// FreeDefer: a message that is deferred keeps its attempt number. Otherwise the
	// consumer keeps messages that it cannot begin, and extends their leases.
	FreeDefer bool
	// Order is the order that is kept, retries included: those that come after a message
	// wait until it is gone. A dead letter leaves the order.
	Order Order
	// Losses: Delivery.Lost and Delivery.Crashes are told and kept. Needs FreeDefer.
	Losses bool
	// Leases: what is out becomes ready when its lease lapses. Otherwise it becomes ready
	// only when the connection ends, and Delivery.Lease is zero.
	Leases bool
	// Extends: Extend works. Needs Leases.
	Extends bool
	// MaxLease is how long one delivery can be kept out by extending it. Zero: as long
	// as it is extended.
	MaxLease time.Duration
	// Deduplicates: of two messages with one id, sent within some minutes, one is
	// discarded (Sender.Send, dead letters).
	Deduplicates bool
}

func (c Capabilities) engine() engine.BrokerCapabilities {
	return engine.BrokerCapabilities{MaxDelay: c.MaxDelay, FreeDefer: c.FreeDefer, Losses: c.Losses}
}

// A Want describes the messages that Receive is asked for.
type Want struct {
	Max   int           // how many at most, from 1
	Lease time.Duration // positive
}

// A Delivery is a message as it was handed out once.
type Delivery struct {
	// ID is the broker's name for the message: the same at every delivery, and no
	// other message's. 1 to 512 bytes.
	ID string
	// Attempt is the number of the attempt that this delivery is, from 1.
	Attempt int
	// Lost is how many deliveries nobody has settled since the last settlement, and Crashes
	// is Settlement.Crashes of that settlement. Zero unless Capabilities.Losses.
	Lost, Crashes int
	// Enqueued is when the message was sent. Zero: not known.
	Enqueued time.Time
	// FirstSeen is when it was first handed out to a consumer. Zero: not known, or now.
	FirstSeen time.Time
	// FirstFailed is Settlement.FirstFailed of the first Retry. Zero: there was none,
	// or it is not kept.
	FirstFailed time.Time
	// Expires is when the message's time to live (TTL) ends, on this process's clock: its sender set
	// it, or its queue keeps no message for longer. It stays the same through retries and deferrals.
	// A message that cannot come again before then becomes a dead letter (Settlement.Within). Zero:
	// never, or not known.
	Expires time.Time
	// Lease is when the lease lapses, on this process's clock. Zero: never.
	Lease time.Time
	// Held ends when the adapter finds that the delivery is lost: its connection ended, the
	// server gave it to another. The context's cause is the reason. So the handler's context ends at
	// once, before the lease would lapse. Nil: only Extend and Settle report a loss.
	Held context.Context
	// Group is the group within which the order is kept, if Capabilities.Order is PerGroup.
	Group string
	// Headers and Body are as they were sent. The consumer and its handler may read
	// them until the delivery is settled, and must not change them.
	Headers Headers
	Body    []byte
	// Receipt is the adapter's own.
	Receipt any
}

// Headers are carried by a message beside its body. Names are letters, digits and hyphens, values text. Adapters leave
// out headers of other kinds.
type Headers map[string]string

// A Settlement is what a broker does with a delivery.
type Settlement struct {
	Outcome  MessageOutcome
	After    time.Duration // Retry, Defer
	Envelope *Envelope     // DeadLetter, else nil
	// FirstFailed is when the message failed for the first time, as far as is known
	// (Retry, Defer; zero if it has not failed). Some brokers keep it for
	// Delivery.FirstFailed.
	FirstFailed time.Time
	// Uncount is how many earlier deliveries to stop counting as attempts. Crashes is how many ended
	// without a known result, for Delivery.Crashes. Both are for Retry and Defer, and zero unless
	// Capabilities.Losses.
	Uncount, Crashes int
}

// Within checks s: every Settle begins with it. If d expires before a Retry or Defer ends, it returns a dead letter
// instead. after is s.After as the broker rounds it, longest is Capabilities.MaxDelay, and source is the name of the
// queue, for the envelope.
func (s Settlement) Within(d *Delivery, after, longest time.Duration, source string) (Settlement, error) {
	switch s.Outcome {
	case Ack, Drop:
		return s, nil
	case DeadLetter:
		if s.Envelope == nil {
			return s, lull.Permanent(errors.New("queue: a dead letter needs an envelope"))
		}
		return s, nil
	case Retry, Defer:
		if s.After < 0 || s.After > longest {
			return s, lull.Permanent(fmt.Errorf("queue: a delay of %v: want 0 to %v", s.After, longest))
		}
	default:
		return s, lull.Permanent(fmt.Errorf("queue: %v is no settlement", s.Outcome))
	}
	r := engine.Redelivery{Outcome: s.Outcome, After: after}.Within(d.lifeLeft())
	if r.Outcome == s.Outcome {
		return s, nil
	}
	e := &Envelope{
		Reason: r.Reason.String(), Attempts: d.Attempt - s.Uncount, FirstFailure: s.FirstFailed, LastFailure: time.Now(), Source: source, OriginalID: d.ID,
		TraceParent: d.Headers["traceparent"], TraceState: d.Headers["tracestate"],
	}
	if former, ok := EnvelopeOf(d.Headers); ok {
		e.Redrives, e.OriginalID = former.Redrives, cmp.Or(former.OriginalID, d.ID)
	}
	return Settlement{Outcome: r.Outcome, Envelope: e}, nil
}

// lifeLeft returns how long d has until it expires, as engine.Delivery.LifeLeft.
func (d *Delivery) lifeLeft() time.Duration {
	if d.Expires.IsZero() {
		return 0
	}
	left := time.Until(d.Expires)
	if left == 0 {
		left--
	}
	return left
}

// ErrTooLarge is in the error of a Settle that changed nothing, because the broker has no room for
// what the settlement adds to the message. The consumer then makes the message a dead letter. A dead
// letter has its headers shortened (Envelope.Shortened) before Settle returns this error.
var ErrTooLarge = errors.New("queue: the message is too large with what the settlement adds to it")

// GiveBackAfter is how long after its last failed Settle a delivery returns to the queue, if the
// Broker has no leases. Until then its consumer has it in hand (Config.Concurrency).
const GiveBackAfter = time.Minute

// ErrLost is a broker's answer to one who does not hold the delivery any more.
var ErrLost = errors.New("queue: the delivery is not held any more")

// ErrUnanswered is in the error of a Receive whose ctx ended before the server had answered, or was asked.
var ErrUnanswered = errors.New("queue: the server has not answered")

// A Sender puts messages into a queue. It is safe for concurrent use.
type Sender interface {
	// Send puts a message into the queue, ready, with no attempts made. nil means that
	// the broker has confirmed it. After any error that is not known, and the message may
	// be sent again. An error marked with lull.Permanent means that the broker will never
	// take this message.
	//
	// Where the broker deduplicates, a message with the ID of one that was sent within
	// some minutes is discarded, and the answer is nil.
	Send(ctx context.Context, o Outgoing) error
}

// An Outgoing is a message to be sent.
type Outgoing struct {
	// ID is 1 to 128 printable ASCII characters without spaces, by which the broker
	// deduplicates, if it can. Empty: every message is new. Whether ID becomes
	// Delivery.ID is the broker's business.
	ID      string
	Group   string
	Headers Headers
	Body    []byte
	// Letter is the dead letter that this message was, if Redrive sends it. A Sender of the
	// adapter that has read it takes from its Receipt what Headers do not carry: properties,
	// headers that are no text, the subject. Else nil.
	Letter *Letter
}

// A MessageOutcome is what happens to a delivery.
type MessageOutcome = engine.MessageOutcome

const (
	Ack        = engine.Ack        // it was handled
	Retry      = engine.Retry      // it failed, and is to be delivered again after a while
	Defer      = engine.Defer      // it was not tried, or this is not to count, and is to be delivered again after a while
	DeadLetter = engine.DeadLetter // it will not be tried again, and is put where somebody can look at it
	Drop       = engine.Drop       // it will not be tried again, and nobody needs to look at it
)

// Order is the order in which a broker hands out messages.
type Order uint8

const (
	// Unordered: about the order in which they were sent.
	Unordered Order = iota
	// PerGroup: messages of one group one after the other, in the order in which they
	// were sent.
	PerGroup
	// Total: all messages are of one group.
	Total
)

var orderNames = [...]string{"unordered", "per-group", "total"}

// String is the order in lower case, such as "per-group".
func (o Order) String() string { return choice.Name("order", orderNames[:], o) }
