package migrate

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lullhttp"
)

func awsBefore(t *testing.T, b *backend) func(context.Context) error {
	transport := queue{b.transport()}
	client := sqs.New(sqs.Options{ // three attempts
		Region:      "eu-central-1",
		Credentials: credentials,
		HTTPClient:  &http.Client{Transport: transport},
	})
	return awsCall(client)
}

func awsAfter(t *testing.T, b *backend) func(context.Context) error {
	transport := queue{b.transport()}
	retrying, err := lullhttp.NewClient(lull.Policy{},
		lullhttp.WithBase(transport),
		lullhttp.WithRoute("POST sqs.eu-central-1.amazonaws.com", lull.Idempotent()), // every call is a POST
		lullhttp.WithReplay(1<<20), // the SDK sets no GetBody
	)
	if err != nil {
		t.Fatal(err)
	}
	client := sqs.New(sqs.Options{
		Region:      "eu-central-1",
		Credentials: credentials,
		Retryer:     aws.NopRetryer{},
		HTTPClient:  retrying,
	})
	return awsCall(client)
}

var credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
})

func awsCall(client *sqs.Client) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := client.ListQueues(ctx, nil)
		return err
	}
}

// queue gives the answers of the backend the body that the SDK reads.
type queue struct{ backend http.RoundTripper }

func (q queue) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := q.backend.RoundTrip(r)
	if err == nil {
		resp.Body = io.NopCloser(bytes.NewReader([]byte("{}")))
		resp.ContentLength = 2
		resp.Header.Set("Content-Type", "application/x-amz-json-1.0")
	}
	return resp, err
}
