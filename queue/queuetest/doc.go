// Package queuetest has the tests that every queue.Broker must pass. The adapters of
// this repository run them against real servers; authors of other adapters can too.
//
//	func TestMain(m *testing.M) {
//		code := queuetest.Main(m, connect) // runs the tests; or, in a worker process, does its work and exits
//		stopServers()
//		os.Exit(code)
//	}
//
//	func TestConformance(t *testing.T) {
//		queuetest.Run(t, queuetest.Target{Declare: declare, Connect: connect, Restart: restart})
//	}
//
//	func TestNothingLost(t *testing.T) {
//		queuetest.NothingLost(t, queuetest.Target{Declare: declare, Connect: connect, Restart: restart})
//	}
//
// Run has a subtest for every clause of the contract of [queue.Broker], [queue.Pauser],
// [queue.Sender] and [queue.DeadLetters], and then uses the broker as a service would:
// a [queue.Consumer] with every outcome, handlers that are longer than a lease or kill their process,
// an open breaker, a redrive that is interrupted. NothingLost kills workers and the
// broker while many messages are handled, and counts.
//
// Times are judged one way only: what comes early is an error. How late it comes is
// logged, and nothing else is asked of it than to come within a minute. So a
// slow machine makes the tests slow and not red.
//
// The subtests wait more than they work, and run in parallel. Main raises -test.parallel
// for that, unless it was given.
package queuetest
