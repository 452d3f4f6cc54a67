package torture

import (
	"github.com/lullgo/lull/lab/torture/internal/words"
)

func brokenCases() []Case {
	const group = "connections that break"
	broken := func(name, does string, f fault, r rules, source string) Case {
		return Case{Name: "broken-" + name, Group: group, method: "GET", Does: does + ", and answers the next attempt with 200",
			Source: source, script: []answer{{fault: f}, good}, judge: repetition, rules: r, hidden: mayOnlyBeBusy, stands: true}
	}
	const nine = "RFC 9112, 9.5: a client may repeat idempotent requests of a connection that was closed"
	const incomplete = "RFC 9112, 8: an incomplete response"
	cases := []Case{
		broken("reset", "reads a GET and resets the connection", faultReset, oughtToRepeat, nine),
		broken("close", "reads a GET and closes the connection", faultClose, oughtToRepeat, nine),
		broken("in-status", "resets the connection within the status line", faultInStatus, mayRepeat, nine),
		broken("in-header", "closes the connection within the header", faultInHeader, mayRepeat, incomplete),
		broken("garbage", "answers with bytes that are no HTTP", faultGarbage, mayRepeat, "RFC 9112, 4"),
	}
	for _, c := range []Case{
		broken("after-header", "resets the connection after the header", faultAfterHeader, mayRepeat, incomplete),
		broken("body", "closes the connection in the middle of a body of known length", faultCutBody, mayRepeat, incomplete),
		broken("chunk", "closes the connection in the middle of a chunked body", faultCutChunk, mayRepeat, incomplete),
	} {
		c.rules = rules{Pass: {reportedFailure, again, againInVain}, Fail: {tookHalf, didNotEnd}}
		c.judge, c.reported, c.hidden = cutOff, true, nil
		cases = append(cases, c)
	}
	accept := func(name, does string, d door, a arrival) Case {
		return Case{Name: "broken-" + name, Group: group, method: "GET", door: d, doors: []arrival{a}, Does: does + "; the next one is good",
			Source: nine, script: []answer{good}, judge: connectsAgain, rules: oughtToRepeat, hidden: mayOnlyBeBusy, stands: true}
	}
	cases = append(cases,
		accept("accept-reset", "resets the first connection as soon as it is accepted", doorPlain, arriveReset),
		accept("accept-close", "closes the first connection as soon as it is accepted", doorPlain, arriveClose),
		accept("handshake", "resets the first connection within the handshake of TLS", doorTLS, arriveHello),
		Case{Name: "broken-idle", Group: group, method: "GET", plan: plan{calls: 2}, Does: "answers a GET, and resets the connection when the next GET comes on it",
			Source: "RFC 9112, 9.5 and 9.3.1: idle connections may be closed at any time",
			script: []answer{{status: 200, fault: faultIdle}}, judge: idle, rules: rules{Pass: {again}, Warn: {callFailed}, NotApplicable: {ownConnection, nothingCame}}, hidden: mayHideAnIdleConnection, stands: true},
		Case{Name: "broken-refused", Group: group, method: "GET", door: doorClosed, Does: "does not listen", script: []answer{good},
			Source: "SRE book, Addressing Cascading Failures: limit retries a request", judge: failsSafely, reported: true,
			rules: rules{Pass: {reportedFailure}, Warn: {stillTried}, Fail: {reportedSuccess}}},
	)
	notOver2 := rules{NotApplicable: {noHTTP2, nothingCame, couldNotUseIt}}
	unprocessed := notOver2.and(rules{Pass: {again}, Warn: {againInVain, single}, Fail: oughtToRepeat[Fail]})
	processed := notOver2.and(rules{Pass: {again, single}, Warn: {againInVain}, Fail: oughtToRepeat[Fail]})
	frames := func(name, does, method string, f fault, r rules, source string) Case {
		c := Case{Name: "h2-" + name, Group: group, method: method, door: doorFrames, Does: does, Source: source,
			script: []answer{{fault: f}, good}, judge: repetitionHTTP2, rules: r, hidden: mayOnlyBeBusy, stands: true}
		if method == "POST" {
			c.body = 100
		}
		return c
	}
	const safe = "RFC 9113, 8.7: REFUSED_STREAM and a lower last stream guarantee that the request was not processed"
	cases = append(cases,
		frames("refused", "refuses the stream of a GET (REFUSED_STREAM), and takes the next", "GET", frameRefuse, unprocessed, safe),
		frames("refused-post", "refuses the stream of a POST (REFUSED_STREAM), and takes the next", "POST", frameRefuse, processed, safe),
		frames("goaway", "answers a GET with GOAWAY whose last stream is 0, and takes the next connection", "GET", frameGoaway, unprocessed, safe),
		frames("goaway-post", "answers a POST with GOAWAY whose last stream is 0", "POST", frameGoaway, processed, safe),
		frames("internal", "resets the stream of a GET (INTERNAL_ERROR), and takes the next", "GET", frameInternal, processed, sourceMethods),
	)
	for _, c := range []struct {
		name string
		d    door
		does string
	}{
		{"wrong-name", doorWrong, "for another name"}, {"expired", doorExpired, "that has expired"}, {"unknown", doorUnknown, "that nobody known has signed"},
	} {
		cases = append(cases, Case{Name: "tls-" + c.name, Group: group, method: "GET", door: c.d, Does: "shows a certificate " + c.does,
			Source: "RFC 9110, 4.3.4; RFC 9325, 6.1", script: []answer{good}, judge: untrusted,
			rules: rules{Pass: {sentNothing}, Warn: {connectedAgain}, Fail: {sentIt, reportedSuccess, didNotEnd}}})
	}
	return cases
}

