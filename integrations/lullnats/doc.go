// Package lullnats is the NATS JetStream adapter of package queue: a [Broker] for
// queue.Consumer, a [Sender], readings of dead letters ([Letters]) for queue.Redrive, a [Reaper]
// for messages that the server gives up, and [Declare] and [Check] for everything that a queue
// consists of.
//
//	orders := lullnats.Config{Stream: "ORDERS", Consumer: "billing", Subject: "orders.>", Policy: policy}
//	err := lullnats.Declare(ctx, js, orders) // or Check, where others declare
//	...
//	b, err := lullnats.Open(ctx, js, orders)
//	...
//	consumer, err := queue.New("ORDERS", b, ledger, handle, queue.Config{})
//	...
//	reaper, err := lullnats.NewReaper(ctx, js, orders)
//	...
//	go reaper.Run(ctx, time.Minute, report)
//	err = consumer.Run(ctx)
//
// JetStream's defaults lose messages: a negative acknowledgement without a delay brings a message back at once, and after
// MaxDeliver deliveries it stays in the stream and is delivered to nobody. Here a retry always has its delay, from the
// policy. A message that will not be tried again is stored in a stream for dead letters, and terminated when that stream
// has it. MaxDeliver is larger than the policy's attempts, for messages that crash their workers. A stream keeps the
// server's advisories about these, and the Reaper makes dead letters of them.
//
// A lease is the consumer's AckWait, less a second. Connect with nats.ReconnectBufSize(-1), so that nats.go never keeps an
// acknowledgement for later. Without Config.Schedules the attempt is the server's number of deliveries, so deferrals count.
// With it (server 2.12, and a work queue) a retry is stored anew as a scheduled message, and a deferral is free. There is no
// order by group. The package needs server 2.10 or later (tested with 2.15.2) and nats.go 1.55.0 or later.
//
// docs/queues.md has the rest, under "NATS JetStream": leases, both ways to delay a message, the
// reaper, permissions, and what a killed server forgets.
package lullnats
