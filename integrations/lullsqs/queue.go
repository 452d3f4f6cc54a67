package lullsqs

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullgo/lull/queue"
)

// A Broker is a queue of Amazon SQS: a queue.Broker for one consumer, and a queue.Sender
// for any number of goroutines. Make one with [New].
type Broker struct {
	client API
	config Config
	fifo   bool

	forLetters bool // for Letters: the order within a group does not matter

	// State of Receive. Only one Receive runs at a time.
	rateLimited int     // rate-limited receives in a row
	overLimits  int     // receives in a row with too many messages in flight
	repeat      attempt // a receive from a FIFO queue that was not answered
}

// New returns the queue that config names. It makes no call: [Check] does, and finds out whether
// everything is there.
func New(c API, config Config) (*Broker, error) {
	if c == nil {
		return nil, errors.New("lullsqs: a queue needs a client")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("config of a queue of SQS: %w", err)
	}
	return &Broker{client: c, config: config.withDefaults(), fifo: isFIFO(config.Queue)}, nil
}

// Capabilities is part of queue.Broker. A deferral is never free, as SQS counts every receive.
func (q *Broker) Capabilities() queue.Capabilities {
	can := queue.Capabilities{
		MaxDelay: q.config.MaxDelay, Leases: true, Extends: true, MaxLease: q.config.maxLease(),
	}
	if q.fifo {
		can.Order, can.Deduplicates = queue.PerGroup, true
	}
	return can
}

// Letters begins a reading of the queue of dead letters, for queue.Inspect and queue.Redrive: see
// queue.Scan. Other readers do not see the letters that this one holds. Each reading counts as a
// receive, so that queue must have no redrive policy.
//
// A letter that SQS itself has moved there has no envelope: its reason is queue.ReasonBroker, and
// its source is the name of its former queue. In a FIFO queue it keeps its group, and no more than
// ten of a group are seen until they are removed. If there may be more, the reading ends with an error
// (it counts them, if the client is an [Admin]). Letters that a consumer wrote do not hide each other.
func (q *Broker) Letters(c queue.ScanConfig) (queue.DeadLetters, error) {
	if q.config.DeadLetters == "" {
		return nil, errNoLetters
	}
	config := q.config
	config.Queue, config.DeadLetters, config.MaxAge = q.config.DeadLetters, "", 0
	dead, err := New(q.client, config)
	if err != nil {
		return nil, err
	}
	return dead.read(c)
}

// An API is the part of the AWS SDK's *sqs.Client that a [Broker] needs. It must be safe for
// concurrent use, and is never closed here.
//
// Every call is made with the SDK's retries switched off (see [NoRetries]).
type API interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
	ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
}

// An Admin is the part of *sqs.Client that [Declare] and [Check] need. Check calls only the Get
// methods.
type Admin interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	CreateQueue(context.Context, *sqs.CreateQueueInput, ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error)
	SetQueueAttributes(context.Context, *sqs.SetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.SetQueueAttributesOutput, error)
}

// NoRetries switches the retries of the SDK off for one call. A Broker passes it with each of its calls, whatever the client's
// own options are: only the consumer retries.
func NoRetries(o *sqs.Options) { o.Retryer = aws.NopRetryer{} }
