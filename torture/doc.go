// Package torture grades HTTP clients: it plays a server that fails in more than a hundred
// ways, and judges what a client makes of it by what arrives.
//
//	card, err := torture.Run(ctx, torture.NetHTTP(), torture.Options{})
//
// Each case has an address of its own, /t/CASE/RUN/CALL on a port of 127.0.0.1, so any client
// can be pointed at it. The server sees the times of arrival, methods, headers, bodies,
// connections and handshakes; a judge for each case makes a [Verdict] of them.
//
// # What is graded
//
// A [Client] is a [Doer] in this process ([HTTP]) or a program ([Command]). It makes logical
// calls, with all its retries, and reports whether each succeeded. Each case starts it anew.
//
// # Grades
//
// A fail is for what breaks a specification or does harm: a request carried out twice, half an
// answer taken for a whole one, a retry earlier than the server asked. A warning is for
// what is allowed but not recommended. What a client does not claim does not apply to it:
// who never repeats a GET is not graded by how long it waits. A few cases run first and show what the client does at all.
//
// # Time
//
// A lower bound is exact: who comes earlier than asked has come earlier, however busy the
// machine is. An upper bound is generous by four seconds. Cases run beside each other,
// but those that measure short waits run alone. What a busy machine adds can only make waits
// longer. So the shortest ones decide whether there is a wait, and whether it is random; where
// the machine may still have hidden something, the case is tried again. The chance that a
// verdict about a distribution is wrong is below 1 in 10,000.
//
// Deadlines are judged from the first arrival on: how long a client needs to start is no matter.
// Where nothing arrived in time, the next try has twice the time.
//
// docs/torture.md shows how a client is added.
package torture
