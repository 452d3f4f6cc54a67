// Package lullsqs is the Amazon SQS adapter of package queue: consumers that retry by the
// visibility of messages, dead letters with an envelope, and redrives with a filter.
//
//	config, err := lullsqs.Check(ctx, client, lullsqs.Topology{Queue: "orders"})
//	...
//	orders, err := lullsqs.New(client, config)
//	...
//	consumer, err := queue.New("orders", orders, dependency, handle, queue.Config{})
//
// client is an *sqs.Client of the AWS SDK for Go v2, or anything that has the four methods of
// [Client]. The package does not import the SDK's config package: the program chooses region and
// credentials.
//
// Waits: a failed message is neither deleted nor sent again. Its visibility timeout is set to the
// wait that the policy draws, and SQS delivers the message when the wait is over. The receive count
// of SQS is the number of the attempt. So a wait survives the worker. SQS counts whole
// seconds. Waits are rounded up, so nothing comes early, and a backoff below a second makes no
// difference.
//
// The longest wait: SQS lets a message be out for 12 hours after each receive, in all. That is
// the handler's time and the wait that follows. [Config].MaxDelay divides it: with the default of
// 6 hours a lease can be extended for 5 hours and 59 minutes after the receive, and every wait up
// to 6 hours remains possible.
//
// Counts: SQS counts each receive, so a deferral is never free (queue.Capabilities.FreeDefer is
// false). Nothing is fetched ahead, and while the circuit breaker is open the consumer does not
// receive. A receive is not cut off when the consumer stops: stopping takes up to Config.Wait,
// 5 seconds, longer.
//
// Leases: the lease is the visibility timeout, in whole seconds, set with every receive. It ends
// no later here than at SQS. A lease is lost when it has lapsed by this process's clock, because
// SQS does not report it.
//
// Order: a queue whose name ends in .fifo keeps the order within a message group, retries
// included: while a message waits, its group waits. Keep MaxDelay, attempts and groups small.
//
// Retries of the SDK: every call is made with the SDK's retryer switched off ([NoRetries]). The
// consumer retries settlements for as long as the lease lasts, and receives again after a wait
// that grows. A sender retries with lull.Run or not at all; its errors are marked.
//
// Guaranteed: no message is lost that SQS has accepted. None is acknowledged before it was
// handled, or before its dead letter was written. No wait is cut short, unless SQS refuses it (see
// docs/queues.md). Not guaranteed: that a message is handled once. A standard queue may deliver
// twice by itself.
//
// The tests use the emulator fauxqs, and a fake that follows SQS' documentation. Nothing was
// tested against AWS.
//
// docs/queues.md has the rest, under "SQS": limits, FIFO queues, the encoding of messages, dead
// letters, permissions, and the settings for production.
package lullsqs
