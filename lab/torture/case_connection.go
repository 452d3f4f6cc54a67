package torture

import (
	"time"

	"github.com/lullgo/lull/lab/torture/internal/words"
)

func connectionCases() []Case {
	const source = "RFC 9112, 9.3 (persistence)"
	onOne := rules{Pass: {oneConnection}, Warn: {newConnections}, NotApplicable: {oneAttempt}} // who reads the bodies of failures can
	return []Case{
		{Name: "connection-retries", Does: "answers a GET twice with 503 and a small body, and then with 200", Source: source,
			script: failing(503, 503), judge: reuse, rules: onOne, maybeBusy: mayOnlyBeBusy, judgedWhenBusy: true},
		{Name: "connection-large", Does: "answers a GET with 503 and a body of 32 KB, and then with 200", Source: source,
			script: []answer{{status: 503, body: 32 << 10}, good}, judge: reuse, rules: onOne, maybeBusy: mayOnlyBeBusy, judgedWhenBusy: true},
		{Name: "connection-calls", Does: "takes ten calls of one process, one after the other", Source: source,
			plan: plan{calls: 10}, script: []answer{good}, judge: reuseByCalls, rules: rules{Pass: {fewForCalls}, Warn: {manyForCalls}}},
		{Name: "connection-close", Does: "answers with 200 and Connection: close", Source: "RFC 9112, 9.6",
			script: []answer{{status: 200, header: []string{"Connection: close"}}}, judge: works, rules: mustWork, onlyReported: true},
		{Name: "connection-storm", Does: "answers twenty calls of one process over TLS, all at once, twice with 503", Source: source,
			door: doorTLS, plan: plan{calls: 20, together: true}, limit: 40 * time.Second, script: failing(503, 503),
			judge: handshakes, rules: rules{Pass: {fewHandshakes}, Warn: {manyHandshakes}, NotApplicable: {nothingCame}}, maybeBusy: mayOnlyBeBusy, judgedWhenBusy: true},
		{Name: "connection-tls", Does: "answers with 200, over TLS", Source: "RFC 9110, 4.3.4",
			door: doorTLS, script: []answer{good}, judge: overTLS, rules: mustWork.and(rules{NotApplicable: {unknownCA}}), onlyReported: true},
	}
}

const (
	oneConnection  outcome = "uses one connection for all attempts"
	newConnections outcome = "makes new connections for its retries"
	fewForCalls    outcome = "uses at most half as many connections as calls"
	manyForCalls   outcome = "uses more than half as many connections as calls"
	fewHandshakes  outcome = "makes new handshakes for at most half of the retries"
	manyHandshakes outcome = "makes new handshakes for more than half of the retries"
	unknownCA      outcome = "was not told of the certificate"
)

func connectionsOf(list []Attempt) int {
	seen := map[int]bool{}
	for _, a := range list {
		seen[a.Conn] = true
	}
	return len(seen)
}

func reuse(s *Seen) finding {
	list := s.first()
	if len(list) < 2 {
		return did(oneAttempt, "one attempt: there is nothing to reuse")
	}
	if n := connectionsOf(list); n > 1 {
		return did(newConnections, "%s for %s", words.Plural(n, "connection"), words.Plural(len(list), "attempt"))
	}
	return did(oneConnection, "one connection for %s", words.Plural(len(list), "attempt"))
}

// reuseByCalls is the judge of connections across calls, one after the other. On a busy machine a
// connection may not be back in its pool when the next call begins, so a few more than one are no sign.
func reuseByCalls(s *Seen) finding {
	n, calls := connectionsOf(s.Attempts), len(s.Finished)
	return did(either(2*n > calls, manyForCalls, fewForCalls), "%s for %s, one after the other", words.Plural(n, "connection"), words.Plural(calls, "call"))
}

// handshakes is the judge of TLS while many calls fail. A pool may have no room for the connections of all
// calls. Then a retry needs a new one if many others are under way, and on a busy machine more of them are.
// With room for half of the calls, no machine makes it more than half of the retries.
func handshakes(s *Seen) finding {
	calls := len(s.Finished)
	if len(s.Attempts) == 0 {
		return did(nothingCame, "no request: %s", words.Short(s.call().Text))
	}
	many := s.Accepted > calls+max(calls/4, (len(s.Attempts)-calls)/2)
	return did(either(many, manyHandshakes, fewHandshakes), "%s for %s and %s", words.Plural(s.Accepted, "handshake"), words.Plural(calls, "call"), words.Plural(len(s.Attempts), "attempt"))
}

func overTLS(s *Seen) finding {
	if len(s.Attempts) == 0 {
		return did(unknownCA, "the client was not told of the certificate: %s", words.Short(s.call().Text))
	}
	return works(s)
}
