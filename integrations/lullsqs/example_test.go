package lullsqs_test

import (
	"fmt"
	"time"

	"github.com/lullgo/lull"
	lullsqs "github.com/lullgo/lull/integrations/lullsqs"
)

func ExampleConfig_Validate() {
	fmt.Println(lullsqs.Config{Queue: "orders", Wait: time.Minute}.Validate())
	// Output:
	// Queue is "orders": want the URL of a queue, such as https://sqs.eu-central-1.amazonaws.com/123456789012/orders
	// Wait is 1m0s: want whole seconds from 1s to 20s, or 0 for the default of 5s
}

func ExampleTopology_Validate() {
	fmt.Println(lullsqs.Topology{Queue: "orders.fifo", Policy: lull.Policy{Attempts: 10}, DeliveryLimit: 10}.Validate())
	// Output:
	// DeliveryLimit is 10: want 12 (Policy.Attempts + 2) to 1000 receives, or 0 for the default
}
