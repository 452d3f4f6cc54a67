// Package lullnats is the NATS JetStream adapter of package queue: a [Broker] for
// queue.Consumer, a [Sender], readings of dead letters ([Letters]) for queue.Redrive, a [Reaper]
// for messages that the server gives up, and [Declare] and [Check] for everything that a queue
// consists of.
//
//	orders := lullnats.Config{Stream: "ORDERS", Consumer: "billing", Subject: "orders.>", Attempts: policy.Attempts}
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
// JetStream counts deliveries, takes a message back when its worker no longer answers, and delays a
// failed message exactly as requested. But its defaults lose messages. A negative acknowledgement
// without a delay brings the message back at once, whatever the consumer's BackOff list is, so a
// consumer with MaxDeliver 5 makes its five deliveries within a millisecond. After them the
// message stays in the stream and is delivered to nobody. Only an advisory, which is kept
// nowhere, names it. There is no queue of dead letters.
//
// In this package a retry always has its delay, from the policy. A message that will not be
// tried again is stored in a stream for dead letters, and terminated when that stream has it.
// MaxDeliver is larger than the policy's attempts, for messages that crash their workers. A
// stream keeps the advisories about these, and the Reaper makes dead letters of them.
//
// Leases: a lease is the consumer's AckWait, less a second. The consumer fixes it, whatever
// lease queue.Config asks for. Extending begins it anew. Connect with
// nats.ReconnectBufSize(-1), so that nats.go never keeps an acknowledgement for later.
//
// Attempts: without Config.Schedules the server keeps a retried message, with a delay, and the
// attempt is the server's number of deliveries, so deferrals count. With Config.Schedules (server
// 2.12 or later, and a work queue) a retry is stored anew as a scheduled message, and a deferral
// is free. A delay of a second or more is a second longer than asked for without schedules, and
// up to a quarter of a second longer with them.
//
// Headers that NATS would change travel in a header of their own and arrive unchanged. The id
// that a sender has given (Nats-Msg-Id) is the message's.
//
// The package keeps no order by group: JetStream has none. It does not use push consumers,
// priority groups or the server's pause. It does not change streams and consumers that exist.
// It needs server 2.10 or later (tested with 2.15.2) and github.com/nats-io/nats.go 1.55.0 or
// later (Apache-2.0).
//
// docs/queues.md has the rest, under "NATS JetStream": leases, both ways to delay a message, the
// reaper, permissions, what a killed server forgets, and the costs.
package lullnats
