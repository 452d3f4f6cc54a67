// Package lullamqp is the RabbitMQ adapter of package queue. A consumer turns the wait before a
// retry into the broker's own redelivery, on quorum queues, without a plugin.
//
//	client := lullamqp.New(lullamqp.Dial(url)) // such as amqp://user:password@host/vhost
//	orders := lullamqp.Config{Queue: "orders"}
//	err := client.Declare(ctx, orders) // or Check, where somebody else declares
//	...
//	q, err := client.Open(ctx, orders)
//	...
//	dependency, err := lull.NewDependency("ledger", queue.Policy()) // attempts, and waits up to its Backoff.Cap
//	...
//	consumer, err := queue.New("orders", q, dependency, handler, queue.Config{})
//	...
//	err = consumer.Run(ctx)
//
// A [Broker] is a queue.Broker, queue.Pauser and queue.Sender. [Client.Letters] reads dead
// letters, for queue.Inspect and queue.Redrive.
//
// Retry, Defer and DeadLetter publish the message anew, and acknowledge the old one when the broker has confirmed the new
// one. A delay (up to [MaxDelay]) is a way through delay queues. If the consumer dies in between, or its connection breaks
// before the confirmation arrives, there are two copies with one Delivery.ID. There are no leases: a delivery comes back
// when its connection ends, and a handler must be done within the server's consumer_timeout. Nothing is deduplicated, and no
// order is kept. Use RabbitMQ 3.10 or later and quorum queues. [Management.Check] finds policies that would lose messages.
//
// docs/queues.md has the rest, under "RabbitMQ": how delays work and what they cost, what each
// version counts, permissions, and the rules for production.
package lullamqp
