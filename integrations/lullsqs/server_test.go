package lullsqs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
	"github.com/lullgo/lull/queue/queuetest"
)

func clientOf(endpoint string, more ...func(*sqs.Options)) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "eu-central-1", BaseEndpoint: &endpoint,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	}, more...)
}

// An address is the data that another process needs to reach a queue.
type address struct {
	Endpoint string
	Config   Config
	Lease    time.Duration
}

var (
	queues   atomic.Int64
	nameless = regexp.MustCompile(`[^a-zA-Z0-9]+`)
)

// newName returns a name that no other queue has.
func newName(t testing.TB, fifo bool) string {
	name := nameless.ReplaceAllString(t.Name(), "-")
	name = fmt.Sprintf("%s-%d", name[max(0, len(name)-50):], queues.Add(1))
	if fifo {
		name += ".fifo"
	}
	return name
}

// between is a client that does something before each call, which is made if that is no error.
type between struct {
	API
	before func(ctx context.Context, in any) error
}

func do[I, O any](ctx context.Context, b *between, in *I, call func(context.Context, *I, ...func(*sqs.Options)) (*O, error), o []func(*sqs.Options)) (*O, error) {
	if err := b.before(ctx, in); err != nil {
		return nil, err
	}
	return call(ctx, in, o...)
}

func (b *between) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return do(ctx, b, in, b.API.SendMessage, o)
}

func (b *between) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return do(ctx, b, in, b.API.ReceiveMessage, o)
}

func (b *between) DeleteMessage(ctx context.Context, in *sqs.DeleteMessageInput, o ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error) {
	return do(ctx, b, in, b.API.DeleteMessage, o)
}

func (b *between) ChangeMessageVisibility(ctx context.Context, in *sqs.ChangeMessageVisibilityInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	return do(ctx, b, in, b.API.ChangeMessageVisibility, o)
}

func connection(c API, admin Admin, a address) (*queuetest.Connection, error) {
	var closed atomic.Bool
	client := &between{c, func(context.Context, any) error { // nothing more after it is closed, as with a dead process
		if closed.Load() {
			return errors.New("this connection is closed")
		}
		return nil
	}}
	q, err := New(client, a.Config)
	if err != nil {
		return nil, err
	}
	return &queuetest.Connection{
		Broker: q, Sender: q,
		Letters: func(context.Context) (queue.DeadLetters, error) {
			return q.Letters(queue.ScanConfig{Lease: a.Lease})
		},
		Depth: func(ctx context.Context) (int, error) {
			o, err := admin.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &a.Config.Queue, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
			if err != nil {
				return 0, err
			}
			sum := 0
			for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"} {
				n, err := strconv.Atoi(o.Attributes[name])
				if err != nil {
					return 0, errors.Join(err, errors.New(name))
				}
				sum += n
			}
			return sum, nil
		},
		Close: func() error { closed.Store(true); return nil },
	}, nil
}

// The same against SQS as documented, in virtual time.
func TestConformanceOfTheDocumentation(t *testing.T) {
	var mu sync.Mutex
	fakes := map[string]*fake{}
	queuetest.Run(t, queuetest.Target{
		Declare: func(t testing.TB, o queuetest.Options) string {
			f := newFake()
			config := must.Have(Declare(t.Context(), f, Topology{Queue: newName(t, o.Order == queue.PerGroup), Policy: lull.Policy{Attempts: o.Attempts}}))
			mu.Lock()
			defer mu.Unlock()
			fakes[config.Queue] = f
			text, _ := json.Marshal(address{Config: config, Lease: o.Lease})
			return string(text)
		},
		Connect: func(_ context.Context, text string) (*queuetest.Connection, error) {
			var a address
			if err := json.Unmarshal([]byte(text), &a); err != nil {
				return nil, err
			}
			mu.Lock()
			defer mu.Unlock()
			f := fakes[a.Config.Queue]
			return connection(f, f, a)
		},
		Orders: []queue.Order{queue.Unordered, queue.PerGroup}, Lease: 6 * time.Second, Virtual: true,
	})
}