// What clients do in these cases.
const (
	tookHalf      outcome = "takes half an answer for a whole one"
	ownConnection outcome = "makes its second call on a new connection"
)

// failsSafely is the judge of what can never succeed: the client reports that, in time.
func failsSafely(s *Seen) finding {
	call, n := s.call(), len(s.first())
	switch {
	case call.OK:
		return did(reportedSuccess, "it reported success")
	case call.Ended != "":
		return did(stillTried, "it was still trying after %s", words.Rounded(s.Took))
	case n == 0 && s.Accepted > 1:
		return did(reportedFailure, "it failed after %s and %s", words.Rounded(call.End-call.Start), words.Plural(s.Accepted, "connection"))
	}
	return did(reportedFailure, "it failed after %s", words.Rounded(call.End-call.Start))
}

// cutOff is the judge of bodies that break: the client must not report success.
func cutOff(s *Seen) finding {
	n, call := len(s.first()), s.call()
	switch {
	case call.Ended != "":
		return did(didNotEnd, "it had not ended after %s", words.Rounded(s.Took))
	case call.OK && !s.answered():
		return did(tookHalf, "%s, whose answer was cut off, and the client reported success", words.Plural(n, "attempt"))
	case call.OK:
		return did(again, "%s, and the call succeeded", words.Plural(n, "attempt"))
	case n > 1:
		return did(againInVain, "%s; then it gave up", words.Plural(n, "attempt"))
	}
	return did(reportedFailure, "one attempt, and the client reported the failure")
}

// connectsAgain is the judge of connections that end before a request is read.
func connectsAgain(s *Seen) finding {
	n, call := s.Accepted, s.call()
	switch {
	case call.Ended != "":
		return did(didNotEnd, "it had not ended after %s, with %s", words.Rounded(s.Took), words.Plural(n, "connection"))
	case call.OK && !s.answered():
		return did(reportedSuccess, "it reported success, and nothing had answered")
	case call.OK:
		return did(again, "%s, and the call succeeded", words.Plural(n, "connection"))
	case s.answered():
		return s.lost()
	case n > 1:
		return did(againInVain, "%s; then it gave up: %s", words.Plural(n, "connection"), words.Short(call.Text))
	case !s.retries:
		return did(noRetries, "one connection: the client does not repeat a GET that gets 503, either")
	}
	return did(single, "one connection, and the call failed")
}

// idle is the judge of a connection that ended while it was idle.
func idle(s *Seen) finding {
	if f, ok := s.notIdle(); ok {
		return f
	}
	if second := s.of(1); s.Finished[1].OK {
		return did(again, "%s for the second call, which succeeded", words.Plural(len(second), "attempt"))
	}
	return did(callFailed, "the second call failed: %s", words.Short(s.Finished[1].Text))
}

// notIdle returns the finding about a second call that did not come on the connection of the first, and reports
// whether that is so.
func (s *Seen) notIdle() (finding, bool) {
	first, second := s.of(0), s.of(1)
	switch {
	case len(s.Finished) < 2 || len(first) == 0 || len(second) == 0:
		return did(nothingCame, "the second call did not arrive"), true
	case second[0].Conn != first[0].Conn:
		return did(ownConnection, "the second call came on a connection of its own"), true
	}
	return finding{}, false
}

// mayHideAnIdleConnection reports whether a busy machine can be why the second call came on a connection of
// its own: the first one was not back in its pool.
func mayHideAnIdleConnection(s *Seen) bool {
	first, second := s.of(0), s.of(1)
	return s.Late > punctual && len(first) > 0 && len(second) > 0 && first[0].Conn != second[0].Conn
}
