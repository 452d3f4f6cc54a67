package queue

import (
	"context"
	"time"
)

// A Handler does what a message asks for. What it returns decides what happens to the message:
//
//	nil                                    acknowledged
//	a permanent error                      dead-lettered at once
//	any other error                        delivered again after a while, or dead-lettered
//	                                       when the attempts are used up
//	DeferFor, DropMessage, DeadLetterAs    see there
//
// Marks (lull.Transient, lull.RetryAfter, lull.Permanent) decide whether an error is permanent, else the classifier does:
// see [Classify].
//
// ctx ends when the policy's AttemptTimeout is over, when the lease is lost
// (ErrLeaseLost), or when the consumer stops (ErrDraining); context.Cause returns which. A
// handler must return when ctx ends. What it returns then still counts: a message that
// was handled is acknowledged, if the broker still takes that.
//
// The same message may be handled more than once, also at the same time as a handler
// elsewhere that does not know that its lease is lost: effects must bear that. A panic
// is an attempt that failed.
type Handler func(ctx context.Context, m *Message) error

// A Message is given to a handler. It may be used until the handler returns, and must not be
// changed.
type Message struct {
	// ID is the message's own: the same at every attempt, and also after it was
	// dead-lettered and redriven.
	ID string
	// Attempt is the number of the attempt, from 1, over all consumers. It may be more than Of
	// where the broker counts all deliveries alike, and consumers have crashed.
	Attempt int
	// Of is the most attempts that the policy allows.
	Of int
	// Try is the number of the run within this delivery, from 1 (Config.Quick).
	Try int
	// Redrives is how often the message was dead-lettered and put back.
	Redrives int
	// Enqueued and FirstSeen are when it was sent, and when it was first handed out.
	// Zero: not known (FirstSeen: or now).
	Enqueued, FirstSeen time.Time
	// Group is the group within which order is kept, if the broker keeps one.
	Group   string
	Headers Headers
	Body    []byte

	lease *lease
}

// LeaseDeadline is when the lease of this delivery lapses if it is not extended. It is
// extended while the handler runs. ok is false if the broker has no leases.
func (m *Message) LeaseDeadline() (t time.Time, ok bool) {
	if m.lease == nil {
		return time.Time{}, false
	}
	t = m.lease.end()
	return t, !t.IsZero()
}

// Extend extends the lease now, to have at least d more: for a handler that is about to
// stop the process from running, such as a long call into C. Other handlers do not need it.
// It fails if the broker cannot extend leases, or the lease is lost.
func (m *Message) Extend(ctx context.Context, d time.Duration) error {
	if m.lease == nil {
		return ErrLost
	}
	return m.lease.extendBy(ctx, d)
}
