package lullsqs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

type receipt struct {
	handle  string
	since   time.Time // SQS handed it out no earlier
	payload payload
	trace   string

	mu            sync.Mutex
	lease         time.Time // its end; SQS' is no earlier
	settled       bool
	letterWritten bool // the dead letter is written
}

var (
	errForeign   = lull.Permanent(errors.New("lullsqs: the delivery is not of this package"))
	errNoLetters = lull.Permanent(errors.New("lullsqs: there is no queue of dead letters (Config.DeadLetters)"))
)

// heldReceipt returns an error if the lease of d is over, as far as this process knows. SQS does not
// report it: it answers a change of visibility that comes too late as if it had been made.
func heldReceipt(d *queue.Delivery) (r *receipt, err error) {
	r, ok := d.Receipt.(*receipt)
	if !ok {
		return nil, errForeign
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.settled:
		return r, fmt.Errorf("lullsqs: settled before: %w", queue.ErrLost)
	case !time.Now().Before(r.lease):
		return r, errLapsed
	}
	return r, nil
}

var errLapsed = fmt.Errorf("lullsqs: the lease has lapsed: %w", queue.ErrLost)

// Extend is part of queue.Broker. The lease is in whole seconds, rounded up, and no longer than
// Capabilities.MaxLease after the receive. It returns ErrLost as Settle does.
func (q *Broker) Extend(ctx context.Context, d *queue.Delivery, lease time.Duration) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	r, err := heldReceipt(d)
	if err != nil {
		return time.Time{}, err
	}
	began := time.Now()
	last := r.since.Add(q.config.maxLease())
	out := min(ceilSeconds(lease), last.Sub(began).Truncate(time.Second))
	if out < time.Second {
		return r.end(), nil
	}
	if err := q.setVisibility(ctx, r, out); err != nil {
		return time.Time{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !time.Now().Before(r.lease) {
		return time.Time{}, errLapsed // the call may have come too late, and changed nothing
	}
	r.lease = began.Add(out)
	return r.lease, nil
}

// Settle is part of queue.Broker.
//
// Ack and Drop delete the message. Retry and Defer change its visibility, in whole seconds, rounded up. DeadLetter sends it
// to the queue of dead letters, with all its attributes and the envelope, and then deletes it. If that is too large, the
// envelope has no errors. If it still is, headers are shortened, and the envelope names them. If that is not enough, Settle
// fails: the message stays, until SQS moves it itself.
//
// It returns ErrLost when SQS reports a loss, and when the lease has lapsed by this process's clock: a Retry or Defer
// checks the clock again when SQS has answered. SQS answers a change of visibility that comes too late as if it had been
// made, and likewise the deletion of a message of a standard queue that another worker has by then. Ack and Drop delete
// the message even after the lease, in case nobody else has it yet.
func (q *Broker) Settle(ctx context.Context, d *queue.Delivery, s queue.Settlement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, err := heldReceipt(d)
	lapsed := err == errLapsed
	if err != nil && !lapsed {
		return err
	}
	s, err = s.Within(d, ceilSeconds(s.After), q.config.MaxDelay, q.config.Queue[strings.LastIndexByte(q.config.Queue, '/')+1:])
	if err != nil {
		return err
	}
	gone := s.Outcome == queue.Ack || s.Outcome == queue.Drop
	if lapsed && !gone {
		return errLapsed
	}
	switch s.Outcome {
	case queue.Ack, queue.Drop:
		if err = q.remove(ctx, r); lapsed {
			return errLapsed // whatever SQS answers: another worker may have it by then
		}
	case queue.Retry, queue.Defer:
		if err = q.delay(ctx, r, s.After); err == nil && !time.Now().Before(r.end()) {
			return errLapsed // the call may have come too late, and changed nothing
		}
	case queue.DeadLetter:
		err = q.deadLetter(ctx, d, r, s.Envelope)
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.settled = true
	r.mu.Unlock()
	return nil
}

func (r *receipt) end() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lease
}

func (q *Broker) remove(ctx context.Context, r *receipt) error {
	_, err := q.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &q.config.Queue, ReceiptHandle: &r.handle}, NoRetries)
	return handled(ctx, "delete", err)
}

// setVisibility makes the message visible again after d, which is in whole seconds.
func (q *Broker) setVisibility(ctx context.Context, r *receipt, d time.Duration) error {
	_, err := q.client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &q.config.Queue, ReceiptHandle: &r.handle, VisibilityTimeout: seconds(d)}, NoRetries)
	return handled(ctx, "change the visibility", err)
}

// delay makes the message wait. SQS refuses a wait with which the message would be out for more than
// 12 hours in all. Config.MaxDelay and Capabilities.MaxLease prevent that. If SQS counts
// differently, the message waits for as long as SQS allows: half of the rest, or half of that. This
// is still longer than no delay.
func (q *Broker) delay(ctx context.Context, r *receipt, after time.Duration) error {
	d := ceilSeconds(after)
	err := q.setVisibility(ctx, r, d)
	if err == nil || !isTooLong(err) {
		return err
	}
	rest := maxOut - clockMargin - time.Since(r.since)
	for d = min(d/2, rest).Truncate(time.Second); d >= time.Second && isTooLong(err); d = (d / 2).Truncate(time.Second) {
		err = q.setVisibility(ctx, r, d)
	}
	return err
}

func (q *Broker) deadLetter(ctx context.Context, d *queue.Delivery, r *receipt, e *queue.Envelope) error {
	if q.config.DeadLetters == "" {
		return errNoLetters
	}
	if !r.letterWritten {
		p := r.payload.with(queue.EnvelopeHeader, e.Encode())
		bare := *e // its texts are the longest part of it
		bare.Errors, bare.TraceState = nil, ""
		err := q.letter(ctx, d, r, p)
		for _, smaller := range []func() payload{
			func() payload { return p.with(queue.EnvelopeHeader, bare.Encode()) },
			func() payload { return p.shorten(e) },
		} {
			if code(err) == "BatchRequestTooLong" || code(err) == "InvalidParameterValue" && strings.Contains(api(err).ErrorMessage(), "shorter than") || errors.Is(err, errTooBig) {
				err = q.letter(ctx, d, r, smaller())
			}
		}
		if err != nil {
			return err
		}
		r.letterWritten = true
	}
	return q.remove(ctx, r)
}

// letter sends a dead letter. In a FIFO queue each has a group of its own, and carries the
// message's group in ExtraAttribute. Otherwise a reader that does not remove letters would see no
// more than the first of each group, and a redrive that skips one would see none behind it.
func (q *Broker) letter(ctx context.Context, d *queue.Delivery, r *receipt, p payload) (err error) {
	in := &sqs.SendMessageInput{QueueUrl: &q.config.DeadLetters}
	if q.fifo {
		in.MessageDeduplicationId = aws.String(queue.DeadLetterID(d.ID))
		in.MessageGroupId = in.MessageDeduplicationId
		p.extra.Group = &d.Group
	} else if in.MessageGroupId, err = q.group(d.Group); err != nil {
		return err
	}
	if r.trace != "" {
		in.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{
			string(types.MessageSystemAttributeNameForSendsAWSTraceHeader): {DataType: aws.String("String"), StringValue: &r.trace},
		}
	}
	return q.send(ctx, in, p)
}
