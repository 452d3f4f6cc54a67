package torture

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// good is the answer that ends a script.
var good = answer{status: 200}

// failing is a script: those statuses, and then 200.
func failing(statuses ...int) []answer {
	var script []answer
	for _, status := range statuses {
		script = append(script, answer{status: status})
	}
	return append(script, good)
}

const sourceMethods = "RFC 9110, 9.2.2 (idempotent methods)"

// mayRepeat are the rules of what a client may repeat, and need not; oughtToRepeat of what it ought to.
var (
	mayRepeat     = rules{Pass: {again, againInVain, single}, Fail: {reportedSuccess, lostTheAnswer, didNotEnd}, NotApplicable: {noRetries, couldNotUseIt}}
	oughtToRepeat = rules{Pass: {again, againInVain}, Warn: {single}, Fail: {reportedSuccess, lostTheAnswer, didNotEnd}, NotApplicable: {noRetries, couldNotUseIt}}
	mustWork      = rules{Pass: {tookTheAnswer}, Fail: {callFailed}}
)

func statusCases() []Case {
	get := func(status int, r rules, source string) Case {
		return Case{
			Name: "status-" + strconv.Itoa(status), Group: "statuses", method: "GET",
			Does:   fmt.Sprintf("answers a GET with %d, and then with 200", status),
			Source: source, script: failing(status), judge: repetition, rules: r, hidden: mayOnlyBeBusy, stands: true,
		}
	}
	limited := get(429, rules{Pass: {again, againInVain, single}, Warn: {noWait}, Fail: mayRepeat[Fail], NotApplicable: {noRetries, couldNotUseIt, tooFew}}, "RFC 6585, 4; AWS Builders' Library, Timeouts, retries and backoff with jitter")
	limited.Does += "; forty clients" // one that came back soon could have drawn a short wait
	limited.judge, limited.hidden, limited.plan = repetitionAfterAWait, mayHideThatThereWasNoWait, plan{calls: 40, fresh: true, every: 25 * time.Millisecond}
	cases := []Case{
		get(503, oughtToRepeat, "RFC 9110, 15.6.4; gRPC status UNAVAILABLE"),
		get(502, oughtToRepeat, "RFC 9110, 15.6.3; GEP-1731 lists 500, 502, 503 and 504"),
		get(504, oughtToRepeat, "RFC 9110, 15.6.5; GEP-1731"),
		limited,
		get(500, mayRepeat, "RFC 9110, 15.6.1 with 9.2.2"),
		get(408, mayRepeat, "RFC 9110, 15.5.9: the client may repeat the request"),
		get(425, mayRepeat, "RFC 8470, 5.2: the client may repeat the request"),
		get(421, mayRepeat, "RFC 9110, 15.5.20: may repeat it over another connection"),
		get(520, mayRepeat, "RFC 9110, 15, third paragraph: an unknown 5xx is a 500"),
	}
	for _, method := range []string{"PUT", "DELETE", "HEAD"} {
		c := Case{
			Name: "status-503-" + lower(method), Group: "statuses", method: method,
			Does:   "answers a " + method + " with 503, and then with 200",
			Source: sourceMethods, script: failing(503), judge: repetition, rules: mayRepeat,
		}
		if method == "PUT" {
			c.body = 200
		}
		cases = append(cases, c)
	}
	return append(cases,
		Case{Name: "status-mixed", Group: "statuses", method: "GET", Does: "answers a GET with 503, then 502, then 200",
			Source: sourceMethods, script: failing(503, 502), judge: repetition, rules: mayRepeat},
		Case{Name: "status-always", Group: "statuses", method: "GET", Does: "answers every GET with 503",
			Source: "RFC 9110, 9.2.2; SRE book, Handling Overload: three attempts a request", script: []answer{{status: 503}}, judge: bounded,
			rules: rules{Pass: {fewAttempts}, Warn: {manyAttempts, stillTried}, Fail: {reportedSuccess}}},
		Case{Name: "status-early-hints", Group: "statuses", method: "GET", Does: "sends 103 before its 200",
			Source: "RFC 9110, 15.2: a client must be able to parse 1xx", script: []answer{{status: 200, fault: faultHints}}, judge: works, rules: mustWork, reported: true},
	)
}

func lower(method string) string {
	return map[string]string{"PUT": "put", "DELETE": "delete", "HEAD": "head", "POST": "post", "PATCH": "patch", "GET": "get"}[method]
}

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

