package lullamqp_test

import (
	"fmt"

	lullamqp "github.com/lullgo/lull/integrations/lullamqp"
)

func ExampleConfig_Validate() {
	fmt.Println(lullamqp.Config{Queue: "orders.#", DeliveryLimit: 1}.Validate())
	// Output:
	// Queue is "orders.#": want a name of 1 to 200 bytes of UTF-8 without * and #, not beginning with amq.
	// DeliveryLimit is 1: want 3 to 1000000 deliveries, or 0 for the default of 100
}
