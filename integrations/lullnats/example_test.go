package lullnats_test

import (
	"context"
	"fmt"
	"log"

	"github.com/nats-io/nats.go/jetstream"

	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/queue"
)

func ExampleConfig_Validate() {
	c := lullnats.Config{Stream: "ORDERS", Consumer: "bil ling", Subject: "orders.>", DeliveryLimit: 5}
	fmt.Println(c.Validate())
	// Output:
	// Consumer is "bil ling": want 1 to 100 letters, digits, hyphens and underscores
	// DeliveryLimit is 5: want at least 12 (Policy.Attempts + 2), 0 for Policy.Attempts + 5, or less for no limit
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
		fmt.Println(err)
		return
	}
	to, err := lullnats.NewSender(js, orders.Stream, "orders.again")
	if err != nil {
		log.Fatal(err)
	}
	done, err := queue.Redrive(ctx, from, to, queue.RedriveConfig{Filter: queue.Filter{Reason: "schema"}}, nil)
	fmt.Println(done, err)
	// Output: lullnats: no connection to JetStream
}