func forbiddenCases() []Case {
	const group = "must not be repeated"
	var cases []Case
	// onlyOnce are the rules of what must come once; more is the grade of those who repeat it.
	onlyOnce := func(more Grade) rules {
		return rules{Pass: {sentOnce}, Fail: {didNotEnd}}.and(rules{more: {sentAgain}})
	}
	withoutKey := func(more Grade) rules { return onlyOnce(more).and(rules{Pass: {ownKey}}) }
	unsafe := func(name, method, does string, a answer, more Grade, source string) {
		cases = append(cases, Case{Name: "once-" + name, Group: group, method: method, body: 100, Does: does + ", and would answer the next with 200",
			Source: source, script: []answer{a, good}, judge: onceWithoutKey, rules: withoutKey(more)})
	}
	const not = "RFC 9110, 9.2.2: a client should not automatically retry a request with a non-idempotent method"
	for _, status := range []int{500, 502, 503, 504} {
		unsafe(fmt.Sprintf("post-%d", status), "POST", fmt.Sprintf("answers a POST without a key with %d", status), answer{status: status}, Fail, not)
	}
	unsafe("post-408", "POST", "answers a POST without a key with 408", answer{status: 408}, Warn, "RFC 9110, 15.5.9 with 9.2.2")
	unsafe("patch-503", "PATCH", "answers a PATCH without a key with 503", answer{status: 503}, Fail, not)
	unsafe("post-reset", "POST", "reads a POST without a key and resets the connection", answer{fault: faultReset}, Fail, not)
	unsafe("post-close", "POST", "reads a POST without a key and closes the connection", answer{fault: faultClose}, Fail, not)
	unsafe("post-in-header", "POST", "reads a POST without a key and breaks off within the header of its answer", answer{fault: faultInHeader}, Fail, not)
	unsafe("post-body", "POST", "reads a POST without a key and breaks off within the body of its answer", answer{fault: faultCutBody}, Fail, not)
	c := Case{Name: "once-post-timeout", Group: group, method: "POST", body: 100, timeout: 3 * time.Second,
		Does:   "reads a POST without a key and does not answer; the call has three seconds",
		Source: not, script: []answer{{fault: faultSilent}}, judge: onceWithoutKey, rules: withoutKey(Fail), hidden: mayHideThatItIsInTime, stands: true, longer: true}
	cases = append(cases, c, Case{Name: "once-post-idle", Group: group, method: "POST", body: 100, plan: plan{calls: 2},
		Does:   "answers a POST without a key, reads the next one whole on the same connection, resets it, and would answer a third with 200",
		Source: not,
		script: []answer{{status: 200, fault: faultIdle}}, judge: idleOnce, rules: withoutKey(Fail).and(rules{NotApplicable: {ownConnection, nothingCame}}),
		hidden: mayHideAnIdleConnection, stands: true})

	const their = "RFC 9110, 15.5: the client seems to have erred; the same request gets the same answer"
	for _, s := range []struct {
		status int
		more   Grade
		source string
	}{
		{400, Fail, their}, {401, Warn, "RFC 9110, 15.5.2: may be repeated with other credentials"}, {403, Fail, "RFC 9110, 15.5.4: should not be repeated with the same credentials"},
		{404, Warn, their}, {405, Fail, their}, {406, Fail, their}, {409, Warn, "RFC 9110, 15.5.10: the user might resolve the conflict"}, {410, Fail, "RFC 9110, 15.5.11"},
		{412, Warn, "RFC 9110, 15.5.13"}, {413, Fail, "RFC 9110, 15.5.14: may be tried again only if there is a Retry-After"}, {414, Fail, their}, {415, Fail, their},
		{422, Fail, "RFC 9110, 15.5.21"}, {423, Warn, "RFC 4918, 11.3"}, {428, Fail, "RFC 6585, 3"}, {431, Warn, "RFC 6585, 5: may be sent again after the fields are made smaller"}, {451, Fail, "RFC 7725, 3"},
		{501, Warn, "RFC 9110, 15.6.2: the method is not supported, which the next attempt does not change"}, {505, Warn, "RFC 9110, 15.6.6: the same of the version"}, {507, Fail, "RFC 4918, 11.5: must not be repeated until a user asks for it"},
		{508, Warn, "RFC 5842, 7.2"}, {511, Warn, "RFC 6585, 6"},
	} {
		what := http.StatusText(s.status)
		cases = append(cases, Case{Name: "once-" + strconv.Itoa(s.status), Group: group, method: "GET", Does: fmt.Sprintf("answers a GET with %d (%s), and would answer the next with 200", s.status, what),
			Source: s.source, script: failing(s.status), judge: once, rules: onlyOnce(s.more)})
	}
	vendor := func(name, header, who, source string) {
		cases = append(cases, Case{Name: "once-" + name, Group: group, method: "GET", Does: "answers a GET with 503 and " + header + ", and would answer the next with 200",
			Source: source, script: []answer{{status: 503, header: []string{header}}, good}, judge: dontRetry, field: who, rules: rules{Pass: {sentOnce}, NotApplicable: {repeatedUnread, noRetries}}})
	}
	vendor("should-retry", "X-Should-Retry: false", "X-Should-Retry", "the SDKs of OpenAI and Anthropic (Stainless)")
	vendor("stripe-should-retry", "Stripe-Should-Retry: false", "Stripe-Should-Retry", "docs.stripe.com/error-low-level")
	vendor("grpc-pushback", "Grpc-Retry-Pushback-Ms: -1", "Grpc-Retry-Pushback-Ms", "gRFC A6: a negative pushback asks for no retry")
	cases = append(cases,
		Case{Name: "once-h2-internal-post", Group: group, method: "POST", body: 100, door: doorFrames, Does: "reads a POST and resets its stream (INTERNAL_ERROR)",
			Source: not, script: []answer{{fault: frameInternal}, good}, judge: onceHTTP2, rules: onlyOnce(Fail).and(rules{NotApplicable: {noHTTP2, nothingCame}})},
		Case{Name: "once-h2-goaway-post", Group: group, method: "POST", body: 100, door: doorFrames, Does: "reads a POST, and closes the connection with a GOAWAY that counts it among the processed",
			Source: "RFC 9113, 6.8: such a request may have been processed", script: []answer{{fault: frameProcessed}, good}, judge: onceHTTP2, rules: onlyOnce(Fail).and(rules{NotApplicable: {noHTTP2, nothingCame}})},
		Case{Name: "once-success", Group: group, method: "POST", body: 100, Does: "answers a POST with 200", Source: not, script: []answer{good}, judge: once, rules: onlyOnce(Fail)},
	)
	return cases
}

