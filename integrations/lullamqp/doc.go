// Package lullamqp is the RabbitMQ adapter of package queue. A consumer turns the wait before a
// retry into the broker's own redelivery, on quorum queues, without a plugin.
//
//	client := lullamqp.New(lullamqp.Dial(url)) // such as amqp://user:password@host/vhost
//	orders := lullamqp.Config{Queue: "orders"}
//	err := client.Declare(ctx, orders) // or Check, where somebody else declares
//	...
//	q, err := client.Open(ctx, orders)
//	...
//	consumer, err := queue.New("orders", q, dependency, handler, queue.Config{})
//	...
//	err = consumer.Run(ctx)
//
// A [Queue] is a queue.Broker, queue.Pauser and queue.Sender. [Client.Letters] reads dead
// letters, for queue.Inspect and queue.Redrive.
//
// Delays: a message passes through delay queues of 20 ms, 40 ms, 80 ms, and so on to 11.6 hours,
// according to the bits of its delay. No message comes early, unless the server's clock is set
// forward. The longest delay is [MaxDelay], 23 hours.
//
// Moves: Retry, Defer and DeadLetter publish the message anew, and acknowledge the old one when
// the broker has confirmed the new one. If the consumer dies in between, or its connection
// breaks before the confirmation arrives, there are two copies with one Delivery.ID (or two
// dead letters with one OriginalID). So one rule of queue.Broker is not kept exactly: if Settle
// returns queue.ErrLost, a copy may have been written. Config.Native moves nothing.
//
// Attempts: headers that begin with Lull-Amqp- carry the attempt number and the other facts that
// must survive a move. The broker's own count since the move is added. A message whose worker
// was killed, or kept it for too long, has used one more attempt.
//
// Leases: there are none, Capabilities.Leases is false. A delivery comes back when its
// connection ends. The only limit is the server's consumer_timeout, 30 minutes by default: a
// handler must be done by then (Policy.AttemptTimeout).
//
// Connections: a call that needs a connection makes it. Receive does not try again by itself: it
// returns the error, and queue.Consumer waits longer each time.
//
// In production use RabbitMQ 3.10 or later and quorum queues, in a cluster of three or more.
// Config.DeliveryLimit must be larger than Policy.Attempts by 2 at least. Set no max-length, no
// message-ttl and no expires on the queue, on the queue of the dead letters, or on the levels:
// [Management.Check] looks for such policies.
//
// The package does not deduplicate, because RabbitMQ does not. It keeps no order
// (Capabilities.Order is Unordered): a retry comes after messages that arrived meanwhile. It
// does not use AMQP 1.0, the delayed-message plugin, or transactions. AMQP does not confirm
// acknowledgements: one that was written to a connection that then broke may be lost, and the
// message comes again. Close returns an error if it cannot rule that out.
//
// docs/queues.md has the rest, under "RabbitMQ": how delays work and what they cost, what each
// version counts, permissions, and the rules for production.
package lullamqp
