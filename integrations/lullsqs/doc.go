// Package lullsqs is Amazon SQS as lull's queue package has it: consumers that retry
// by the visibility of messages, dead letters with an envelope, and redrives that choose.
//
//	config, err := lullsqs.Check(ctx, client, lullsqs.Topology{Queue: "orders"})
//	...
//	orders, err := lullsqs.New(client, config)
//	...
//	consumer, err := queue.New("orders", orders, dependency, handle, queue.Config{})
//
// client is an *sqs.Client of the AWS SDK for Go v2, or anything that has the four
// methods of [Client]. How it gets its region and credentials is not this package's
// business: it does not import the SDK's config package.
//
// # Waits
//
// A message that failed is not deleted and not sent again: its visibility timeout is set to the
// wait that the policy draws, and SQS hands it out when that is over. The receive count,
// which SQS keeps, is the number of the attempt. So a wait survives the worker, and costs it
// nothing.
//
// SQS counts whole seconds. Waits are rounded up, so nothing comes early, and a backoff
// below a second makes no difference.
//
// SQS lets a message be out for 12 hours after each receive, in all, and refuses what
// would be more (it does not shorten it). That is the handler's time and the wait that follows.
// [Config].MaxDelay divides it: with the default of 6 hours a lease can be extended for
// 5 hours and 59 minutes after the receive, and every wait up to 6 hours is then still to be had.
// (The documents leave open whether SQS counts from the receive or from the first of all. Should
// it refuse, the message waits for half of what was asked, or half of that. This is the
// one case in which it comes early.) Longer waits there are not: to get one, a message would have to be
// sent anew, and lose its receive count, its place, and for a moment its single existence.
//
// A message that waits counts as in flight, of which there can be 120,000. A policy whose
// waits are hours, and a dependency that is down for as long, can fill that; then SQS hands out
// nothing more (OverLimit). [Queue.Receive] takes that for an empty queue. Watch
// ApproximateNumberOfMessagesNotVisible.
//
// # What counts
//
// SQS counts each receive, whatever becomes of it. There is no way to give a message back for
// nothing (queue.Capabilities.FreeDefer is false). So:
//
//   - Nothing is fetched ahead. While the circuit breaker is open the consumer does not
//     receive, and holds what it has.
//   - A receive is not cut off when the consumer is told to stop: SQS would go on with it and
//     hand messages to nobody. Receive returns when it is answered, which takes up to
//     Config.Wait, 5 seconds, longer; what it brings is handled. (This is what queue.Broker's
//     contract says of a Receive whose context ends, but it is not at once. Workers that
//     are killed with a receive under way lose an attempt of up to ten messages.)
//   - A handler that returns queue.DeferFor uses up an attempt.
//
// # Leases
//
// The lease is the visibility timeout, in whole seconds, set with every receive; that of the queue is
// not used. Since nobody here knows at which moment of a long poll SQS handed a message
// out, the timeout is the lease and the wait of the poll, and the lease is counted from when the
// request was sent. It ends no later here than at SQS. What a killed worker had comes again after
// queue.Config.Lease and up to Config.Wait (35 seconds, as both are by default).
//
// SQS does not say that a lease was lost: it answers a change of visibility that comes too
// late, and on a standard queue a deletion with an old receipt handle, as if all were well
// (localstack/localstack#9632 has a test against AWS; the API reference says it of
// DeleteMessage). Therefore a lease is lost here when it has lapsed by this process's
// clock, and errors of SQS (MessageNotInflight, ReceiptHandleIsInvalid, InvalidParameterValue with "the
// receipt handle has expired") are taken for the same where they come.
//
// # Order
//
// A queue whose name ends in .fifo keeps the order within a message group, retries
// included: while a message waits, its group does. A backoff of a minute is a minute for the whole
// group; keep MaxDelay, attempts and groups small. A dead letter leaves the order, and
// the group goes on.
//
// Messages are received one at a time from a FIFO queue. A receive of ten would bring
// several of one group, and when the first fails the others have been received in vain:
// they would be dead before they were tried. So it takes about as many receives as
// messages, one after the other, for each consumer; run several where that is too slow. A
// receive that is not answered is repeated under its ReceiveRequestAttemptId, for five
// minutes, and then brings the same message, at the same attempt.
//
// On a standard queue the group of an outgoing message is its tenant, for SQS' fair
// queues. It is kept when the message dies and when it is redriven.
//
// A FIFO queue deduplicates for five minutes (queue.Capabilities.Deduplicates), a standard
// queue never. So what is redriven twice, because the redrive was interrupted between sending and removing, comes once on
// the one and may come twice, with one id, on the other.
//
// # Messages
//
// A header is a message attribute of type String. SQS takes ten of them, neither empty ones nor
// control characters, and bodies that are text and not empty. Whatever does not fit is
// carried in one more attribute, [ExtraAttribute], so that every message that
// queue.Sender is given can be sent, and still be given an envelope when it dies: consumers
// of another kind see bodies that are not text as base64, and headers from the tenth on only in
// there. Attributes of other senders are headers too: Number as text; Binary is left out, though a
// dead letter keeps it. A redrive sends what are headers, as String.
//
// # Dead letters
//
// The consumer sends a dead letter to the queue of dead letters, and deletes the message
// when SQS has it. Cut short in between there are both, and in time a second letter; a FIFO queue
// discards that for five minutes. In a FIFO queue a letter is in a group of its own, and
// carries the message's own group in ExtraAttribute: else a reading would see only the
// first letters of each group, and a redrive that passes one over none behind it. So a
// redrive by other means than [Queue.Letters] and queue.Redrive gives such messages other groups.
//
// SQS' own redrive policy is the net below. It moves a message without an envelope when it was
// received more often than maxReceiveCount, which must leave room for two receives more than
// there are attempts ([Topology]). Such letters are read too: their reason is "broker".
//
// StartMessageMoveTask is not used for redrives. It moves everything or nothing; it does not
// know where letters come from that were sent and not moved (CouldNotDetermineMessageSource), it
// would not count redrives, and there can be one for each queue.
//
// A reading keeps out what it passes over until it is closed. Up to queue.ScanConfig.Hold
// letters, 10,000 by default, are in flight then.
//
// # Retries of the SDK
//
// Every call is made with the SDK's retryer switched off ([NoRetries]): the consumer retries
// what it tells SQS, for as long as the lease lasts, and receives again after a wait that grows.
// A sender retries with lull.Run or not at all; errors are marked for it (lull.Permanent for what
// will not get better, rate-limited, transient).
//
// A rate-limited receive returns its error after a wait, as AWS' retry behaviour 2.1 has it for
// long polls: else a loop that only receives would spin. The consumer's own wait comes on top.
//
// # In production
//
// Permissions of a worker: sqs:ReceiveMessage, sqs:DeleteMessage, sqs:ChangeMessageVisibility on
// the queue, sqs:SendMessage on that of its dead letters. For [Check] sqs:GetQueueUrl and sqs:GetQueueAttributes
// on both, for [Declare] sqs:CreateQueue and sqs:SetQueueAttributes too. A redrive needs the first three
// on the queue of dead letters, and sqs:SendMessage on the other. Queues that are encrypted
// with a key of one's own: kms:Decrypt, and kms:GenerateDataKey to send.
//
//   - The HTTP client's timeout, if it has one, must be longer than Config.Wait.
//   - maxReceiveCount: Policy.Attempts + 2 or more. The consumer must not be the second to bury.
//   - Retention of the queue: longer than queue.Config.WorstCase. Of the dead letters: longer than
//     that of the queue, as what SQS moves by itself from a standard queue keeps its age.
//   - MaximumMessageSize of the dead letters: that of the queue; and messages 5 KiB below it, or their
//     envelope is short, or they are left to SQS' redrive policy.
//   - terminationGracePeriod, or its like: Config.Wait + queue.Config.Drain, and some seconds.
//   - Clocks: only this process's own is used, and only for durations.
//
// Guaranteed: no message is lost that SQS has taken; none is acknowledged before it was handled, or its
// dead letter is written; no wait is cut short (but see above). Not guaranteed: that a message is handled once.
// A standard queue may deliver twice by itself.
//
// # What was tested
//
// The conformance suite runs against the emulator fauxqs, and in virtual time against a fake
// that follows the documents where the emulator is kinder: it lets messages be out for more
// than 12 hours, forgets the groups of standard queues and attempt ids, receives one message of a
// group at a time, and says so when a handle is not good. Nothing was tested against AWS.
package lullsqs
