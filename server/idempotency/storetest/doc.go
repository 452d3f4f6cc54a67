// Package storetest has the tests that every idempotency.Store must pass.
//
// [Run] checks the contract, line by line:
//
//	func TestConformanceByTheClock(t *testing.T) {
//		t.Parallel()
//		storetest.Run(t, func(t *testing.T) idempotency.Store { return open(t, temp(t), Config{}) }, storetest.Options{})
//	}
//
// [Matrix] is for stores that outlive a process: it starts the test binary again as a
// server, kills it at each step of the protocol, and lets another process answer the
// retry. If the store is on a network ([Outliving.Address]) Matrix also stops the store at
// each packet, and then lets it answer. The test must do nothing but call Matrix, since the
// servers run that test too:
//
//	storetest.Matrix(t, storetest.Outliving{Place: place, Open: openAt, Address: address})
package storetest
