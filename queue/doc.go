// Package queue consumes messages from a broker. The broker keeps a message during the wait
// before a retry. The worker does not sleep while it holds one.
//
// # Why
//
// A handler fails because something that it needs is down for a while. The usual worker
// then sleeps and tries again. Meanwhile it holds the message, so a hundred bad messages
// stop a worker of sixteen slots. The lease of the message ends, and a second worker gets
// it. A restart forgets the count of attempts. And the broker has its own count, which also
// rises when workers die. So two programs retry the same work.
//
// Here the engine of lull decides about each failure, as for any call, and the broker carries the
// decision out: acknowledge, deliver again after d, dead-letter, drop. A message that waits is in
// the broker. The worker is free, and may be killed at any time.
//
// # The rules
//
// A [Handler] returns nil or an error. Its marks or a classifier ([Classify]) decide what the
// error means. The [lull.Policy] of the [Consumer]'s dependency decides what follows. The number
// of the attempt belongs to the message, over all workers and their restarts:
//
//	nil                          acknowledged
//	transient, attempts left     delivered again after the policy's wait for that attempt
//	transient, the last attempt  dead letter, "attempts_exhausted"
//	the server asks for a wait   delivered again, not earlier; dead letter, "hint_too_long", if
//	                             the policy does not allow so long a wait
//	permanent                    dead letter at once, "permanent"
//	unknown                      as transient, but it says nothing about the dependency
//	stopping, and it failed      given back, and no attempt
//	a panic                      an attempt; after the last one a dead letter, "panicked"
//	a killed worker              delivered again, beside fewer others, at last alone; then a dead
//	                             letter, "crashed"
//	a connection that breaks     delivered again after a wait; no attempt
//	DeferFor, DropMessage, DeadLetterAs
//
// While the breaker is open the consumer fetches nothing but probes. The consumer extends the
// lease of a message after each third of it. If the lease is lost, or cannot be extended, the
// handler's context ends.
//
// # What is guaranteed
//
// Every message is handled at least once, or becomes a dead letter. It is acknowledged only after
// its handler has returned. A dead letter is written before its message is removed. After a crash
// there may be two copies with one [Message.ID], and never none: make effects depend on the id,
// for example with package idempotency. No message comes before its delay is over. The
// [Capabilities] of a broker state what else it can do. Package queuetest checks each adapter
// against a real server.
//
// [Config.WorstCase] returns how long a message can take at most. The broker must keep messages
// for longer than that.
//
// A dead letter is the message with one more header, an [Envelope] that is the same on every
// broker. [Inspect] shows dead letters and [Redrive] puts them back. The consumer logs each dead
// letter, panic, failed settlement and lost lease, unless it has an observer ([NewLog]).
//
// # Cost
//
// A message from [Memory] costs 4.7 µs and 28 allocations. At most Config.Concurrency messages
// are in memory.
//
// # What it does not do
//
// It does not make a handler's effects happen exactly once, and it does not order what the broker
// does not order. It creates no queues: the adapters have helpers for that. One consumer reads one
// queue. Several consumers may share a dependency, and with it the breaker.
//
// docs/queues.md has the rest: all outcomes, leases, the brokers beside each other, the costs, and
// how to choose attempts, backoff and leases.
package queue
