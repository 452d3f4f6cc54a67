// Package torture grades HTTP clients. Its server fails in more than a hundred ways, and a
// client is judged by the requests that arrive there.
//
//	card, err := torture.Run(context.Background(), torture.Lull("lullhttp", lull.Policy{}), torture.Options{Cases: cases})
//
// Each case has an address of its own, /t/CASE/RUN/CALL on a port of 127.0.0.1, so any client can be used. The server records times of
// arrival, methods, headers, bodies, connections and handshakes. The judge of the case finds out what the client did, and a table of
// rules has the grade for that; [Case.Right] is made of the same table. A [Client] is a [Doer] in this process ([HTTP]) or a program
// ([Command]). Each case starts a new one. What a client does not claim to do is not graded: a few cases run first, and show what it does at all.
//
// Each topic has a file: case_hint.go has the cases of Retry-After, what the server plays in them, what clients do then, and the judges
// that find it out. What all share stands elsewhere: site.go and frames.go play, seen.go records, judge.go and rules.go grade.
//
// docs/torture.md says what the grades mean, how times are judged on a busy machine, and how to add a client.
package torture