func bodyCases() []Case {
	body := func(name, method, does string, size int, key bool, script ...answer) Case {
		return Case{Name: "body-" + name, Group: "bodies", method: method, key: key, body: size, Does: does,
			Source: "RFC 9110, 9.2.2: the request is repeated, not another one", script: append(script, good), judge: sameBodies,
			rules: rules{Pass: {sameBytes}, Fail: {otherBytes, fewerBytes, otherType}, NotApplicable: {oneAttempt, noWholeBody}}}
	}
	bad := answer{status: 503}
	return []Case{
		body("put", "PUT", "answers a PUT of 1,000 bytes twice with 503", 1000, false, bad, bad),
		body("put-large", "PUT", "answers a PUT of 1 MB twice with 503", 1<<20, false, bad, bad),
		body("post-key", "POST", "answers a POST with a key and 5,000 bytes twice with 503", 5000, true, bad, bad),
		body("early", "PUT", "answers a PUT of 1 MB with 503 before it has read it, and closes the connection", 1<<20, false, answer{status: 503, fault: faultEarly}),
		body("reset", "PUT", "resets the connection in the middle of a PUT of 1 MB", 1<<20, false, answer{fault: faultMidBody}),
		body("closed", "PUT", "reads a PUT of 1,000 bytes and closes the connection", 1000, false, answer{fault: faultClose}),
	}
}

