package lullsqs

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

// Send is part of queue.Sender. In a FIFO queue, o.ID is the message's deduplication id; if it is
// empty, the message gets a unique one. A standard queue does not deduplicate, and o.ID is not
// sent. o.Group is the message group: of a FIFO queue, for its order; of a standard queue, if it is
// not empty, for fairness among tenants.
//
// Each header is a message attribute. SQS takes ten, with values that are not empty; the others go
// into one more ([ExtraAttribute]). A message of more than 1 MiB with its headers, and headers that
// are not UTF-8, are errors before anything is sent. Leave 5 KiB free: a message of the greatest
// size has no room for its envelope.
func (q *Broker) Send(ctx context.Context, o queue.Outgoing) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p, err := encode(o.Headers, o.Body)
	if err != nil {
		return err
	}
	if r := letterReceipt(o.Letter); r != nil { // with attributes of all types
		p = r.payload.with(queue.EnvelopeHeader, o.Headers[queue.EnvelopeHeader])
		p.extra.Group = nil
	}
	in := &sqs.SendMessageInput{QueueUrl: &q.config.Queue}
	if in.MessageGroupId, err = q.group(o.Group); err != nil {
		return err
	}
	if o.ID != "" && !token.MatchString(o.ID) {
		return lull.Permanent(fmt.Errorf("lullsqs: the id is %q: want 1 to 128 printable ASCII characters without spaces", o.ID))
	}
	if q.fifo {
		in.MessageDeduplicationId = aws.String(o.ID)
		if o.ID == "" {
			in.MessageDeduplicationId = aws.String(rand.Text())
		}
	}
	return q.send(ctx, in, p)
}

// letterReceipt returns the receipt of a letter from a reading of this package, else nil.
func letterReceipt(l *queue.Letter) (r *receipt) {
	if l == nil {
		return nil
	}
	if d, ok := l.Receipt.(*queue.Delivery); ok {
		r, _ = d.Receipt.(*receipt)
	}
	return r
}

func (q *Broker) send(ctx context.Context, in *sqs.SendMessageInput, p payload) error {
	text, attrs, err := p.finish()
	if err != nil {
		return err
	}
	in.MessageBody, in.MessageAttributes = &text, attrs
	_, err = q.client.SendMessage(ctx, in, NoRetries)
	return failed(ctx, "send", err)
}
