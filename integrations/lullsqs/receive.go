package lullsqs

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/sleep"
	"github.com/lullgo/lull/queue"
)

const (
	// answerTime is how long an answer may take, beyond the requested wait.
	answerTime = 10 * time.Second
	// lateAnswer is the same when nobody waits for the answer any more.
	lateAnswer = 2 * time.Second
	// repeatable is how long SQS recognises a receive by its attempt id.
	repeatable = 5 * time.Minute
)

// attempt is a receive from a FIFO queue that may have to be repeated under its id.
type attempt struct {
	id    string
	since time.Time // when it was first sent
}

// Receive is part of queue.Broker. It is one long poll: it may return no messages and no error after Config.Wait. If ctx has
// a deadline, it polls until then.
//
// When ctx ends, Receive returns when the poll under way is answered: after Config.Wait at most (and 2 s, if the answer does
// not come). SQS would continue a poll that is cut off, and hand out messages to nobody. If SQS has not reported an empty
// queue by then, the error contains SQS' reason, or queue.ErrUnanswered.
//
// The visibility timeout of the messages is the requested lease, in whole seconds, plus the wait: it is not known when in
// that time SQS hands them out. Delivery.Lease never ends later than SQS' lease. Receive takes one message at a time from a
// FIFO queue: if one of several of a group fails, those behind it would have been received in vain, and SQS counts that.
//
// When SQS limits the rate, Receive waits before it returns the error: up to 1 s, 2 s, 4 s, ... 20 s at
// random, or the time that SQS asks for. When the greatest number of messages is in flight
// (OverLimit) it waits likewise, and returns none; for [Broker.Letters], the error.
func (q *Broker) Receive(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
	for polled := false; ; polled = true {
		if err := ctx.Err(); err != nil && !polled {
			return nil, fmt.Errorf("%w: %w", queue.ErrUnanswered, err)
		} else if err != nil {
			return nil, err
		}
		wait, bounded := q.pollWait(ctx, w)
		if polled && wait <= 0 {
			<-ctx.Done() // there is no time for another poll
			return nil, ctx.Err()
		}
		got, err := q.receive(ctx, w, max(wait, time.Second))
		if !isRateLimited(err) {
			q.rateLimited = 0
		}
		if !isOverLimit(err) {
			q.overLimits = 0
		}
		switch {
		case len(got) > 0:
			return got, nil
		case isOverLimit(err):
			q.overLimits++
			sleep.For(ctx, backoff.Schedule{Base: time.Second, Jitter: backoff.Equal}.Delay(q.overLimits, 0, mathrand.Uint64))
			if q.forLetters {
				return nil, lull.RetryAfter(err, 0)
			}
			return nil, ctx.Err()
		case isRateLimited(err):
			q.rateLimited++
			sleep.For(ctx, rateLimitWait(err, q.rateLimited))
			return nil, err
		case ctx.Err() != nil && unanswered(err):
			return nil, lull.Transient(fmt.Errorf("%w: %w", queue.ErrUnanswered, err))
		case err != nil || !bounded && ctx.Err() == nil:
			return nil, err
		}
	}
}

// rateLimitWait returns how long to wait after the n-th rate-limited receive in a row, before its error is
// returned. (AWS' retry behaviour 2.1: up to 1 s, doubling up to 20 s, full jitter. A longer
// x-amz-retry-after replaces it, but adds 5 s at most.)
func rateLimitWait(err error, n int) time.Duration {
	d := backoff.Schedule{Base: time.Second, Cap: 20 * time.Second}.Delay(n, 0, mathrand.Uint64)
	if asked, ok := retryAfter(err); ok {
		d = min(max(asked, d), d+5*time.Second)
	}
	return d
}

// pollWait returns how long a poll may wait for messages: no longer than half of the lease, and short
// enough to be answered before ctx ends. Zero: there is no time for one.
func (q *Broker) pollWait(ctx context.Context, w queue.Want) (d time.Duration, bounded bool) {
	d = min(q.config.Wait, max((w.Lease/2).Truncate(time.Second), time.Second))
	end, bounded := ctx.Deadline()
	if bounded {
		d = min(d, max(time.Until(end)-500*time.Millisecond, 0).Truncate(time.Second))
	}
	return d, bounded
}

// pollContext returns a context for a poll. It does not end with ctx, but some time after the poll
// should have been answered.
func pollContext(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	answerDue := time.Now().Add(wait + lateAnswer)
	poll, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait+answerTime)
	stop := context.AfterFunc(ctx, func() {
		sleep.For(poll, time.Until(answerDue))
		cancel()
	})
	return poll, func() {
		stop()
		cancel()
	}
}

