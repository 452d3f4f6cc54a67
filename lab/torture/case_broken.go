package torture

import "github.com/lullgo/lull/lab/torture/internal/words"

func brokenCases() []Case {
	const nine = "RFC 9112, 9.5: a client may repeat idempotent requests of a connection that was closed"
	const incomplete = "RFC 9112, 8: an incomplete response"
	broken := func(name, does string, f *fault, r rules, source string) Case {
		return Case{Name: "broken-" + name, Does: does + ", and answers the next attempt with 200", Source: source,
			script: []answer{{fault: f}, good}, judge: repetition, rules: r, maybeBusy: mayOnlyBeBusy, judgedWhenBusy: true}
	}
	cut := func(name, does string, f *fault) Case {
		return Case{Name: "broken-" + name, Does: does + ", and answers the next attempt with 200", Source: incomplete,
			script: []answer{{fault: f}, good}, judge: cutOff, rules: rules{Pass: {reportedFailure, again, againInVain}, Fail: {tookHalf, didNotEnd}}, onlyReported: true, judgedWhenBusy: true}
	}
	accept := func(name, does string, d door, a arrival) Case {
		return Case{Name: "broken-" + name, Does: does + "; the next one is good", Source: nine, door: d, doors: []arrival{a},
			script: []answer{good}, judge: connectsAgain, rules: oughtToRepeat, maybeBusy: mayOnlyBeBusy, judgedWhenBusy: true}
	}
	return []Case{
		broken("reset", "reads a GET and resets the connection", faultReset, oughtToRepeat, nine),
		broken("close", "reads a GET and closes the connection", faultClose, oughtToRepeat, nine),
		broken("in-status", "resets the connection within the status line", faultInStatus, mayRepeat, nine),
		broken("in-header", "closes the connection within the header", faultInHeader, mayRepeat, incomplete),
		broken("garbage", "answers with bytes that are no HTTP", faultGarbage, mayRepeat, "RFC 9112, 4"),
		cut("after-header", "resets the connection after the header", faultAfterHeader),
		cut("body", "closes the connection in the middle of a body of known length", faultCutBody),
		cut("chunk", "closes the connection in the middle of a chunked body", faultCutChunk),
		accept("accept-reset", "resets the first connection as soon as it is accepted", doorPlain, arriveReset),
		accept("accept-close", "closes the first connection as soon as it is accepted", doorPlain, arriveClose),
		accept("handshake", "resets the first connection within the handshake of TLS", doorTLS, arriveHello),
		{Name: "broken-idle", Does: "answers a GET, and resets the connection when the next GET comes on it", Source: "RFC 9112, 9.5 and 9.3.1: idle connections may be closed at any time",
			plan: plan{calls: 2}, script: []answer{{status: 200, fault: faultIdle}}, exempt: (*Seen).notIdle, judge: idle, maybeBusy: mayHideAnIdleConnection, judgedWhenBusy: true,
			rules: rules{Pass: {again}, Warn: {callFailed}, NotApplicable: {ownConnection, nothingCame}}},
		{Name: "broken-refused", Does: "does not listen", Source: "SRE book, Addressing Cascading Failures: limit retries a request", door: doorClosed,
			script: []answer{good}, judge: failsSafely, rules: rules{Pass: {reportedFailure}, Warn: {stillTried}, Fail: {reportedSuccess}}, onlyReported: true},
	}
}

// What the server plays over HTTP/1.1: it breaks off in a response, or before it.
var (
	faultReset       = &fault{name: "reset", reset: true}
	faultClose       = &fault{name: "close"}
	faultInStatus    = &fault{name: "in-status", part: "HTTP/1.1 20", reset: true}
	faultInHeader    = &fault{name: "in-header", part: "HTTP/1.1 200 OK\r\nContent-Type: appl"}
	faultAfterHeader = &fault{name: "after-header", part: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n", reset: true}
	faultCutBody     = &fault{name: "cut-body", part: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"half\":"}
	faultCutChunk    = &fault{name: "cut-chunk", part: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{\"half\":"}
	faultGarbage     = &fault{name: "garbage", part: "\x00\x01 this is no HTTP\r\n\r\n"}
	faultIdle        = &fault{name: "idle", reset: true} // a good answer; then the idle connection is reset
)

const (
	reportedFailure outcome = "reports the failure"
	tookHalf        outcome = "takes half an answer for a whole one"
	ownConnection   outcome = "makes its second call on a new connection"
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

func idle(s *Seen) finding {
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
	return s.Late > usualLateness && len(first) > 0 && len(second) > 0 && first[0].Conn != second[0].Conn
}
