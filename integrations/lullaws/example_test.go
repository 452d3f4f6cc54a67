package lullaws_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullaws"
	"github.com/lullgo/lull/internal/memnet"
)

// flaky starts an SQS whose first answer is that it is not available.
func flaky() *httptest.Server {
	n := 0
	server := &httptest.Server{Listener: memnet.Listen(), Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Header.Get("X-Amz-Target"), r.Header.Get("Amz-Sdk-Request"))
		if n++; n == 1 {
			fail(w, 503, "ServiceUnavailable")
			return
		}
		succeed(w)
	})}}
	memnet.Start(server)
	return server
}

func credentials(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "example", SecretAccessKey: "example"}, nil
}

// All clients of a config, with a dependency for each service and region.
func ExampleAddTo() {
	server := flaky()
	defer server.Close()
	cfg := aws.Config{ // or that of config.LoadDefaultConfig
		Region: "eu-central-1", BaseEndpoint: &server.URL, HTTPClient: server.Client(), Credentials: aws.CredentialsProviderFunc(credentials),
	}
	services, err := lull.NewRegistry(quick, 100)
	if err != nil {
		log.Fatal(err)
	}
	if err := lullaws.AddTo(&cfg, services); err != nil {
		log.Fatal(err)
	}
	queues := sqs.NewFromConfig(cfg)
	_, err = queues.GetQueueUrl(context.Background(), &sqs.GetQueueUrlInput{QueueName: aws.String("orders")})
	fmt.Println(err)
	services.All(func(d *lull.Dependency) bool { fmt.Println(d.Name()); return true })
	// Output:
	// AmazonSQS.GetQueueUrl attempt=1; max=5
	// AmazonSQS.GetQueueUrl attempt=2; max=5
	// <nil>
	// SQS/eu-central-1
}

// One client, under a dependency that the program has. A message that must not be sent twice is
// not.
func ExampleRetry() {
	server := flaky()
	defer server.Close()
	d, err := lull.NewDependency("queues", quick)
	if err != nil {
		log.Fatal(err)
	}
	cfg := aws.Config{Region: "eu-central-1", BaseEndpoint: &server.URL, HTTPClient: server.Client(), Credentials: aws.CredentialsProviderFunc(credentials)}
	queues := sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.APIOptions = append(o.APIOptions, lullaws.Retry(d, nil)) })
	ctx := lullaws.With(context.Background(), lull.NotIdempotent())
	_, err = queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(server.URL), MessageBody: aws.String("order 7")})
	fmt.Println(errors.Is(err, lull.ErrNotIdempotent))
	// Output:
	// AmazonSQS.SendMessage attempt=1; max=5
	// true
}

// The options of a call are in its context.
func ExampleWith() {
	server := flaky()
	defer server.Close()
	d, err := lull.NewDependency("queues", quick)
	if err != nil {
		log.Fatal(err)
	}
	cfg := aws.Config{Region: "eu-central-1", BaseEndpoint: &server.URL, HTTPClient: server.Client(), Credentials: aws.CredentialsProviderFunc(credentials)}
	queues := sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.APIOptions = append(o.APIOptions, lullaws.Retry(d, nil)) })
	ctx := lullaws.With(context.Background(), lull.Once(), lull.Operation("look for the queue"))
	_, err = queues.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("orders")})
	var e *lull.Error
	fmt.Println(errors.As(err, &e), e.Operation, e.Attempts)
	// Output:
	// AmazonSQS.GetQueueUrl attempt=1; max=5
	// true look for the queue 1
}
