// Package queuetest has the tests that every queue.Broker must pass. The adapters of
// this repository run them against real servers; authors of other adapters can too.
//
//	func TestMain(m *testing.M) {
//		os.Exit(queuetest.Main(m, connect)) // runs the tests; or, in a worker process, does its work and exits
//	}
//
//	func TestConformance(t *testing.T) {
//		t.Parallel()
//		s := startServer(t)
//		queuetest.Run(t, queuetest.Target{Declare: s.declare, Connect: connect, Restart: s.restart})
//	}
//
//	func TestNothingLost(t *testing.T) {
//		t.Parallel()
//		s := startServer(t)
//		queuetest.NothingLost(t, queuetest.Target{Declare: s.declare, Connect: connect, Restart: s.restart})
//	}
//
// Run has a subtest for every rule of [queue.Broker], [queue.Pauser], [queue.Sender] and
// [queue.DeadLetters]. Then it uses the broker as a service would: a [queue.Consumer] with every
// outcome, handlers that are longer than a lease or kill their process, an open breaker, and a
// redrive that is interrupted. NothingLost kills workers and the broker while many messages are
// handled, and counts the messages.
//
// A message that comes early is an error. A message that comes late is logged, and is an error only
// after three minutes. A subtest that fails while timers or answers are late by a quarter of a lease is repeated
// with longer leases, up to five times. So a slow machine makes the tests slow and not red.
//
// The subtests wait more than they work, and run in parallel. Main raises -test.parallel
// for that, unless it was given.
package queuetest
