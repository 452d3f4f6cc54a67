//go:build servers

package lullamqp_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/lullgo/lull"
	lullamqp "github.com/lullgo/lull/integrations/lullamqp"
	"github.com/lullgo/lull/queue"
)

// A consumer, from the connection to the end.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	client := lullamqp.New(lullamqp.Dial("amqp://guest:guest@127.0.0.1:1/")) // nobody is there
	defer client.Close(ctx)

	orders, err := client.Open(ctx, lullamqp.Config{Queue: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	payments, err := lull.NewDependency("payments", queue.Policy())
	if err != nil {
		log.Fatal(err)
	}
	handle := func(ctx context.Context, m *queue.Message) error { return nil }
	see := func(_ context.Context, e queue.Event) {
		fmt.Println(e.Kind) // a program that runs would go on trying
		stop()
	}
	consumer, err := queue.New("orders", orders, payments, handle, queue.Config{}, queue.WithObserver(see))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(consumer.Run(ctx))
	// Output:
	// receive_failed
	// <nil>
}

// Declare at deployment, Check at the start.
func ExampleClient_Check() {
	client := lullamqp.New(lullamqp.Dial("amqp://guest:guest@127.0.0.1:1/"))
	defer client.Close(context.Background())
	err := client.Check(context.Background(), lullamqp.Config{Queue: "orders"})
	if problems, ok := errors.AsType[lullamqp.Mismatches](err); ok {
		for _, p := range problems {
			fmt.Println(p) // queue orders.dead: missing, want a durable queue with ...
		}
	}
	fmt.Println("is it known what is wrong there:", err == nil)
	// Output:
	// is it known what is wrong there: false
}

// What RabbitMQ can do.
func ExampleBroker_Capabilities() {
	client := lullamqp.New(lullamqp.Dial("amqp://guest:guest@127.0.0.1:1/")) // nobody is there
	orders, err := client.Open(context.Background(), lullamqp.Config{Queue: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	can := orders.Capabilities()
	fmt.Println("longest delay:", can.MaxDelay.Round(time.Minute))
	fmt.Println("a deferral costs no attempt:", can.FreeDefer)
	// Output:
	// longest delay: 23h18m0s
	// a deferral costs no attempt: true
}
