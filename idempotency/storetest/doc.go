// Package storetest has the tests that every idempotency.Store must pass.
//
// [Run] checks the contract, line by line:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) idempotency.Store {
//			return open(t)
//		}, storetest.Options{})
//	}
//
// [Matrix] is for stores that outlive a process: it starts the test binary again as a
// server, kills it at each step of the protocol, and lets another process answer the
// retry. If the store is on a network ([Outliving.Address]) it also lets that stand still at
// each packet, and then answer. Matrix must be all that its test does, as the servers run
// that test too:
//
//	func TestMatrix(t *testing.T) {
//		storetest.Matrix(t, storetest.Outliving{
//			Place: func(t *testing.T) string { return startServer(t) },
//			Open:  func(t *testing.T, place string) idempotency.Store { return connect(t, place) },
//		})
//	}
package storetest
