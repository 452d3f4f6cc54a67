// Package lullnats connects package queue to NATS JetStream: a [Broker] for
// queue.Consumer, a [Sender], readings of dead letters ([Letters]) for queue.Redrive, a
// [Reaper] for what the server gives up, and [Declare] and [Check] for all that a queue
// consists of.
//
//	orders := lullnats.Config{Stream: "ORDERS", Consumer: "billing", Subject: "orders.>", Attempts: policy.Attempts}
//	err := lullnats.Declare(ctx, js, orders) // or Check, where others declare
//	...
//	b, err := lullnats.Open(ctx, js, orders)
//	...
//	consumer, err := queue.New("ORDERS", b, ledger, handle, queue.Config{})
//	...
//	go reaper.Run(ctx, time.Minute, report)
//	err = consumer.Run(ctx)
//
// # Why
//
// JetStream counts deliveries, takes a message back whose worker falls silent, and delays
// what failed by exactly as much as it is told. What it does by default with this is less
// good. A negative acknowledgement without a delay has the message back at once, whatever
// the consumer's BackOff list says, so a consumer with MaxDeliver 5 makes its five
// deliveries within a millisecond. After them the message stays in the stream, delivered
// to nobody: only an advisory, which is kept nowhere, names it. And there is no queue of
// dead letters.
//
// So here a retry always has its delay, from the policy. What will not be tried again is
// stored in a stream for dead letters, and terminated when that stream has it. MaxDeliver
// is larger than the policy's attempts, for what crashes its workers; the advisories about
// that are kept in a stream, and the Reaper makes dead letters of them.
//
// # Leases
//
// A lease is the consumer's AckWait, less a second: the server keeps times in whole
// seconds when it is restarted, rounded down, and a lease must not be shorter for that. It
// is fixed by the consumer, whatever lease queue.Config asks for; extending begins it
// anew, as often as need be. It is counted from when messages were asked for, so a request
// waits no longer than a quarter of it for one. A Broker asks once a second what AckWait
// is: where somebody has made it shorter, what is lost by that ends its handlers' contexts.
//
// The server looks for a message, not for a delivery of it. It takes an acknowledgement
// that comes when the lease has lapsed and another worker has the message for that one's,
// and says the same as to who has it. So a Broker answers queue.ErrLost by its own clock,
// sends nothing once a lease is over, and nothing while there is no connection, when
// nats.go would keep it for later. (Connect with nats.ReconnectBufSize(-1), so that it
// never does.) What is sent in time and is on its way for longer than the rest of the
// lease is taken for another's: a message that was handled is gone then, one that failed
// comes once more than it had to.
//
// All words to the server are requests, which it answers when it has carried them out:
// also delays and extensions, which package jetstream sends without waiting.
//
// # Attempts and delays
//
// There are two ways to put a message off.
//
// Without Config.Schedules the server keeps it, with a delay. That works with every
// stream, and the attempt is the server's number of deliveries. Deferrals count, so
// queue.Consumer keeps messages that it cannot begin instead of giving them back, and a
// handler that defers (queue.DeferFor) uses up attempts. What waits counts as outstanding
// (MaxAckPending): in an outage of what the handler needs, a thousand messages that wait
// hold up all others. A delay of a second or more is a second longer than asked for, as
// the server rounds it down when it is restarted; shorter ones are exact. Order
// queue.Total is this way with one outstanding message: while it is out or waits no other
// is delivered.
//
// With Config.Schedules (server 2.12 or later, and a work queue) it is stored anew as a
// scheduled message, which the server puts back under its subject when its time has come,
// and the old one is acknowledged. What it was (id, attempts, times) is in a header, so a
// deferral is free, the times of the first delivery and failure are kept, and what waits
// is not outstanding. Delays are up to a quarter of a second longer than asked for. The
// message goes to the end of the queue. If the worker is killed between storing it and
// acknowledging there are two: one of them comes when the lease is over. If that one is put off as well, they are one again (within
// Config.Duplicates); if it is handled, the other is handled too. Consumers of other kinds
// of stream than a work queue would get these copies as well, so it must be one.
//
// Either way a message that was fetched is a delivery. When a worker stops while its
// request waits, the server may have picked a message for it: then that goes to the next
// who asks, at once, and has lost an attempt. (About 500 requests that were taken back in the
// midst of 300 messages cost two to five of them one: TestEndingReceiveLeavesNothingOut.)
//
// # An open breaker
//
// A consumer that is paused asks for nothing. A Broker never asks for messages that it
// does not return, so there are none to give back, and it has nothing to do for a pause.
// It does not use the server's: that stops the durable consumer, with all instances that
// share it, of which some may reach what this one cannot.
//
// # Dead letters
//
// They have the message's body and headers, but for those that begin with Nats-, which are
// orders to the server, its subject (Lull-Subject), and the envelope. Their id names the
// stream, the consumer and the message: a second one of the
// same message at the same consumer within Config.Duplicates is discarded, and nothing else. When the server has the letter the
// message is terminated with a reason. [Letters] reads the stream by sequence and takes
// nothing out of it: any number of readers see everything. Letters of all queues may go
// into one stream; Config.DeadSubject tells them apart.
//
// A message too long for its letter loses the errors in the envelope; if it is still too
// long, which takes one within about 500 bytes of the server's max_payload, it cannot be a
// dead letter, and is given up by the server in the end.
//
// # The reaper
//
// Run one in some process, or in all: they share the advisories. It can be killed at any
// moment. For a work queue it deletes what it has buried; in a stream with interest
// retention it acknowledges in the consumer's name, so that others keep theirs; in one
// with limits the message stays. The server notices that a message is exhausted when its
// last lease is over and somebody asks for messages. Where an advisory was lost, the
// Reaper finds what is left in a work queue by itself, when the consumer had nothing out
// or waiting for a moment. With a negative Config.MaxDeliver the server gives nothing up,
// and no reaper is needed: then a message is buried by the next worker that gets it after
// its attempts. That is as good, as long as it is a queue.Consumer that gets it.
//
// What another program terminates in a work queue is gone; from other streams the Reaper
// makes a dead letter of it, with the reason.
//
// # What is kept
//
// Messages and dead letters are as safe as the server's storage: Declare makes file
// storage with Config.Replicas. The server writes the numbers of deliveries later than
// messages, so one that is killed (kill -9, a crash of its machine) forgets those of the
// last moments. Of 500 messages delivered up to the moment of the kill none was lost, but
// of 245 that came again 20 in one run, and all in another, had a number that had not
// risen: such a message gets one attempt more. A second after the last word nothing was
// forgotten (TestServerKilled). A server that is shut down forgets nothing but the parts
// of seconds that are said above.
//
// # Headers
//
// queue.Headers that NATS would change (values with line ends, or spaces at their ends)
// travel in a header of their own and arrive as they were. Of what others send, headers
// with names that queue.Headers does not have (other characters than letters, digits,
// hyphens) are not shown to handlers; dead letters keep them, and so does a redrive. Of
// several values the first is shown. The id that a sender has given (Nats-Msg-Id) is the
// message's.
//
// # Running it
//
// Streams and consumers can be declared by Declare, or by other tools: [Check] then says
// what is missing or different, in a line each, and [Open] refuses what would break a
// promise: another policy of acknowledgements than explicit, a BackOff list, a MaxDeliver
// or MaxAckPending that is not what Config says, limits at which the stream drops messages
// silently. MaxAge does so too, dead letter or not: say in Config.MaxAge what it is. It is
// compared with Config.Policy.
//
// Permissions of an account's user, for a stream S with the consumer C and the defaults of
// Config. All subscribe to _INBOX.>, and ask $JS.API.STREAM.INFO.*  and
// $JS.API.CONSUMER.INFO.*.*. Beside that they publish
//
//	workers    $JS.API.CONSUMER.MSG.NEXT.S.C, $JS.ACK.S.C.>, dead.S.C
//	           and with Schedules later.S.C.> and the queue's subjects
//	senders    the queue's subjects
//	reapers    $JS.API.CONSUMER.MSG.NEXT.S_C_ADVISORIES.*, $JS.ACK.S_C_ADVISORIES.>, $JS.ACK.S.C.>,
//	           $JS.API.STREAM.MSG.GET.S, $JS.API.STREAM.MSG.DELETE.S, dead.S.C
//	redrive    $JS.API.STREAM.MSG.GET.S_DEAD, $JS.API.STREAM.MSG.DELETE.S_DEAD, the queue's subjects
//	Declare    $JS.API.STREAM.CREATE.*, $JS.API.CONSUMER.CREATE.>
//
// Server 2.10 or later is meant; the tests run with 2.15.2. Clocks of workers and server
// need not agree, but a worker's that is set while messages wait (Schedules) may be wrong
// by as much for a minute.
//
// # Cost
//
// The dependency is github.com/nats-io/nats.go 1.55.0 or later (Apache-2.0). The server is
// used by the tests only, which are a module of their own, so that nobody gets it with
// this package.
//
// A message that is received, in batches of ten, and settled, one after the other, takes
// with the server, on the same two cores (AMD EPYC; go test -bench Receive in natstest):
//
//	ack                36 µs
//	retry              43 µs
//	retry, scheduled   86 µs
//	dead letter        79 µs
//
// 10,000 messages, of which 2,000 failed once or twice and 100 for good, took three
// workers of 16 handlers 3.4 s, with 4 of the workers killed on the way and a restart of
// the server; 3.9 s with schedules (TestNothingLost).
//
// # What it does not do
//
// It keeps no order by group: JetStream has none. It does not use push consumers, priority
// groups or the server's pause. It does not change what is there.
package lullnats
