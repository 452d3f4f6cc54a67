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
// To connect again is a retry, and it is the worst kind. When a gateway restarts, all of its clients
// lose their connections in the same second. If a million clients dial at once, and again when they
// are refused, the gateway does nothing but refuse. A client cannot know whether others lost their
// connections too. So a client that has lost its connection waits: mostly briefly, seldom long
// ([engine.RedialPolicy]). In the simulator a gateway that admits 50,000 a second is restarted. Its
// million clients are back after 25 s with 1.4 dials each; 20 s is the least possible.
//
//	lull simulate reconnect-herd --policy lull --set fleets.phones.redial=true
//
// A connection that must last needs more than a retry loop. This package has:
//
//   - Jitter before the first dial and after each loss, not only after failures.
//   - Only a connection that has lasted (a minute) sets the count of failures back. A server that
//     accepts a connection and closes it is still in trouble, though each dial succeeds.
//   - A cap of dials in flight for the process (Config.Dials).
//   - The server's hints. A dial or a use that returns lull.RetryAfter waits at least that long.
//     [Upgrade] makes such an error of the response to an HTTP upgrade (503 with Retry-After). The
//     close codes 1012 and 1013 in a CloseError of gorilla/websocket or coder/websocket are
//     understood without it. [ParseRetry] reads the retry field of server-sent events.
//   - Planned ends. [Drain] has the time over which a server moves its clients. Their dials are
//     spread over that time, and the loss of the connection counts as no failure.
//   - Escalation by elapsed time (Config.Escalate). A count of attempts would mean another time with
//     each jitter and each hint.
//
// Each dial is a call to the dependency with one attempt and the operation "dial". The policy's
// AttemptTimeout bounds it, and no dial is made while the circuit is open. So if HTTP requests
// to the same gateway have opened the circuit, nobody dials. Observers see each dial. A
// dial that fails uses nothing of the retry budget: a connection that must last is dialled again
// in any case, and the waits bound the rate.
//
// Three things end the dials: the end of the context, an error that the program itself has marked
// with lull.Permanent, and a server that refuses (a 403, the close code 1008) before any connection
// has lasted. After one has lasted, a refusal may be due to a deployment, a missed ping or a token
// that has run out, so it is dialled again. Let dial get a new token. All other errors count as
// transient, also unknown ones, and a name that does not exist.
//
// Cost: nothing while a connection lasts. Keep uses its caller's goroutine and one timer.
package redial
