// Package storetest has the tests that every idempotency.Store must pass.
//
// [Run] checks the contract, line by line:
//
//	func TestStore(t *testing.T) {
//		t.Parallel()
//		storetest.Run(t, func(t *testing.T) idempotency.Store {
//			return connect(t, startServer(t))
//		}, storetest.Options{Concurrent: 50})
//	}
//
// [Matrix] is for stores that outlive a process: it starts the test binary again as a
// server, kills it at each step of the protocol, and lets another process answer the
// retry. If the store is on a network ([Outliving.Address]) it also lets that stand still at
// each packet, and then answer. Matrix must be all that its test does, as the servers run
// that test too:
//
//	func TestMatrix(t *testing.T) {
//		t.Parallel()
//		storetest.Matrix(t, storetest.Outliving{Place: startServer, Open: connect, Address: address})
//	}
package storetest
