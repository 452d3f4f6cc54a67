package lullsqs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullgo/lull"
	lullsqs "github.com/lullgo/lull/integrations/lullsqs"
	"github.com/lullgo/lull/queue"
)

// A worker: the queues are checked, and then messages are handled until a signal stops it.
func Example() {
	client := sqs.New(sqs.Options{Region: "eu-central-1"}) // as a rule sqs.NewFromConfig, with the SDK's config package
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()

	policy := queue.Policy()
	config, err := lullsqs.Check(ctx, client, lullsqs.Topology{Queue: "orders", Attempts: policy.Attempts})
	if err != nil {
		log.Fatal(err)
	}
	orders, err := lullsqs.New(client, config)
	if err != nil {
		log.Fatal(err)
	}
	warehouse, err := lull.NewDependency("warehouse", policy)
	if err != nil {
		log.Fatal(err)
	}
	consumer, err := queue.New("orders", orders, warehouse, func(ctx context.Context, m *queue.Message) error {
		var order struct{ ID string }
		if err := json.Unmarshal(m.Body, &order); err != nil {
			return queue.DeadLetterAs("schema", err)
		}
		return ship(ctx, order.ID)
	}, queue.Config{Lease: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	if err := consumer.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

func ship(context.Context, string) error { return nil }

// The queues are made where the service is deployed; workers need no permission for that.
func ExampleDeclare() {
	client := sqs.New(sqs.Options{Region: "eu-central-1"})
	config, err := lullsqs.Declare(context.Background(), client, lullsqs.Topology{
		Queue: "orders.fifo", Attempts: 10, Retention: 7 * 24 * time.Hour,
	})
	if err != nil {
		log.Fatal(err) // all that is missing or different, a line each
	}
	fmt.Println(config.Queue, config.DeadLetters)
}

// Dead letters of one reason go back to their queue, five a second.
func ExampleQueue_Letters() {
	client := sqs.New(sqs.Options{Region: "eu-central-1"})
	orders, err := lullsqs.New(client, lullsqs.Config{
		Queue:       "https://sqs.eu-central-1.amazonaws.com/123456789012/orders",
		DeadLetters: "https://sqs.eu-central-1.amazonaws.com/123456789012/orders-dead",
	})
	if err != nil {
		log.Fatal(err)
	}
	letters, err := orders.Letters(queue.ScanConfig{})
	if err != nil {
		log.Fatal(err)
	}
	filter := queue.Filter{Reason: "attempts_exhausted", YoungerThan: 24 * time.Hour}
	progress, err := queue.Redrive(context.Background(), letters, orders, queue.RedriveConfig{Filter: filter, Rate: 5}, nil)
	fmt.Println(progress, err)
}

func ExampleConfig_Validate() {
	fmt.Println(lullsqs.Config{Queue: "orders", Wait: time.Minute}.Validate())
	// Output:
	// Queue is "orders": want the URL of a queue, such as https://sqs.eu-central-1.amazonaws.com/123456789012/orders
	// Wait is 1m0s: want whole seconds from 1s to 20s, or 0 for the default of 5s
}

func ExampleTopology_Validate() {
	fmt.Println(lullsqs.Topology{Queue: "orders.fifo", Attempts: 10, MaxReceives: 10}.Validate())
	// Output:
	// MaxReceives is 10: want 12 (Attempts + 2) to 1000 receives, or 0 for the default
}