func (q *Broker) receive(ctx context.Context, w queue.Want, wait time.Duration) ([]*queue.Delivery, error) {
	out := min(ceilSeconds(w.Lease)+wait, q.config.maxLease().Truncate(time.Second))
	in := &sqs.ReceiveMessageInput{
		QueueUrl:              &q.config.Queue,
		MaxNumberOfMessages:   int32(max(min(w.Max, mostMessages), 1)),
		WaitTimeSeconds:       seconds(wait),
		VisibilityTimeout:     seconds(out),
		MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameApproximateFirstReceiveTimestamp,
			types.MessageSystemAttributeNameSentTimestamp, types.MessageSystemAttributeNameMessageGroupId, types.MessageSystemAttributeNameAWSTraceHeader,
		},
	}
	began := time.Now()
	first := began
	if q.fifo {
		if !q.forLetters { // letters that SQS has moved keep their groups
			in.MaxNumberOfMessages = 1
		}
		if q.repeat.id == "" || began.Add(wait+answerTime).Sub(q.repeat.since) > repeatable {
			q.repeat = attempt{rand.Text(), began}
		}
		in.ReceiveRequestAttemptId = aws.String(q.repeat.id)
		first = q.repeat.since
	}
	if q.forLetters {
		in.MessageSystemAttributeNames = append(in.MessageSystemAttributeNames, types.MessageSystemAttributeNameDeadLetterQueueSourceArn)
	}
	poll, cancel := pollContext(ctx, wait)
	defer cancel()
	res, err := q.client.ReceiveMessage(poll, in, NoRetries)
	if !unanswered(err) {
		q.repeat = attempt{}
	}
	if err != nil {
		return nil, failed(ctx, "receive", err)
	}
	var got []*queue.Delivery
	for i := range res.Messages {
		got = append(got, q.delivery(&res.Messages[i], first, began.Add(out)))
	}
	return got, nil
}

// delivery returns m as a delivery. m was received no earlier than since, and is out until lease.
func (q *Broker) delivery(m *types.Message, since, lease time.Time) *queue.Delivery {
	p := parse(aws.ToString(m.Body), m.MessageAttributes)
	d := &queue.Delivery{
		ID:        aws.ToString(m.MessageId),
		Attempt:   max(int(number(m.Attributes, types.MessageSystemAttributeNameApproximateReceiveCount)), 1),
		Enqueued:  stamp(m.Attributes, types.MessageSystemAttributeNameSentTimestamp),
		FirstSeen: stamp(m.Attributes, types.MessageSystemAttributeNameApproximateFirstReceiveTimestamp),
		Lease:     lease,
		Group:     m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)],
		Headers:   p.headers(),
		Body:      p.body(),
		Receipt: &receipt{
			handle: aws.ToString(m.ReceiptHandle), since: since, lease: lease, payload: p,
			trace: m.Attributes[string(types.MessageSystemAttributeNameAWSTraceHeader)],
		},
	}
	// The message has just come: if its time is over, the clocks differ.
	if end := d.Enqueued.Add(q.config.MaxAge); q.config.MaxAge > 0 && !d.Enqueued.IsZero() && end.After(time.Now()) {
		d.Expires = end
	}
	switch {
	case p.extra.Group != nil:
		d.Group = *p.extra.Group
	case d.Group == noGroup:
		d.Group = ""
	}
	if source := m.Attributes[string(types.MessageSystemAttributeNameDeadLetterQueueSourceArn)]; source != "" {
		if _, ok := queue.EnvelopeOf(d.Headers); !ok {
			e := queue.Envelope{Reason: queue.ReasonBroker, Source: source[strings.LastIndexByte(source, ':')+1:], OriginalID: d.ID, FirstFailure: d.FirstSeen}
			d.Headers[queue.EnvelopeHeader] = e.Encode()
		}
	}
	return d
}

func number(attrs map[string]string, name types.MessageSystemAttributeName) int64 {
	n, _ := strconv.ParseInt(attrs[string(name)], 10, 64)
	return max(n, 0)
}

func stamp(attrs map[string]string, name types.MessageSystemAttributeName) time.Time {
	if n := number(attrs, name); n > 0 {
		return time.UnixMilli(n)
	}
	return time.Time{}
}

// noGroup is the group of a message that was sent to a FIFO queue without one, for SQS requires a
// group.
const noGroup = "Lull-None"

// group returns the MessageGroupId to send.
func (q *Broker) group(name string) (*string, error) {
	switch {
	case name == "" && q.fifo:
		return aws.String(noGroup), nil
	case name == "":
		return nil, nil
	case !token.MatchString(name):
		return nil, lull.Permanent(fmt.Errorf("lullsqs: the group is %q: want 1 to 128 printable ASCII characters without spaces", name))
	}
	return &name, nil
}
