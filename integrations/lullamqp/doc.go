// Package lullamqp is RabbitMQ for package queue: a consumer loop that turns a retry's wait
// into the broker's own redelivery, on quorum queues, with no plugin.
//
//	client := lullamqp.New(lullamqp.Dial("amqp://user:password@host/vhost"))
//	orders := lullamqp.Config{Queue: "orders"}
//	err := client.Declare(ctx, orders) // or Check, where somebody else declares
//	...
//	q, err := client.Open(ctx, orders)
//	consumer, err := queue.New("orders", q, dependency, handler, queue.Config{})
//	err = consumer.Run(ctx)
//
// A [Queue] is a queue.Broker, queue.Pauser and queue.Sender; [Client.Letters] reads dead letters,
// for queue.Inspect and queue.Redrive.
//
// # Delays
//
// RabbitMQ has no delays. A message's own time to live does not make one: a message
// expires only at the head of its queue, so one that waits for 200 ms behind one that
// waits for an hour waits for an hour. But a queue in which all wait for the same time
// is in order. So there are 22 of them, of 20 ms, 40 ms, 80 ms, and so on to 11.6 hours,
// and a delay is a sum of these: each bit of the number of units says whether a message
// goes through that level or past it. (The idea is NServiceBus'.) The routing key is the bits and
// the queue's name, so that the exchanges do the rest.
//
// Levels are quorum queues that dead-letter at least once into the next: a message leaves a
// level when the next one has confirmed it. A delay is rounded up to 20 ms, and a millisecond for
// each level is added, because the broker keeps time in whole ones: no message comes
// early. (Unless the server's clock is set forward.) The longest delay is [MaxDelay], 23 hours.
//
// 300 messages with random delays between 0.1 and 6 s, on one machine of two cores (go test
// -run RandomDelays -v), two runs each: none early, none lost, and late by
//
//	                  average      p50          p99          worst
//	RabbitMQ 3.10.8   20, 21 ms    20, 21 ms    33, 36 ms    35, 36 ms
//	RabbitMQ 4.3.6    16, 20 ms    16, 21 ms    29, 39 ms    31, 48 ms
//
// of which 10 ms are the rounding. With other programs on both cores p99 was 85 to 240 ms.
//
// A message waits in half of the levels below its delay on average, each of which costs
// the broker what a message costs that is published and consumed: about 4 for a second, 9 for an hour.
//
// # Moves
//
// Retry, Defer and DeadLetter publish the message anew and acknowledge the old one when the
// broker has confirmed that it has the new one. Each is mandatory: one that no queue takes comes back,
// and is an error. So what is acknowledged is somewhere else for certain; and a consumer
// that dies in between leaves two, as does one whose connection breaks before it hears that the new one has arrived, and
// that publishes it again. That is the one sentence of queue.Broker's contract that is
// not kept to the letter: where Settle answers queue.ErrLost, a copy of a message to be
// retried may have been written, as may a dead letter. Both copies have one Delivery.ID, and
// both letters one OriginalID.
// (Config.Native moves nothing, and has no such moment.)
//
// The attempt number and what else is to survive a move (the id, when the message was
// sent, first seen, first failed, its group) are in headers that begin with Lull-Amqp-. To the number
// is added what the broker has counted since: x-delivery-count, or x-acquired-count, which
// is larger from RabbitMQ 4.3 on. A message whose worker was killed, or kept it for too
// long, has an attempt more.
//
// Defer is a move too, though basic.nack would be less work: it keeps the number on all
// versions. nack(requeue) counts as a delivery up to 4.2; from 4.3 on it does not, and is not
// told apart afterwards from a message that was kept for too long. A message that is deferred without a delay goes
// to the end of the queue.
//
// Of the versions (3.10.8 and 4.3.6, and for consumer_timeout 4.0.5 and 4.3.6):
//
//	                              up to 4.2                  from 4.3
//	basic.nack(requeue)           counts                     counts as acquired only: a limit on
//	                                                         deliveries never ends it
//	basic.reject(requeue)         counts                     counts
//	the channel or connection     counts                     counts
//	ends
//	out for longer than           the channel is closed      the consumer is cancelled, and an
//	consumer_timeout              (looked for once a minute) acknowledgement passed over
//	x-delayed-retry-*             taken and ignored          a delay, after basic.reject
//
// # No leases
//
// What is out comes back when the connection ends, and not before: there is nothing to be
// extended, and Capabilities.Leases is false. The one limit is the server's consumer_timeout, 30
// minutes unless it was changed: a handler must be done by then (Policy.AttemptTimeout).
// Where it is not, its deliveries and all others on the channel are lost to this consumer:
// their handlers' contexts end, with queue.ErrLeaseLost and the server's words as the cause, and they
// are delivered again as one attempt more.
//
// A connection is made by the call that needs one. Receive does not try again by itself:
// it returns the error, and queue.Consumer waits longer each time. What may pass ends no
// consumer: a limit on connections, a node that is down, and, once it has consumed, all that the
// server says (a queue that is deleted and made again). A server that falls silent is noticed
// by the heartbeat, after 30 s with [Dial].
//
// When a server runs out of memory or disk it stops reading from connections that
// publish. Settle and Send say so at once then; consumers go on, and acknowledge, on a
// connection of their own. A message that could not be settled in any way is given back after a minute.
//
// The server pushes as many messages as are out and wanted, and no more: prefetch follows Receive. While
// the breaker is open (Pause), and when Receive's context ends, the consumer is
// cancelled, and what was fetched ahead is moved back, which costs it no attempt. A
// message that the server hands out in the millisecond in which it cancels a consumer is
// the exception: the client library drops it, and it comes back as an attempt more when
// the channel ends, which is when the handlers that run have returned.
//
// # In production
//
//   - RabbitMQ 3.10 or later, quorum queues; a cluster of three or more. Streams and classic
//     queues are not for this (a classic queue counts no deliveries: its attempt number rises by one
//     for any number of crashes).
//   - Permissions: Declare needs configure, write and read on the queue, that of the
//     dead letters, and what begins with the prefix. A consumer and sender need read on
//     the queue; write on amq.default and on the prefix' exchanges. Letters needs read on the
//     queue of the dead letters.
//   - Config.DeliveryLimit must be larger than Policy.Attempts by 2. It is an argument of
//     the queue; a policy may set a lower one.
//   - No max-length on the queue, the queue of the dead letters, or the levels: a full
//     queue refuses messages, and what a level cannot hand on is tried again only three minutes
//     later. No message-ttl or expires either. [Management.Check] looks for such policies.
//   - What waits while the server is killed may come three minutes late: where a wait ends before the next queue
//     has started, the level cannot hand on, either. (Seen on 3.10.8 and 4.3.6, with one node.) Until then the
//     message is in the level, neither ready nor unacknowledged: messages_dlx in the management API. In the server's
//     advanced.config, dead_letter_worker_publisher_confirm_timeout of the application rabbit can be 5000 (ms)
//     instead of 180000: it is then tried again after five seconds.
//   - Before a queue is deleted let what waits for it run out. What comes too late goes to
//     the queue PREFIX.delay-lost, and stays there: have an eye on its length.
//   - consumer_timeout longer than Policy.AttemptTimeout; max_message_size as large as
//     messages are (16 MiB from 4.0 on).
//   - A queue with a single active consumer, or priorities, is handed out as RabbitMQ does
//     that; retries keep no order.
//   - Other publishers should give each message a message-id of its own, which is then its
//     Delivery.ID. Without one that is a hash of all that the message is (properties, headers, where it was
//     published to, body), so that two that are the same in all are one to who goes by it. (Sender gives
//     each message one.) No redrive takes two letters for one.
//   - To look at dead letters counts as a delivery of each, up to 4.2. The queues that Declare makes for them have
//     room for a million looks; what else has a limit (in 4.0 to 4.2 every quorum queue, of 20), or may have
//     one by a policy, is not read without being moved: [ErrCounted].
//   - RabbitMQ 4.1 or later in a cluster where more than 32 consumers have one queue. Before that, what the consumers
//     of a node had goes back, when the node is lost, in an order of which each member of the queue has its own. (What
//     the consumers of a lost channel had is in order up to 32 of them. A Queue has no more on a channel, and Client.Letters one.)
//   - A message's own expiration and user-id do not survive a move, nor do CC and BCC.
//
// # What it does not do
//
// It does not deduplicate: RabbitMQ does not. It keeps no order (Capabilities.Order is
// Unordered): a retry is behind what came meanwhile. It does not use AMQP 1.0, the
// delayed-message plugin, or transactions. Acknowledgements are not confirmed by AMQP: one that was
// written to a connection that then broke may have been lost, and the message comes again.
package lullamqp