func hintCases() []Case {
	const field = "RFC 9110, 10.2.3 (Retry-After)"
	hinted := func(name, does string, status int, wait time.Duration, source string, judge func(*Seen) finding, r rules, header ...string) Case {
		return Case{Name: "hint-" + name, Group: "hints", method: "GET", Does: does, Source: source,
			script: []answer{{status: status, header: header, wait: wait}, good}, judge: judge, rules: r}
	}
	odd := func(name, value string, judge func(*Seen) finding, r rules) Case {
		return hinted(name, "answers with 503 and Retry-After: "+value, 503, 0, field, judge, r, "Retry-After: "+value)
	}
	// heeds are the rules of a Retry-After; early is the grade of a client that reads it and comes back earlier.
	// Who reads none is warned once, by the first case.
	heeds := func(early Grade) rules {
		return rules{Pass: {keptHint, stayedAway}, Warn: {stillWaited}, NotApplicable: {ignoredHint, noRetries}}.and(rules{early: {cameTooEarly}})
	}
	read := func(header string, c Case) Case { // a field that only some clients claim to read
		c.judge, c.field, c.rules = dialect, header, rules{Pass: {keptHint}, NotApplicable: {ignoredField, oneAttempt}}
		return c
	}
	comesBack := rules{Pass: {cameBack}, Warn: {stayedAway}, Fail: {stillWaited}, NotApplicable: {noRetries}}
	tooLong := rules{Pass: {stayedAway}, Warn: {stillWaited}, Fail: {cameTooEarly}, NotApplicable: {ignoredHint, noRetries}}
	// A busy machine can be why a client seems to have waited.
	waited := []string{"hint-seconds-503", "hint-seconds-429", "hint-date", "hint-date-429", "hint-date-rfc850", "hint-date-asctime", "hint-twice", "hint-both",
		"hint-ratelimit", "hint-x-ratelimit", "hint-ms", "hint-413"}
	overflow := odd("overflow", "99999999999999999999", overflowHint, rules{Pass: {stayedAway, cameBack}, Warn: {stillWaited}, Fail: {overflowed}, NotApplicable: {noRetries}})
	overflow.Does += "; forty clients" // one that came back soon could have drawn a short wait
	overflow.plan = plan{calls: 40, fresh: true, every: 25 * time.Millisecond}
	overflow.hidden, overflow.stands = mayHideAnOverflow, true
	base := hinted("seconds-503", "answers with 503 and Retry-After: 2", 503, 2*time.Second, field, hint,
		rules{Pass: {keptHint, stayedAway}, Warn: {ignoredHint, stillWaited}, NotApplicable: {noRetries}}, "Retry-After: 2")
	cases := []Case{
		base,
		hinted("seconds-429", "answers with 429 and Retry-After: 2", 429, 2*time.Second, "RFC 6585, 4", hint, heeds(Fail), "Retry-After: 2"),
		hinted("date", "answers with 503 and a Retry-After that is a date in two to three seconds", 503, 0, field, hint, heeds(Fail), "Retry-After: {imf+3}"),
		hinted("date-429", "answers with 429 and a Retry-After that is a date in two to three seconds", 429, 0, field, hint, heeds(Fail), "Retry-After: {imf+3}"),
		hinted("date-rfc850", "the same, with a date in the form of RFC 850", 503, 0, "RFC 9110, 5.6.7: recipients must accept all three forms", hint, heeds(Warn), "Retry-After: {rfc850+3}"),
		hinted("date-asctime", "the same, with a date in the form of asctime", 503, 0, "RFC 9110, 5.6.7: recipients must accept all three forms", hint, heeds(Warn), "Retry-After: {asctime+3}"),
		odd("past", "{imf-60}", oddHint, comesBack),
		odd("zero", "0", oddHint, comesBack),
		odd("negative", "-5", oddHint, comesBack),
		odd("fraction", "0.5", oddHint, comesBack),
		odd("words", "soon", oddHint, comesBack),
		odd("day", "86400", hugeHint, tooLong),
		overflow,
		hinted("twice", "answers with 503 and two fields, Retry-After: 1 and Retry-After: 2", 503, time.Second, "RFC 9110, 5.3: the field is not a list; waiting for either will do", hint, heeds(Warn), "Retry-After: 1", "Retry-After: 2"),
		hinted("both", "answers with 429, Retry-After: 2 and a RateLimit field that would allow it at once", 429, 2*time.Second, "draft-ietf-httpapi-ratelimit-headers-10: Retry-After takes precedence", hint, heeds(Fail),
			"Retry-After: 2", `RateLimit: "default";r=0;t=0`),
		read("RateLimit", hinted("ratelimit", "answers with 429 and RateLimit: \"default\";r=0;t=2", 429, 2*time.Second, "draft-ietf-httpapi-ratelimit-headers-10", nil, nil,
			`RateLimit-Policy: "default";q=10;w=2`, `RateLimit: "default";r=0;t=2`)),
		read("X-RateLimit-Reset", hinted("x-ratelimit", "answers with 429, X-RateLimit-Remaining: 0 and an X-RateLimit-Reset in two to three seconds", 429, 0, "docs.github.com: rate limits for the REST API", nil, nil,
			"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: {epoch+3}")),
		read("retry-after-ms", hinted("ms", "answers with 503 and retry-after-ms: 2000", 503, 2*time.Second, "the SDKs of OpenAI, and Azure's services", nil, nil, "Retry-After-Ms: 2000")),
		hinted("404", "answers with 404 and Retry-After: 1", 404, time.Second, "RFC 9110, 15.5.5: the hint makes no failure of the server of it", once, rules{Pass: {sentOnce}, Warn: {sentAgain}, Fail: {didNotEnd}}, "Retry-After: 1"),
		hinted("413", "answers with 413 and Retry-After: 2", 413, 2*time.Second, "RFC 9110, 15.5.14: the client may try again after that time", hint, heeds(Fail), "Retry-After: 2"),
	}
	for i := range cases {
		if slices.Contains(waited, cases[i].Name) {
			cases[i].hidden, cases[i].stands = mayHideThatItReadsNoHint, true
		}
	}
	ok := hinted("200", "answers with 200 and Retry-After: 1", 200, 0, field, unrequested, rules{Pass: {tookTheAnswer}, Fail: {sentAgain, callFailed}}, "Retry-After: 1")
	moved := read("Retry-After of a redirect", hinted("301", "answers with 301 and Retry-After: 2", 301, 2*time.Second, "RFC 9110, 10.2.3: the minimum wait before the redirected request", nil, nil, "Retry-After: 2", "Location: ?moved"))
	moved.hidden, moved.stands = mayHideThatItReadsNoHint, true
	return append(cases, ok, moved)
}

