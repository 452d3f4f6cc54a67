package lullsqs

import (
	"context"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

// Letters is Broker.Letters for tools, which know only the URL of the queue of dead letters.
func Letters(client API, url string, c queue.ScanConfig) (queue.DeadLetters, error) {
	q, err := New(client, Config{Queue: url})
	if err != nil {
		return nil, err
	}
	return q.read(c)
}

func (q *Broker) read(c queue.ScanConfig) (queue.DeadLetters, error) {
	q.forLetters = true
	from, err := queue.Scan(q, c)
	if err != nil || !q.fifo {
		return from, err
	}
	return &groupedLetters{DeadLetters: from, q: q, held: map[*queue.Letter]bool{}}, nil
}

// groupedLetters is a reading of a FIFO queue. SQS hands out nothing of a group while others of it are out.
type groupedLetters struct {
	queue.DeadLetters
	q    *Broker
	held map[*queue.Letter]bool // letters that may hide others of their group
}

func (g *groupedLetters) Next(ctx context.Context, most int) ([]*queue.Letter, error) {
	letters, err := g.DeadLetters.Next(ctx, most)
	for _, l := range letters {
		if l.Receipt.(*queue.Delivery).Receipt.(*receipt).payload.extra.Group == nil { // else it is in a group of its own
			g.held[l] = true
		}
	}
	if err == io.EOF && len(g.held) > 0 {
		return letters, g.checkHidden(ctx)
	}
	return letters, err
}

func (g *groupedLetters) Remove(ctx context.Context, l *queue.Letter) error {
	err := g.DeadLetters.Remove(ctx, l)
	if err == nil {
		delete(g.held, l)
	}
	return err
}

// checkHidden returns io.EOF if SQS counts no letter that could be received, else an error.
func (g *groupedLetters) checkHidden(ctx context.Context) error {
	count := "some"
	if admin, ok := g.q.client.(Admin); ok {
		const visible = types.QueueAttributeNameApproximateNumberOfMessages
		out, err := admin.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &g.q.config.Queue, AttributeNames: []types.QueueAttributeName{visible}}, NoRetries)
		if err == nil {
			count = out.Attributes[string(visible)]
		}
	}
	if count == "0" {
		return io.EOF
	}
	return lull.Permanent(fmt.Errorf("lullsqs: %s more letters may be there: SQS hides those of a group behind %d that were passed over. Move all letters, without a filter", count, len(g.held)))
}
