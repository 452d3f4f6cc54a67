// Package torture grades HTTP clients. Its server fails in more than a hundred ways, and a
// client is judged by the requests that arrive there.
//
//	card, err := torture.Run(context.Background(), torture.Lull("lullhttp", lull.Policy{}), torture.Options{Cases: cases})
//
// Each case has an address of its own, /t/CASE/RUN/CALL on a port of 127.0.0.1, so any client
// can be used. The server records times of arrival, methods, headers, bodies, connections and
// handshakes. Each case has a judge, which makes a [Verdict] of what was recorded.
//
// # What is graded
//
// A [Client] is a [Doer] in this process ([HTTP]) or a program ([Command]). It makes logical
// calls, with all their retries, and reports whether each call succeeded. Each case starts a new
// client.
//
// # Where a case is
//
// Each topic has a file: case_hint.go has the cases of Retry-After, what the server plays in them, what clients do
// then, and the judges that find it out. What all share stands elsewhere: site.go and frames.go play, seen.go
// records, judge.go and rules.go grade.
//
// # Grades
//
// A client fails a case if it breaks a specification or does harm: it repeats a request that may
// have been carried out, takes half an answer for a whole one, or reads when to come back and comes
// earlier. It gets a warning for what is allowed but not recommended. What a client does not claim
// to do is not graded: a client that never repeats a GET gets no grade for its waits. A few cases
// run first. They show what the client does at all. Each case has a table of what a client may do and
// the grade for it. The verdict and [Case.Right] are made of that table.
//
// # Time
//
// Lower bounds are exact: a busy machine makes no request come too early. Most upper bounds have four
// seconds to spare; deadline-share and deadline-share-503 have a tenth of the deadline. Several cases
// run at the same time, but cases that measure short waits run alone. A busy machine can only make
// waits longer. So the shortest waits decide whether there is a wait, and whether it is random. If a
// busy machine may be the reason for a verdict, the case is tried again, up to three times. The
// chance that a verdict about a distribution is wrong is below 1 in 10,000.
//
// Deadlines count from the first request that arrives, so the time that a client needs to start
// is not part of them. If nothing arrives in time, the next try has twice the time.
//
// docs/torture.md shows how to add a client.
package torture