func waitCases() []Case {
	const backoff = "AWS Builders' Library, Timeouts, retries and backoff with jitter"
	return []Case{
		{Name: "wait-first", Group: "waits", method: "GET", alone: true, plan: plan{calls: 60, fresh: true, every: 25 * time.Millisecond}, Does: "answers a GET with 503, and then with 200; sixty clients, one every 25 ms",
			Source: backoff, script: failing(503), judge: firstWait, hidden: mayHideThatThereWasNoWait, limit: 60 * time.Second,
			rules: rules{Pass: {waited}, Fail: {noWait}, NotApplicable: {tooFew, hedges}}},
		{Name: "wait-broken", Group: "waits", method: "GET", alone: true, plan: plan{calls: 60, fresh: true, every: 25 * time.Millisecond}, Does: "reads each GET and resets the connection; sixty clients, one every 25 ms",
			Source: backoff + "; RFC 9112, 9.3.1: connections can be closed at any time", script: []answer{{fault: faultReset}}, judge: brokenWait, hidden: mayHideThatNoRetryWaits, limit: 60 * time.Second,
			rules: rules{Pass: {waited}, Warn: {onlyFirstAtOnce}, Fail: {noWait}, NotApplicable: {tooFew, hedges}}},
		{Name: "wait-growth", Group: "waits", method: "GET", plan: plan{calls: 100, fresh: true, every: 20 * time.Millisecond}, Does: "answers every GET of a hundred clients with 503",
			Source: backoff + "; gRFC A6", script: []answer{{status: 503}}, judge: growth, hidden: mayHideThatTheyGrow, limit: 40 * time.Second,
			rules: rules{Pass: {grew}, Warn: {didNotGrow, noWait}, NotApplicable: {tooFew, oneRetry, hedges}}},
		{Name: "wait-cap", Group: "waits", method: "GET", plan: plan{calls: 200, fresh: true, every: 10 * time.Millisecond}, Does: "answers every GET of two hundred clients with 503, for forty seconds",
			Source: backoff + ": the cap must not end the jitter", script: []answer{{status: 503}}, judge: capped, hidden: mayHideThatTheLongestAreConstant, stands: true, limit: 40 * time.Second,
			rules: rules{Pass: {random}, Warn: {notRandom, noWait}, NotApplicable: {tooFew, stillGrows, didNotGrow, hedges}}},
		{Name: "wait-jitter", Group: "waits", method: "GET", alone: true, plan: plan{calls: 200, fresh: true, every: 10 * time.Millisecond}, Does: "answers a GET with 503, and then with 200; two hundred clients",
			Source: backoff + "; gRFC A6: ±20 %", script: failing(503), judge: jitter, hidden: mayHideThatNothingIsRandom,
			rules: rules{Pass: {random}, Warn: {notRandom, noWait}, NotApplicable: {tooFew, hedges}}},
		{Name: "wait-herd", Group: "waits", method: "GET", alone: true, plan: plan{calls: 120, fresh: true, rounds: 6}, Does: "fails twenty clients at the same moment with 503, six times",
			Source: backoff, script: []answer{{status: 503, gather: 20}, good}, judge: herd(20), hidden: mayDriveAHerdApart(20), limit: 60 * time.Second,
			rules: rules{Pass: {spread}, Warn: {together, noWait}, NotApplicable: {tooFew, sometimesTogether, hedges}}},
		{Name: "wait-refused", Group: "waits", method: "GET", door: doorPlain, doors: slices.Repeat([]arrival{arriveReset}, 20),
			Does: "resets twenty connections as soon as they are accepted", Source: "SRE book, Addressing Cascading Failures", script: []answer{good}, judge: fewConnections,
			rules: rules{Pass: {fewConnectionsMade}, Warn: {manyConnections, stillTried}}},
	}
}

