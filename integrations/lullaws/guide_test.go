package lullaws_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullaws"
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

func TestWhatTheGuideShows(t *testing.T) {
	if err := guideAdd(aws.Config{Region: "eu-central-1"}); err != nil {
		t.Error(err)
	}
}
