package brokers

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go/logging"

	lullsqs "github.com/lullgo/lull/integrations/lullsqs"
	"github.com/lullgo/lull/queue"
)

func init() { Kinds["sqs"] = openSQS }

type account struct{ client *sqs.Client }

// openSQS takes sqs://REGION, with ?profile=NAME and ?endpoint=URL. It finds credentials as the AWS tools do.
func openSQS(ctx context.Context, u *url.URL) (Broker, error) {
	q := u.Query()
	options := []func(*config.LoadOptions) error{
		config.WithRegion(u.Hostname()),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }), // one layer retries
		config.WithLogger(logging.Nop{}),                                   // it writes of connections that end with their context
	}
	if p := q.Get("profile"); p != "" {
		options = append(options, config.WithSharedConfigProfile(p))
	}
	c, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, err
	}
	return &account{sqs.NewFromConfig(c, func(o *sqs.Options) {
		if e := q.Get("endpoint"); e != "" {
			o.BaseEndpoint = &e
		}
	})}, nil
}

func (a *account) url(ctx context.Context, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var err error
	if strings.Contains(name, "://") {
		_, err = a.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &name, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn}})
	} else {
		var found *sqs.GetQueueUrlOutput
		if found, err = a.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name}); err == nil {
			name = aws.ToString(found.QueueUrl)
		}
	}
	if missing, ok := errors.AsType[*types.QueueDoesNotExist](err); ok {
		return "", markedAs(ErrNoQueue, missing)
	}
	return name, unreachable(err)
}

func (a *account) Letters(ctx context.Context, name string) (queue.DeadLetters, error) {
	url, err := a.url(ctx, name)
	if err != nil {
		return nil, err
	}
	return lullsqs.Letters(a.client, url, queue.ScanConfig{Idle: 6 * time.Second, Lease: 30 * time.Second})
}

func (a *account) Sender(ctx context.Context, name string) (queue.Sender, error) {
	url, err := a.url(ctx, name)
	if err != nil {
		return nil, err
	}
	return lullsqs.New(a.client, lullsqs.Config{Queue: url})
}

func (a *account) Close() error { return nil }