func deadlineCases() []Case {
	const group = "deadlines"
	const source = "SRE book, Addressing Cascading Failures: deadlines; gRFC A6: the deadline covers all attempts"
	silent := []answer{{fault: faultSilent}}
	inItsTime := rules{Pass: {endedInTime}, Warn: {endedLate}, Fail: {reportedSuccess, didNotEnd}, NotApplicable: {nothingCame}}
	inAShareOfIt := rules{Pass: {endedInAShare}, Warn: {endedOverAShare}, Fail: {reportedSuccess, didNotEnd}, NotApplicable: {nothingCame}}
	notAfterwards := rules{Pass: {noneAfterwards}, Warn: {cameAfterwards}, NotApplicable: {nothingCame}}
	cases := []Case{
		{Name: "deadline-silent", Group: group, method: "GET", timeout: time.Second, Does: "does not answer; the call has one second", Source: source, script: silent, judge: inTime, rules: inItsTime},
		{Name: "deadline-cancel", Group: group, method: "GET", timeout: time.Second, Does: "does not answer; the call has one second",
			Source: source, script: silent, judge: cancelled, rules: rules{Pass: {cancelledIt}, Fail: {leftOpen, didNotEnd}, NotApplicable: {nothingCame}}},
		{Name: "deadline-attempts", Group: group, method: "GET", timeout: time.Second, Does: "does not answer; the call has one second", Source: source, script: silent, judge: wholeCall, rules: notAfterwards},
		{Name: "deadline-retries", Group: group, method: "GET", timeout: 2 * time.Second, Does: "answers every GET with 503; the call has two seconds", Source: source,
			script: []answer{{status: 503}}, judge: wholeCall, rules: notAfterwards},
		{Name: "deadline-share", Group: group, method: "GET", timeout: 5 * time.Second, Does: "does not answer; the call has five seconds", Source: source, script: silent, judge: inAShare, rules: inAShareOfIt, limit: time.Minute},
		{Name: "deadline-share-503", Group: group, method: "GET", timeout: 5 * time.Second, Does: "answers every GET with 503 after a second; the call has five seconds", Source: source,
			script: []answer{{status: 503, delay: time.Second}}, judge: inAShare, rules: inAShareOfIt, limit: time.Minute},
		{Name: "deadline-body", Group: group, method: "GET", timeout: 2 * time.Second, Does: "sends a body without an end, a byte at a time; the call has two seconds", Source: source,
			script: []answer{{status: 200, fault: faultTrickle}}, judge: inTime, rules: inItsTime},
		{Name: "deadline-hint", Group: group, method: "GET", timeout: 4 * time.Second, Does: "answers with 503 and Retry-After: 30; the call has four seconds",
			Source: "AWS SDKs, retry behaviour; gRFC A6", script: []answer{{status: 503, header: []string{"Retry-After: 30"}, wait: 30 * time.Second}, good}, judge: noSleep,
			rules: rules{Pass: {gaveUpAtOnce}, Warn: {slept, endedLate}, Fail: {cameTooEarly, didNotEnd}, NotApplicable: {ignoredHint, noRetries, nothingCame}}},
		{Name: "deadline-none", Group: group, method: "GET", Does: "does not answer; the caller has set no timeout",
			Source: "AWS Builders' Library: set a timeout on any remote call", script: silent, judge: ownTimeout, rules: rules{Pass: {gaveUp}, Warn: {stillWaited}}},
	}
	for i := range cases {
		c := &cases[i]
		if c.timeout > 0 {
			c.hidden, c.stands, c.longer = mayHideThatItIsInTime, true, true
		}
		if c.Name == "deadline-hint" {
			c.hidden = mayHideWhetherItSleeps
		}
	}
	return cases
}

