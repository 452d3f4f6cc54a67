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
// [API]. The package does not import the SDK's config package: the program chooses region and
// credentials.
//
// A failed message is neither deleted nor sent again: its visibility timeout is set to the wait that the policy draws, in
// whole seconds, rounded up. The receive count of SQS is the number of the attempt, so a deferral is never free. SQS lets
// a message be out for 12 hours after each receive, in all: [Config].MaxDelay divides them between the handler and the wait
// that follows. Nothing is fetched ahead. A receive is not cut off: stopping takes up to Config.Wait longer. A queue whose
// name ends in .fifo keeps the order within a message group, retries included. A standard queue may deliver twice by itself.
//
// Every call is made with the SDK's retryer switched off ([NoRetries]). A sender retries with lull.Run or not at all; its
// errors are marked. The tests use the emulator fauxqs, and a fake that follows SQS' documentation. Nothing was tested
// against AWS.
//
// docs/queues.md has the rest, under "SQS": limits, FIFO queues, the encoding of messages, dead
// letters, permissions, and the settings for production.
package lullsqs
