// Package queue consumes messages from a broker, and lets the broker do the waiting.
//
// # Why
//
// A handler fails because something that it needs is down for a while. The usual worker
// then sleeps and tries again, with the message in its hand. The broker has been
// retrying all along: by a visibility timeout, an ack wait, a redelivery count, a queue of
// dead letters. Two that retry the same work get in each other's way:
//
//   - A message that is held while its worker sleeps keeps a slot from the ones
//     behind it. A hundred bad messages and sixteen slots are a worker that does nothing.
//   - Its lease continues. When it lapses the broker gives the message to
//     another worker, and now two work on it.
//   - The process that sleeps is restarted by the next release, and the count of attempts with
//     it. The message begins anew, at every release.
//   - The broker has a count of its own, which rises when a worker dies, when messages
//     are fetched ahead, and when a message is handed back without a time that it
//     should wait: a plain Nak uses up all deliveries of NATS JetStream within a
//     millisecond, and RabbitMQ since 4.3 repeats it without an end.
//
// Here the engine of lull decides what it always decides (is this failure worth another
// attempt? how long to wait? is there budget, is the circuit open?), and the answer goes to
// the broker: acknowledge, deliver again after d, dead-letter, drop. A message that waits
// is in the broker. The worker is free, and may be killed at any time.
//
// # The model
//
// A [Handler] returns nil or an error. What the error means is decided by its marks, or a
// classifier ([Classify]); what follows by the [lull.Policy] of the dependency that the
// [Consumer] was made with, and the number of the attempt, which is the message's, over all
// workers and their restarts:
//
//	nil                          ack
//	transient, attempts left     retry: delivered again after the policy's wait for that attempt
//	transient, the last attempt  dead letter, "attempts_exhausted"
//	the server asks for a wait   retry after no less; if that is more than the policy is
//	                             willing to wait, dead letter, "hint_too_long"
//	permanent, or unknown        dead letter at once, "permanent"
//	no budget                    retry, as late as if it had failed three times more
//	"overloaded; don't retry"    retry, as late as the policy ever does
//	the breaker has opened       retry; nothing more is fetched until it lets a probe pass
//	it was such a probe          delivered again, and that was no attempt, where deferrals
//	                             are free and it was not as many probes of this process
//	                             already as the policy allows attempts
//	a panic                      as transient, but the breaker does not learn of it; "panicked"
//	the worker was killed        the lease lapses, and that was an attempt; one that has been
//	                             delivered more often than the policy allows is not tried
//	                             once more: dead letter, "crashed"
//	DeferFor, DropMessage, DeadLetterAs
//
// While a handler runs the lease is extended every third of its length, so that leases can be
// short and handlers long. Where it cannot be (or no further), the handler's context
// ends before the lease does. A lease that is lost ends the handler's context too, and
// what it returns then is not settled: another has the message.
//
// So an outage kills no message where deferrals are free, however long it is and however many
// workers probe. (20 workers, a message every 11 s, an outage of six hours: none of 2,000
// dies. Where every delivery counts 1,500 do, each worker's probes being attempts: there
// have few workers, many attempts, or a redrive afterwards. TestNoMessageDiesOfAnOutage.)
//
// What was not tried costs no attempt where the broker allows it (Capabilities.FreeDefer): a
// message that was fetched when the breaker opened, that found no room under the
// concurrency limit, or whose handler was interrupted because the consumer stops. Where
// the broker counts every delivery such a message is kept, its lease extended.
//
// # What is guaranteed
//
// Every message is handled at least once, or becomes a dead letter. It is acknowledged only after
// its handler has returned; a dead letter is written before its message is let go of; a
// redriven message is sent before its letter is removed. So whatever is cut short, by an
// error or by kill -9, there may be two, and never none. Two have one [Message.ID]: make effects
// depend on that, with package idempotency for example.
//
// No message comes before its delay is over. How late it comes, and how much of what is
// above a broker can do, is in its [Capabilities]:
//
//	                     delays            free deferral   order              deduplication
//	Memory               exact             yes             as asked           for minutes
//	RabbitMQ, quorum     exact, a day      yes             no                 no
//	NATS JetStream       about, a month    with schedules  all, if wanted     for minutes
//	SQS                  seconds, hours    no              FIFO: of groups    FIFO
//
// That is an outline. The adapter's own documentation is the authority, and package
// queuetest, which each of them passes against a real server, the proof.
//
// How long a message can take in the worst case follows from a policy:
// [Config.WorstCase]. The broker has to keep messages for longer than that.
//
// # Dead letters
//
// A dead letter is the message (body, headers, group) and one header more, with an
// [Envelope] that is the same on every broker: why, after how many attempts, with which
// errors, when, from where. [Inspect] shows letters, [Redrive] puts them back, at a bounded
// rate; interrupted at any point it can be run again. No letter is taken for another,
// however alike they are.
//
// Each dead letter, panic, settlement that failed and lost lease is a line in the log, with
// what to do, unless the consumer has an observer ([NewLog]).
//
// # Cost
//
// A message that is fetched from [Memory], handled and acknowledged costs 3.8 µs and 24
// allocations on two cores, of which the broker's half is 1 µs and 1; one that fails
// first and is delivered a second time, twice that. Most of it is goroutines, contexts and timers: one for the
// handler, so that it may do what it likes, and one for its lease. Real brokers
// take longer for the network alone. Of an envelope, Encode takes 4 µs and Decode 5.
//
//	go test -run xxx -bench . -benchtime 200000x ./queue
//
// Memory: what is fetched, which is Config.Concurrency messages at most, and no more: one
// that the broker refuses to settle keeps its place until it is the broker's again.
//
// # What it does not do
//
// It does not make a handler's effects happen exactly once. It does not order what the
// broker does not order. It does not create queues: each adapter has helpers that do, or report
// what is missing. And it does not poll several queues with one consumer: make one for
// each, which may share a dependency, and with it the breaker.
package queue
