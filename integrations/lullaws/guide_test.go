package lullaws_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullaws"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
)

// What the guide shows, as it stands there; other tests make calls with such clients.
func guideAdd(cfg aws.Config) error {
	services, err := lull.NewRegistry(lull.Policy{}, 100)
	if err != nil {
		return err
	}
	if err := lullaws.AddTo(&cfg, services); err != nil {
		return err
	}
	queues, buckets := sqs.NewFromConfig(cfg), s3.NewFromConfig(cfg)
	_, _ = queues, buckets
	return nil
}

// What the comment of the package shows, as it stands there.
func packageComment(cfg aws.Config) error {
	services, err := lull.NewRegistry(lull.Policy{}, 100)
	if err != nil {
		return err
	}
	err = lullaws.AddTo(&cfg, services) // cfg: that of config.LoadDefaultConfig
	if err != nil {
		return err
	}
	queues, buckets := sqs.NewFromConfig(cfg), s3.NewFromConfig(cfg)
	_, _ = queues, buckets
	return nil
}

func packageCommentOnce(ctx context.Context, client *sqs.Client, input *sqs.SendMessageInput) error {
	_, err := client.SendMessage(lullaws.With(ctx, lull.NotIdempotent()), input)
	return err
}

func TestWhatTheCommentShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memnet.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { succeed(w) }))
		cfg := aws.Config{Region: "eu-central-1", BaseEndpoint: &server.URL, HTTPClient: server.Client(), Credentials: aws.CredentialsProviderFunc(credentials)}
		must.Succeed(packageComment(cfg))
		services, err := lull.NewRegistry(lull.Policy{}, 100)
		if err != nil {
			t.Fatal(err)
		}
		must.Succeed(lullaws.AddTo(&cfg, services))
		input := &sqs.SendMessageInput{QueueUrl: &server.URL, MessageBody: aws.String("order 7")}
		must.Succeed(packageCommentOnce(t.Context(), sqs.NewFromConfig(cfg), input))
	})
}

func TestWhatTheGuideShows(t *testing.T) {
	must.Succeed(guideAdd(aws.Config{Region: "eu-central-1"}))
}
