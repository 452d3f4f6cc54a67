// Package redial keeps connections up that must last: a WebSocket, a stream of server-sent events,
// an AMQP connection, a change feed, or anything else that a func(ctx) (C, error) dials.
//
//	d, err := lull.NewDependency("gateway", lull.Policy{})
//	...
//	g, err := redial.New(d, redial.Config{})
//	...
//	return redial.Keep(ctx, g, dial, func(ctx context.Context, c net.Conn) error {
//		...
//	})
//
// When a gateway restarts, all of its clients lose their connections in the same second, and a client
// cannot know whether others lost theirs. So it waits before the first dial and after each loss: mostly
// briefly, seldom long ([engine.RedialPolicy]).
//
// Each dial is a call to the dependency with one attempt and the operation "dial". The policy's
// AttemptTimeout bounds it, no dial is made while the circuit is open, and observers see it. A dial that
// fails uses nothing of the retry budget: the waits bound the rate. All errors count as transient, also
// unknown ones and a name that does not exist, but for those that end [Keep].
//
// Cost: nothing while a connection lasts. Keep uses its caller's goroutine and one timer.
// docs/guide.md has the rest, under "Connections that must last": hints, planned ends, refusals,
// escalation, and a run of a million clients.
package redial