func volumeCases() []Case {
	const budget = "SRE book, Handling Overload: a retry budget of 10 % for each client"
	return []Case{
		{Name: "volume-outage", Group: "volume", method: "GET", plan: plan{calls: 1000, every: 5 * time.Millisecond}, Does: "answers a thousand calls of one process with 503", Source: budget,
			script: []answer{{status: 503}}, judge: volume, rules: rules{Pass: {fewMore}, Warn: {manyMore}, NotApplicable: {noRetries}}, limit: 45 * time.Second},
		{Name: "volume-brown-out", Group: "volume", method: "GET", plan: plan{calls: 300, every: 10 * time.Millisecond}, Does: "answers a third of all requests with 503", Source: budget,
			script: []answer{{status: 503, share: 1. / 3}}, judge: brownOut, rules: rules{Pass: {atMostTwice}, Warn: {moreThanTwice}, NotApplicable: {noRetries}}, limit: 45 * time.Second},
		{Name: "volume-layers", Group: "volume", method: "GET", plan: plan{calls: 20, every: 50 * time.Millisecond, layers: 2}, Does: "is the last of three services that call each other with the client, and answers with 503",
			Source: "SRE book, Addressing Cascading Failures: retry at one level", script: []answer{{status: 503}}, judge: layered,
			rules: rules{Pass: {didNotMultiply}, Warn: {multiplied}, NotApplicable: {noRetries, oneAtATime}}, limit: 45 * time.Second, reported: true},
		{Name: "volume-breaker", Group: "volume", method: "GET", plan: plan{calls: 120, every: 50 * time.Millisecond}, Does: "answers all requests with 503, after 300 ms each, for six seconds",
			Source: "Nygard, Release It!, Circuit Breaker", script: []answer{{status: 503, delay: 300 * time.Millisecond}}, judge: sheds, rules: rules{Pass: {breaks}, NotApplicable: {noBreaker, tooFewCalls}}, hidden: mayHideABreaker, limit: 30 * time.Second, reported: true},
	}
}

func recoveryCases() []Case {
	outage := answer{status: 503, from: time.Second, until: 3 * time.Second}
	p := plan{calls: 400, every: 20 * time.Millisecond}
	return []Case{
		{Name: "recovery-back", Group: "recovery", method: "GET", plan: p, Does: "takes fifty calls a second, and answers with 503 from the first second to the third",
			Source: "Nygard, Release It!, Circuit Breaker: the half-open state", script: []answer{outage}, judge: back, rules: rules{Pass: {isBack}, Fail: {staysDown}, NotApplicable: {tooFewCalls}}, hidden: mayHideThatItIsBack, limit: 30 * time.Second, reported: true},
		{Name: "recovery-herd", Group: "recovery", method: "GET", plan: p, Does: "takes fifty calls a second, and answers with 503 from the first second to the third",
			Source: "Bronson et al., Metastable Failures in Distributed Systems (HotOS 2021)", script: []answer{outage}, judge: afterwards, rules: rules{Pass: {noCrowd}, Warn: {crowd}, NotApplicable: {noRetries}}, hidden: mayOnlyBeBusy, stands: true, limit: 30 * time.Second},
	}
}

// hedgedCall is the number of the call that is slow. Those before it show the client what is
// usual.
const hedgedCall = 120

func hedgingCases() []Case {
	const source = "Dean and Barroso, The Tail at Scale; gRFC A6 (hedging)"
	slow := answer{status: 200, delay: 3 * time.Second, only: hedgedCall + 1}
	const usual = 20 * time.Millisecond // longer than a busy machine adds
	p := plan{calls: hedgedCall + 1}
	return []Case{
		{Name: "hedge-get", Group: "hedging", method: "GET", plan: p, usual: usual, Does: "answers a hundred and twenty GETs after 20 ms each; then the first attempt of a GET after three seconds, and others at once",
			Source: source, script: []answer{slow, good}, judge: hedge, rules: rules{Pass: {hedgedWell}, Fail: {leftOpen, callFailed}, NotApplicable: {noHedge}}, hidden: mayHideAHedge, stands: true, longer: true},
		{Name: "hedge-post", Group: "hedging", method: "POST", body: 100, plan: p, usual: usual, Does: "the same with POST",
			Source: source, script: []answer{slow, good}, judge: hedgedPost, rules: rules{Pass: {sentOnce}, Fail: {hedgedPOST}, NotApplicable: {noHedge}}, hidden: mayHideAHedge, stands: true, longer: true},
		{Name: "hedge-slow", Group: "hedging", method: "GET", plan: plan{calls: 220, every: 20 * time.Millisecond}, usual: usual, Does: "takes fifty calls a second, and from the third second on answers all attempts after two seconds",
			Source: source, script: []answer{{status: 200, delay: 2 * time.Second, from: 2500 * time.Millisecond, until: time.Minute}}, judge: hedgedSlow,
			rules: rules{Pass: {didNotDouble}, Warn: {doubled}, NotApplicable: {noHedge, tooFewCalls}}},
	}
}

