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
// A message that comes early is an error. One that comes late is logged, and is an error only after three minutes. A
// subtest that fails while timers or answers are late by a quarter of a lease is repeated with longer leases, up to five
// times: a slow machine makes the tests slow and not red. They wait more than they work, and run in parallel.
package queuetest
