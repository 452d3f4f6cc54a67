//go:build servers

package lullsqs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os/signal"
	"path"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullgo/lull"
	lullsqs "github.com/lullgo/lull/integrations/lullsqs"
	"github.com/lullgo/lull/queue"
)

// newClient returns a client of an SQS that has the queue orders.
func newClient() *sqs.Client {
	client, err := lullsqs.Emulated()
	if err != nil {
		log.Fatal(err)
	}
	if _, err := lullsqs.Declare(context.Background(), client, lullsqs.Topology{Queue: "orders", Policy: queue.Policy()}); err != nil {
		log.Fatal(err)
	}
	return client
}

// A worker: the queues are checked, and then messages are handled until a signal stops it.
func Example() {
	client := newClient() // as a rule sqs.NewFromConfig, with the SDK's config package
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()

	policy := queue.Policy()
	config, err := lullsqs.Check(ctx, client, lullsqs.Topology{Queue: "orders", Policy: policy})
	if err != nil {
		log.Fatal(err)
	}
	orders, err := lullsqs.New(client, config)
	if err != nil {
		log.Fatal(err)
	}
	if err := orders.Send(ctx, queue.Outgoing{Body: []byte(`{"ID": "7"}`)}); err != nil { // as another service does
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
		fmt.Println("order", order.ID, "is shipped")
		stop() // a program that runs would go on
		return nil
	}, queue.Config{Lease: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	if err := consumer.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// order 7 is shipped
}

// The queues are made where the service is deployed; workers need no permission for that.
func ExampleDeclare() {
	client := newClient()
	config, err := lullsqs.Declare(context.Background(), client, lullsqs.Topology{
		Queue: "orders.fifo", Policy: lull.Policy{Attempts: 10}, MaxAge: 7 * 24 * time.Hour,
	})
	if err != nil {
		log.Fatal(err) // all that is missing or different, a line each
	}
	fmt.Println(path.Base(config.Queue), path.Base(config.DeadLetters)) // of their URLs
	// Output:
	// orders.fifo orders-dead.fifo
}

// Dead letters of one reason go back to their queue, five a second.
func ExampleBroker_Letters() {
	client, ctx := newClient(), context.Background()
	config, err := lullsqs.Check(ctx, client, lullsqs.Topology{Queue: "orders", Policy: queue.Policy()})
	if err != nil {
		log.Fatal(err)
	}
	orders, err := lullsqs.New(client, config)
	if err != nil {
		log.Fatal(err)
	}
	if err := exhaust(ctx, orders); err != nil {
		log.Fatal(err)
	}
	letters, err := orders.Letters(queue.ScanConfig{})
	if err != nil {
		log.Fatal(err)
	}
	filter := queue.Filter{Reason: "attempts_exhausted", YoungerThan: 24 * time.Hour}
	progress, err := queue.Redrive(ctx, letters, orders, queue.RedriveConfig{Filter: filter, Rate: 5}, nil)
	fmt.Println(progress, err)
	// Output:
	// moved 1 of 1 (1 seen) <nil>
}

// exhaust makes a dead letter, of a message whose only attempt fails.
func exhaust(ctx context.Context, orders *lullsqs.Broker) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := orders.Send(ctx, queue.Outgoing{Body: []byte(`{"ID": "8"}`)}); err != nil {
		return err
	}
	policy := queue.Policy()
	policy.Attempts = 1
	warehouse, err := lull.NewDependency("warehouse", policy)
	if err != nil {
		return err
	}
	consumer, err := queue.New("orders", orders, warehouse, func(context.Context, *queue.Message) error {
		return errors.New("the warehouse is closed")
	}, queue.Config{}, queue.WithObserver(func(_ context.Context, e queue.Event) {
		if e.Kind == queue.EventSettled {
			stop()
		}
	}))
	if err != nil {
		return err
	}
	return consumer.Run(ctx)
}