func connectionCases() []Case {
	const source = "RFC 9112, 9.3 (persistence)"
	onOne := rules{Pass: {oneConnection}, Warn: {newConnections}, NotApplicable: {oneAttempt}} // who reads the bodies of failures can
	return []Case{
		{Name: "connection-retries", Group: "connections", method: "GET", Does: "answers a GET twice with 503 and a small body, and then with 200",
			Source: source, script: failing(503, 503), judge: reuse, rules: onOne, hidden: mayOnlyBeBusy, stands: true},
		{Name: "connection-large", Group: "connections", method: "GET", Does: "answers a GET with 503 and a body of 32 KB, and then with 200",
			Source: source, script: []answer{{status: 503, body: 32 << 10}, good}, judge: reuse, rules: onOne, hidden: mayOnlyBeBusy, stands: true},
		{Name: "connection-calls", Group: "connections", method: "GET", plan: plan{calls: 10}, Does: "takes ten calls of one process, one after the other", Source: source,
			script: []answer{good}, judge: reuseByCalls, rules: rules{Pass: {fewForCalls}, Warn: {manyForCalls}}},
		{Name: "connection-close", Group: "connections", method: "GET", Does: "answers with 200 and Connection: close", Source: "RFC 9112, 9.6",
			script: []answer{{status: 200, header: []string{"Connection: close"}}}, judge: works, rules: mustWork, reported: true},
		{Name: "connection-storm", Group: "connections", method: "GET", door: doorTLS, plan: plan{calls: 20, together: true}, Does: "answers twenty calls of one process over TLS, all at once, twice with 503",
			Source: source, script: failing(503, 503), judge: handshakes, rules: rules{Pass: {fewHandshakes}, Warn: {manyHandshakes}, NotApplicable: {nothingCame}}, hidden: mayOnlyBeBusy, stands: true, limit: 40 * time.Second},
		{Name: "connection-tls", Group: "connections", method: "GET", door: doorTLS, Does: "answers with 200, over TLS", Source: "RFC 9110, 4.3.4", script: []answer{good}, judge: overTLS, rules: mustWork.and(rules{NotApplicable: {unknownCA}}), reported: true},
	}
}

func keyCases() []Case {
	const source = "draft-ietf-httpapi-idempotency-key-header-06, 2"
	key := func(name, does string, judge func(*Seen) finding, r rules, script ...answer) Case {
		return Case{Name: "key-" + name, Group: "keys", method: "POST", body: 100, key: true, Does: does, Source: source, script: append(script, good), judge: judge, rules: r}
	}
	same := rules{Pass: {sameKeys, sentOnce}, Fail: {severalKeys}, NotApplicable: {noKey, noRetries}}
	own := key("own", "answers two POSTs to which the caller gave no key with 503, and then with 200", ownKeys,
		rules{Pass: {keyForEach}, Fail: {severalKeys, sharedKey}, NotApplicable: {noKey, nothingCame}}, answer{status: 503})
	own.key, own.plan = false, plan{calls: 2}
	return []Case{
		key("503", "answers a POST with a key twice with 503", sameKey, same, answer{status: 503}, answer{status: 503}),
		key("reset", "reads a POST with a key and resets the connection", sameKey, same, answer{fault: faultReset}),
		key("429", "answers a POST with a key with 429 and Retry-After: 1", sameKey, same, answer{status: 429, header: []string{"Retry-After: 1"}, wait: time.Second}),
		key("409", "answers a POST with a key with 409: the first request is still at work", sameKey, same, answer{status: 409}),
		key("422", "answers a POST with a key with 422: the key was used with another body", once, rules{Pass: {sentOnce}, Fail: {sentAgain, didNotEnd}}, answer{status: 422}),
		own,
	}
}
