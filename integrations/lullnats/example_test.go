package lullnats_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/queue"
)

func ExampleConfig_Validate() {
	c := lullnats.Config{Stream: "ORDERS", Consumer: "bil ling", Subject: "orders.>", MaxDeliver: 5}
	fmt.Println(c.Validate())
	// Output:
	// Consumer is "bil ling": want 1 to 100 letters, digits, hyphens and underscores
	// MaxDeliver is 5: want at least 12 (Attempts + 2), 0 for Attempts + 5, or less for no limit
}

// A worker of a queue that is declared when it starts, with a reaper beside it.
func ExampleOpen() {
	nc, err := nats.Connect(nats.DefaultURL, nats.MaxReconnects(-1), nats.ReconnectBufSize(-1))
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	policy := queue.Policy()
	orders := lullnats.Config{Stream: "ORDERS", Consumer: "billing", Subject: "orders.>", Attempts: policy.Attempts, Schedules: true}
	if err := lullnats.Declare(ctx, js, orders); err != nil { // or Check, where others declare
		log.Fatal(err)
	}
	b, err := lullnats.Open(ctx, js, orders)
	if err != nil {
		log.Fatal(err)
	}
	reaper, err := lullnats.NewReaper(ctx, js, orders)
	if err != nil {
		log.Fatal(err)
	}
	go reaper.Run(ctx, time.Minute, func(err error) { log.Print(err) })

	ledger, err := lull.NewDependency("ledger", policy)
	if err != nil {
		log.Fatal(err)
	}
	consumer, err := queue.New(orders.Stream, b, ledger, func(ctx context.Context, m *queue.Message) error {
		return nil // post to the ledger
	}, queue.Config{})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(consumer.Run(ctx))
}

// Check reports everything that is missing of a queue, line by line.
func ExampleCheck() {
	var js jetstream.JetStream // a connection
	err := lullnats.Check(context.Background(), js, lullnats.Config{Stream: "ORDERS", Consumer: "billing", Subject: "orders.>"})
	fmt.Println(err)
	// Output: lullnats: no connection to JetStream
}

// Dead letters of one reason are put back, ten a second.
func ExampleLetters() {
	ctx := context.Background()
	var js jetstream.JetStream // a connection
	orders := lullnats.Config{Stream: "ORDERS", Consumer: "billing", Subject: "orders.>"}
	from, err := lullnats.Letters(ctx, js, orders)
	if err != nil {
		log.Fatal(err)
	}
	to, err := lullnats.NewSender(js, orders.Stream, "orders.again")
	if err != nil {
		log.Fatal(err)
	}
	done, err := queue.Redrive(ctx, from, to, queue.RedriveConfig{Filter: queue.Filter{Reason: "schema"}}, nil)
	fmt.Println(done, err)
}
