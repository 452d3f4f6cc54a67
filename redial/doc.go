// Package redial keeps connections up that must last: a WebSocket, a stream of server-sent events,
// an AMQP connection, a change feed, anything that a func(ctx) (C, error) dials.
//
//	d, err := lull.NewDependency("gateway", lull.Policy{})
//	...
//	g, err := redial.New(d, redial.Config{})
//	...
//	err = redial.Keep(ctx, g, dial, func(ctx context.Context, c *websocket.Conn) error {
//		... // use the connection until it ends
//	})
//
// To connect again is a retry, and the worst kind: when a gateway restarts, all of its clients lose
// their connections in the same second. A million clients that dial at once, and again when they
// are refused, keep a gateway busy with refusing. So a client that has lost its connection waits,
// although it cannot know whether others lost theirs: mostly briefly, seldom long
// ([engine.RedialPolicy]). In the simulator a gateway that admits 50,000 a second is restarted, and
// has its million clients back after 25 s with 1.4 dials each; 20 s is the least possible.
//
//	lull simulate reconnect-herd --policy lull --set fleets.phones.redial=true
//
// What a reconnector needs beyond a retry loop, and has here:
//
//   - Jitter before the first dial and after each loss, not only after failures.
//   - Only a connection that has lasted (a minute) sets the count of failures back. A server that
//     accepts and closes is not well, though each dial succeeds.
//   - A cap of dials in flight for the process (Config.Dials).
//   - The server's hints. A dial or a use that returns lull.RetryAfter waits at least that long.
//     [Upgrade] makes that of the response to an HTTP upgrade (503 with Retry-After). A CloseError
//     with the codes 1012 and 1013, as gorilla/websocket and coder/websocket have it, is understood
//     as it is. [ParseRetry] reads the retry field of server-sent events.
//   - Planned ends. [Drain] says over which time a server moves its clients; their dials are spread
//     over it, and it counts as no failure.
//   - Escalation by elapsed time (Config.Escalate). A count of attempts means another time with
//     each jitter and each hint.
//
// Each dial is a call to the dependency with one attempt and the operation "dial". The policy's
// AttemptTimeout bounds it, and no dial is made while the circuit is open. So where HTTP requests
// to the same gateway have found that it is down, nobody dials; and observers see each dial. A
// dial that fails uses nothing of the retry budget: a connection that must last is dialled again
// in any case, as slowly as the waits say.
//
// A dial ends for good with a permanent answer (a 403, lull.Permanent, the close code 1008) and with
// the context. All else may pass: also an error of which nothing is known, and a name that does not
// exist.
//
// Cost: nothing while a connection lasts; Keep uses its caller's goroutine and one timer.
package redial
