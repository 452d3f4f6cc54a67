package torture

import "github.com/lullgo/lull/lab/torture/internal/words"

// tlsCases are connections over TLS that must not be made.
func tlsCases() []Case {
	shows := func(name, which string, d door) Case {
		return Case{Name: "tls-" + name, Does: "shows a certificate " + which, Source: "RFC 9110, 4.3.4; RFC 9325, 6.1", door: d,
			script: []answer{good}, judge: untrusted, rules: rules{Pass: {sentNothing}, Warn: {connectedAgain}, Fail: {sentIt, reportedSuccess, didNotEnd}}}
	}
	return []Case{
		shows("wrong-name", "for another name", doorWrong),
		shows("expired", "that has expired", doorExpired),
		shows("unknown", "that nobody known has signed", doorUnknown),
	}
}

const (
	sentIt         outcome = "sends its request to that server"
	sentNothing    outcome = "sends nothing and does not connect again"
	connectedAgain outcome = "connects again"
)

func untrusted(s *Seen) finding {
	switch n := len(s.first()); {
	case n > 0:
		return did(sentIt, "it sent its request to a server whose certificate it must not believe")
	case s.call().OK:
		return did(reportedSuccess, "it reported success")
	case s.Accepted > 1:
		return did(connectedAgain, "%s: the certificate will be no better the next time", words.Plural(s.Accepted, "handshake"))
	case s.call().Ended != "":
		return did(didNotEnd, "it had not ended after %s", words.Rounded(s.Took))
	}
	return did(sentNothing, "one handshake, no request")
}
