package queue

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// decided is an error by which a handler decides what happens to the message.
type decided struct {
	err     error
	outcome MessageOutcome
	after   time.Duration
	reason  string
}

func (d *decided) Error() string {
	if d.err == nil {
		return d.outcome.String()
	}
	return d.err.Error()
}

func (d *decided) Unwrap() error { return d.err }

// DeferFor declares that the message was not tried, and is to be delivered again after d: it
// came too early, or something that it needs is not there yet. err, which may be nil,
// is the reason. If the broker can (Capabilities.FreeDefer), Message.Attempt stays the
// same. Otherwise a message that is deferred at its last attempt becomes a dead letter,
// attempts_exhausted: a handler that waits for long returns lull.RetryAfter there, or its
// policy allows more attempts.
func DeferFor(err error, d time.Duration) error {
	return &decided{err: err, outcome: Defer, after: max(d, 0)}
}

// DropMessage declares that the message is of no use to anybody (a duplicate, or
// too late) and is to be forgotten without a dead letter. err, which may be nil, is the reason.
func DropMessage(err error) error { return &decided{err: err, outcome: Drop} }

// DeadLetterAs declares that the message will never succeed, and that it is a dead letter
// for the given reason: a label, such as "schema". lull.Permanent does the same with
// the reason "permanent".
func DeadLetterAs(reason string, err error) error {
	return &decided{err: cmp.Or(err, errors.New(reason)), outcome: DeadLetter, reason: reason}
}

// Decided returns what err decides about the message, if it is of [DeferFor] (Defer),
// [DropMessage] (Drop) or [DeadLetterAs] (DeadLetter): for what reads a handler's errors,
// such as a tracer. To defer or to drop is no failure.
func Decided(err error) (o MessageOutcome, ok bool) {
	d, ok := errors.AsType[*decided](err)
	if !ok {
		return Ack, false
	}
	return d.outcome, true
}

// ErrLeaseLost is the cause with which a handler's context ends when the lease of its
// message is lost, or could not be extended in time: another may be at work on it.
var ErrLeaseLost = errors.New("queue: the lease is lost, and another consumer may have the message")

// ErrDraining is the cause with which a handler's context ends when the consumer is
// to stop and Config.Drain has passed.
var ErrDraining = errors.New("queue: the consumer stops")

// A PanicError is the error of a handler that panicked.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.Value) }

// Unwrap gives the value of the panic, if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

var errGoexit = errors.New("the handler ended its goroutine (runtime.Goexit)")
