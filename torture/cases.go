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

func statusCases() []Case {
	get := func(status int, expected bool, right, source string) Case {
		return Case{
			Name: "status-" + strconv.Itoa(status), Group: "statuses", method: "GET",
			Does:  fmt.Sprintf("answers a GET with %d, and then with 200", status),
			Right: right, Source: source, script: failing(status), judge: repeated(expected), hidden: mayOnlyBeBusy(repeated(expected)), stands: true,
		}
	}
	const may, ought = "may repeat it; if it does, takes the 200", "repeats it, and takes the 200"
	cases := []Case{
		get(503, true, ought, "RFC 9110, 15.6.4; gRPC status UNAVAILABLE"),
		get(502, true, ought, "RFC 9110, 15.6.3; GEP-1731 lists 500, 502, 503 and 504"),
		get(504, true, ought, "RFC 9110, 15.6.5; GEP-1731"),
		get(429, true, "repeats it after a wait, or gives up", "RFC 6585, 4"),
		get(500, false, may, "RFC 9110, 15.6.1 with 9.2.2"),
		get(408, false, may, "RFC 9110, 15.5.9: the client may repeat the request"),
		get(425, false, may, "RFC 8470, 5.2: the client may repeat the request"),
		get(421, false, may, "RFC 9110, 15.5.20: may repeat it over another connection"),
		get(520, false, may+": an unknown 5xx is a 500", "RFC 9110, 15, third paragraph"),
	}
	for _, method := range []string{"PUT", "DELETE", "HEAD"} {
		c := Case{
			Name: "status-503-" + lower(method), Group: "statuses", method: method,
			Does:  "answers a " + method + " with 503, and then with 200",
			Right: "may repeat it: the method is idempotent", Source: sourceMethods,
			script: failing(503), judge: repeated(false),
		}
		if method == "PUT" {
			c.body = 200
		}
		cases = append(cases, c)
	}
	return append(cases,
		Case{Name: "status-mixed", Group: "statuses", method: "GET", Does: "answers a GET with 503, then 502, then 200",
			Right: "may repeat it twice", Source: sourceMethods, script: failing(503, 502), judge: repeated(false)},
		Case{Name: "status-always", Group: "statuses", method: "GET", Does: "answers every GET with 503",
			Right:  "gives up after a few attempts, and reports the failure",
			Source: "RFC 9110, 9.2.2; SRE book, Handling Overload: three attempts a request", script: []answer{{status: 503}}, judge: bounded},
		Case{Name: "status-early-hints", Group: "statuses", method: "GET", Does: "sends 103 before its 200",
			Right: "takes the 200", Source: "RFC 9110, 15.2: a client must be able to parse 1xx", script: []answer{{status: 200, fault: faultHints}}, judge: works, reported: true},
	)
}

func lower(method string) string {
	return map[string]string{"PUT": "put", "DELETE": "delete", "HEAD": "head", "POST": "post", "PATCH": "patch", "GET": "get"}[method]
}

func brokenCases() []Case {
	const group = "connections that break"
	broken := func(name, does string, f fault, expected bool, source string) Case {
		return Case{Name: "broken-" + name, Group: group, method: "GET", Does: does + ", and answers the next attempt with 200",
			Right: "may repeat the GET, and never takes the broken answer for a good one", Source: source,
			script: []answer{{fault: f}, good}, judge: repeated(expected), hidden: mayOnlyBeBusy(repeated(expected)), stands: true}
	}
	const nine = "RFC 9112, 9.5: a client may repeat idempotent requests of a connection that was closed"
	const incomplete = "RFC 9112, 8: an incomplete response"
	cases := []Case{
		broken("reset", "reads a GET and resets the connection", faultReset, true, nine),
		broken("close", "reads a GET and closes the connection", faultClose, true, nine),
		broken("in-status", "resets the connection within the status line", faultInStatus, false, nine),
		broken("in-header", "closes the connection within the header", faultInHeader, false, incomplete),
		broken("garbage", "answers with bytes that are no HTTP", faultGarbage, false, "RFC 9112, 4"),
	}
	for _, c := range []Case{
		broken("after-header", "resets the connection after the header", faultAfterHeader, false, incomplete),
		broken("body", "closes the connection in the middle of a body of known length", faultCutBody, false, incomplete),
		broken("chunk", "closes the connection in the middle of a chunked body", faultCutChunk, false, incomplete),
	} {
		c.Right = "does not report success with half an answer; it may repeat the GET"
		c.judge, c.reported, c.hidden = cutOff, true, nil
		cases = append(cases, c)
	}
	accept := func(name, does string, d door, a arrival) Case {
		return Case{Name: "broken-" + name, Group: group, method: "GET", door: d, doors: []arrival{a}, Does: does + "; the next one is good",
			Right: "connects again: the request was not answered, and may be repeated", Source: nine, script: []answer{good}, judge: connectsAgain, hidden: mayOnlyBeBusy(connectsAgain), stands: true}
	}
	cases = append(cases,
		accept("accept-reset", "resets the first connection as soon as it is accepted", doorPlain, arriveReset),
		accept("accept-close", "closes the first connection as soon as it is accepted", doorPlain, arriveClose),
		accept("handshake", "resets the first connection within the handshake of TLS", doorTLS, arriveHello),
		Case{Name: "broken-idle", Group: group, method: "GET", plan: plan{calls: 2}, Does: "answers a GET, and resets the connection when the next GET comes on it",
			Right: "repeats the GET on a new connection: idle connections may be closed at any time", Source: "RFC 9112, 9.5 and 9.3.1",
			script: []answer{{status: 200, fault: faultIdle}}, judge: idle, hidden: mayHideAnIdleConnection, stands: true},
		Case{Name: "broken-refused", Group: group, method: "GET", door: doorClosed, Does: "does not listen", script: []answer{good},
			Right: "reports the failure after a few attempts", Source: "SRE book, Addressing Cascading Failures: limit retries a request", judge: failsSafely, reported: true},
	)
	frames := func(name, does, method string, f fault, right string, source string, judge func(*Seen) Verdict) Case {
		c := Case{Name: "h2-" + name, Group: group, method: method, door: doorFrames, Does: does, Right: right, Source: source,
			script: []answer{{fault: f}, good}, judge: overHTTP2(judge), hidden: mayOnlyBeBusy(overHTTP2(judge)), stands: true}
		if method == "POST" {
			c.body = 100
		}
		return c
	}
	const safe = "RFC 9113, 8.7: REFUSED_STREAM and a lower last stream guarantee that the request was not processed"
	cases = append(cases,
		frames("refused", "refuses the stream of a GET (REFUSED_STREAM), and takes the next", "GET", frameRefuse, "repeats it: it was not processed", safe, repeatedHTTP2(true)),
		frames("refused-post", "refuses the stream of a POST (REFUSED_STREAM), and takes the next", "POST", frameRefuse, "may repeat even a POST: it was not processed", safe, repeatedHTTP2(false)),
		frames("goaway", "answers a GET with GOAWAY whose last stream is 0, and takes the next connection", "GET", frameGoaway, "repeats it on another connection: it was not processed", safe, repeatedHTTP2(true)),
		frames("goaway-post", "answers a POST with GOAWAY whose last stream is 0", "POST", frameGoaway, "may repeat even a POST: it was not processed", safe, repeatedHTTP2(false)),
		frames("internal", "resets the stream of a GET (INTERNAL_ERROR), and takes the next", "GET", frameInternal, "may repeat it: GET is idempotent", sourceMethods, repeatedHTTP2(false)),
	)
	for _, c := range []struct {
		name string
		d    door
		does string
	}{
		{"wrong-name", doorWrong, "for another name"}, {"expired", doorExpired, "that has expired"}, {"unknown", doorUnknown, "that nobody known has signed"},
	} {
		cases = append(cases, Case{Name: "tls-" + c.name, Group: group, method: "GET", door: c.d, Does: "shows a certificate " + c.does,
			Right: "sends nothing, and does not try again", Source: "RFC 9110, 4.3.4; RFC 9325, 6.1", script: []answer{good}, judge: untrusted})
	}
	return cases
}

func forbiddenCases() []Case {
	const group = "must not be repeated"
	var cases []Case
	unsafe := func(name, method, does string, a answer, more Grade, source string) {
		cases = append(cases, Case{Name: "once-" + name, Group: group, method: method, body: 100, Does: does + ", and would answer the next with 200",
			Right: "does not repeat it: nothing shows that it was not carried out", Source: source, script: []answer{a, good}, judge: onceWithoutKey(more)})
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
		Does: "reads a POST without a key and does not answer; the call has three seconds", Right: "does not repeat it: it may be carried out yet",
		Source: not, script: []answer{{fault: faultSilent}}, judge: onceWithoutKey(Fail), stands: true, longer: true}
	c.hidden = mayHideThatItIsInTime(c.judge)
	cases = append(cases, c)

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
			Right: "does not repeat it", Source: s.source, script: failing(s.status), judge: once(s.more)})
	}
	vendor := func(name, header, who, source string) {
		cases = append(cases, Case{Name: "once-" + name, Group: group, method: "GET", Does: "answers a GET with 503 and " + header + ", and would answer the next with 200",
			Right: "does not repeat it, if it reads the header", Source: source, script: []answer{{status: 503, header: []string{header}}, good}, judge: dontRetry(who)})
	}
	vendor("should-retry", "X-Should-Retry: false", "X-Should-Retry", "the SDKs of OpenAI and Anthropic (Stainless)")
	vendor("stripe-should-retry", "Stripe-Should-Retry: false", "Stripe-Should-Retry", "docs.stripe.com/error-low-level")
	vendor("grpc-pushback", "Grpc-Retry-Pushback-Ms: -1", "Grpc-Retry-Pushback-Ms", "gRFC A6: a negative pushback asks for no retry")
	cases = append(cases,
		Case{Name: "once-h2-internal-post", Group: group, method: "POST", body: 100, door: doorFrames, Does: "reads a POST and resets its stream (INTERNAL_ERROR)",
			Right: "does not repeat it", Source: not, script: []answer{{fault: frameInternal}, good}, judge: overHTTP2(once(Fail))},
		Case{Name: "once-h2-goaway-post", Group: group, method: "POST", body: 100, door: doorFrames, Does: "reads a POST, and closes the connection with a GOAWAY that counts it among the processed",
			Right: "does not repeat it", Source: "RFC 9113, 6.8: such a request may have been processed", script: []answer{{fault: frameProcessed}, good}, judge: overHTTP2(once(Fail))},
		Case{Name: "once-success", Group: group, method: "POST", body: 100, Does: "answers a POST with 200", Right: "sends it once", Source: not, script: []answer{good}, judge: once(Fail)},
	)
	return cases
}

func bodyCases() []Case {
	body := func(name, method, does string, size int, key bool, script ...answer) Case {
		return Case{Name: "body-" + name, Group: "bodies", method: method, key: key, body: size, Does: does,
			Right: "sends the same bytes in each attempt", Source: "RFC 9110, 9.2.2: the request is repeated, not another one", script: append(script, good), judge: sameBodies}
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
	hinted := func(name, does string, status int, wait time.Duration, source string, judge func(*Seen) Verdict, header ...string) Case {
		return Case{Name: "hint-" + name, Group: "hints", method: "GET", Does: does, Right: "does not come back earlier", Source: source,
			script: []answer{{status: status, header: header, wait: wait}, good}, judge: judge}
	}
	odd := func(name, value, right string, judge func(*Seen) Verdict, grade string) Case {
		c := hinted(name, "answers with 503 and Retry-After: "+value, 503, 0, field, judge, "Retry-After: "+value)
		c.Right = right
		return c
	}
	// A busy machine can be why a client seems to have waited.
	waited := []string{"hint-seconds-503", "hint-seconds-429", "hint-date", "hint-date-429", "hint-date-rfc850", "hint-date-asctime", "hint-twice", "hint-both",
		"hint-ratelimit", "hint-x-ratelimit", "hint-ms", "hint-413"}
	overflow := odd("overflow", "99999999999999999999", "gives up, or takes the value for malformed; it does not come back at once", overflowHint, "")
	overflow.Does += "; forty clients" // one that came back soon could have drawn a short wait
	overflow.plan = plan{calls: 40, fresh: true, every: 25 * time.Millisecond}
	overflow.hidden, overflow.stands = mayHideAnOverflow, true
	base := hinted("seconds-503", "answers with 503 and Retry-After: 2", 503, 2*time.Second, field, hint(Warn), "Retry-After: 2")
	cases := []Case{
		base,
		hinted("seconds-429", "answers with 429 and Retry-After: 2", 429, 2*time.Second, "RFC 6585, 4", hint(Fail), "Retry-After: 2"),
		hinted("date", "answers with 503 and a Retry-After that is a date in two to three seconds", 503, 0, field, hint(Fail), "Retry-After: {imf+3}"),
		hinted("date-429", "answers with 429 and a Retry-After that is a date in two to three seconds", 429, 0, field, hint(Fail), "Retry-After: {imf+3}"),
		hinted("date-rfc850", "the same, with a date in the form of RFC 850", 503, 0, "RFC 9110, 5.6.7: recipients must accept all three forms", hint(Warn), "Retry-After: {rfc850+3}"),
		hinted("date-asctime", "the same, with a date in the form of asctime", 503, 0, "RFC 9110, 5.6.7: recipients must accept all three forms", hint(Warn), "Retry-After: {asctime+3}"),
		odd("past", "{imf-60}", "comes back as without it", oddHint, ""),
		odd("zero", "0", "comes back as without it, or at once", oddHint, ""),
		odd("negative", "-5", "comes back as without it: the value is malformed", oddHint, ""),
		odd("fraction", "0.5", "comes back as without it, or after that time: the value is malformed", oddHint, ""),
		odd("words", "soon", "comes back as without it: the value is malformed", oddHint, ""),
		odd("day", "86400", "gives up: it does not come back earlier, and does not wait for a day", hugeHint, ""),
		overflow,
		hinted("twice", "answers with 503 and two fields, Retry-After: 1 and Retry-After: 2", 503, time.Second, "RFC 9110, 5.3: the field is not a list; waiting for either will do", hint(Warn), "Retry-After: 1", "Retry-After: 2"),
		hinted("both", "answers with 429, Retry-After: 2 and a RateLimit field that would allow it at once", 429, 2*time.Second, "draft-ietf-httpapi-ratelimit-headers-10: Retry-After takes precedence", hint(Fail),
			"Retry-After: 2", `RateLimit: "default";r=0;t=0`),
		hinted("ratelimit", "answers with 429 and RateLimit: \"default\";r=0;t=2", 429, 2*time.Second, "draft-ietf-httpapi-ratelimit-headers-10", dialect("RateLimit"),
			`RateLimit-Policy: "default";q=10;w=2`, `RateLimit: "default";r=0;t=2`),
		hinted("x-ratelimit", "answers with 429, X-RateLimit-Remaining: 0 and an X-RateLimit-Reset in two to three seconds", 429, 0, "docs.github.com: rate limits for the REST API", dialect("X-RateLimit-Reset"),
			"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: {epoch+3}"),
		hinted("ms", "answers with 503 and retry-after-ms: 2000", 503, 2*time.Second, "the SDKs of OpenAI, and Azure's services", dialect("retry-after-ms"), "Retry-After-Ms: 2000"),
		hinted("404", "answers with 404 and Retry-After: 1", 404, time.Second, "RFC 9110, 15.5.5: the hint makes no failure of the server of it", once(Warn), "Retry-After: 1"),
		hinted("413", "answers with 413 and Retry-After: 2", 413, 2*time.Second, "RFC 9110, 15.5.14: the client may try again after that time", hint(Fail), "Retry-After: 2"),
	}
	for i := range cases {
		if slices.Contains(waited, cases[i].Name) {
			cases[i].hidden, cases[i].stands = mayHideThatItReadsNoHint, true
		}
	}
	ok := hinted("200", "answers with 200 and Retry-After: 1", 200, 0, field, unrequested, "Retry-After: 1")
	ok.Right = "takes the answer"
	moved := hinted("301", "answers with 301 and Retry-After: 2", 301, 2*time.Second, "RFC 9110, 10.2.3: the minimum wait before the redirected request", dialect("Retry-After of a redirect"), "Retry-After: 2", "Location: ?moved")
	moved.Right = "may wait before it follows"
	moved.hidden, moved.stands = mayHideThatItReadsNoHint, true
	return append(cases, ok, moved)
}

func waitCases() []Case {
	const backoff = "AWS Builders' Library, Timeouts, retries and backoff with jitter"
	return []Case{
		{Name: "wait-first", Group: "waits", method: "GET", alone: true, plan: plan{calls: 60, fresh: true, every: 25 * time.Millisecond}, Does: "answers a GET with 503, and then with 200; sixty clients, one every 25 ms",
			Right: "waits before it repeats the request", Source: backoff, script: failing(503), judge: firstWait, hidden: mayHideThatThereWasNoWait, limit: 60 * time.Second},
		{Name: "wait-growth", Group: "waits", method: "GET", plan: plan{calls: 100, fresh: true, every: 20 * time.Millisecond}, Does: "answers every GET of a hundred clients with 503",
			Right: "waits longer before each further retry", Source: backoff + "; gRFC A6", script: []answer{{status: 503}}, judge: growth, hidden: mayHideThatTheyGrow, limit: 40 * time.Second},
		{Name: "wait-cap", Group: "waits", method: "GET", plan: plan{calls: 200, fresh: true, every: 10 * time.Millisecond}, Does: "answers every GET of two hundred clients with 503, for forty seconds",
			Right: "draws its waits at random, also where they have reached their longest", Source: backoff + ": the cap must not end the jitter", script: []answer{{status: 503}}, judge: capped, hidden: mayHideThatTheLongestAreConstant, stands: true, limit: 40 * time.Second},
		{Name: "wait-jitter", Group: "waits", method: "GET", alone: true, plan: plan{calls: 200, fresh: true, every: 10 * time.Millisecond}, Does: "answers a GET with 503, and then with 200; two hundred clients",
			Right: "draws its waits at random", Source: backoff + "; gRFC A6: ±20 %", script: failing(503), judge: jitter, hidden: mayHideThatNothingIsRandom},
		{Name: "wait-herd", Group: "waits", method: "GET", alone: true, plan: plan{calls: 120, fresh: true, rounds: 6}, Does: "fails twenty clients at the same moment with 503, six times",
			Right: "spreads the retries", Source: backoff, script: []answer{{status: 503, gather: 20}, good}, judge: herd(20), hidden: mayDriveAHerdApart(20), limit: 60 * time.Second},
		{Name: "wait-refused", Group: "waits", method: "GET", door: doorPlain, doors: []arrival{arriveReset, arriveReset, arriveReset, arriveReset, arriveReset, arriveReset, arriveReset, arriveReset, arriveReset, arriveReset, arriveReset, arriveReset, arriveReset, arriveReset, arriveReset, arriveReset, arriveReset, arriveReset, arriveReset, arriveReset},
			Does: "resets twenty connections as soon as they are accepted", Right: "gives up after a few attempts", Source: "SRE book, Addressing Cascading Failures", script: []answer{good}, judge: fewConnections},
	}
}

func deadlineCases() []Case {
	const group = "deadlines"
	const source = "SRE book, Addressing Cascading Failures: deadlines; gRFC A6: the deadline covers all attempts"
	silent := []answer{{fault: faultSilent}}
	cases := []Case{
		{Name: "deadline-silent", Group: group, method: "GET", timeout: time.Second, Does: "does not answer; the call has one second", Right: "ends when its time is up", Source: source, script: silent, judge: inTime},
		{Name: "deadline-cancel", Group: group, method: "GET", timeout: time.Second, Does: "does not answer; the call has one second", Right: "cancels the attempt, so that the server learns that nobody waits",
			Source: source, script: silent, judge: cancelled},
		{Name: "deadline-attempts", Group: group, method: "GET", timeout: time.Second, Does: "does not answer; the call has one second", Right: "makes no attempt after that", Source: source, script: silent, judge: wholeCall},
		{Name: "deadline-retries", Group: group, method: "GET", timeout: 2 * time.Second, Does: "answers every GET with 503; the call has two seconds", Right: "makes no attempt after that", Source: source,
			script: []answer{{status: 503}}, judge: wholeCall},
		{Name: "deadline-body", Group: group, method: "GET", timeout: 2 * time.Second, Does: "sends a body without an end, a byte at a time; the call has two seconds", Right: "ends when its time is up", Source: source,
			script: []answer{{status: 200, fault: faultTrickle}}, judge: inTime},
		{Name: "deadline-hint", Group: group, method: "GET", timeout: 4 * time.Second, Does: "answers with 503 and Retry-After: 30; the call has four seconds", Right: "gives up at once: the retry would come too late",
			Source: "AWS SDKs, retry behaviour; gRFC A6", script: []answer{{status: 503, header: []string{"Retry-After: 30"}, wait: 30 * time.Second}, good}, judge: noSleep},
		{Name: "deadline-none", Group: group, method: "GET", Does: "does not answer; the caller has set no timeout", Right: "has a timeout of its own",
			Source: "AWS Builders' Library: set a timeout on any remote call", script: silent, judge: ownTimeout},
	}
	for i := range cases {
		c := &cases[i]
		if c.timeout > 0 {
			c.hidden, c.stands, c.longer = mayHideThatItIsInTime(c.judge), true, true
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
		{Name: "volume-outage", Group: "volume", method: "GET", plan: plan{calls: 1000, every: 5 * time.Millisecond}, Does: "answers a thousand calls of one process with 503", Right: "makes few attempts more than calls",
			Source: budget, script: []answer{{status: 503}}, judge: volume(1.3), limit: 45 * time.Second},
		{Name: "volume-brown-out", Group: "volume", method: "GET", plan: plan{calls: 300, every: 10 * time.Millisecond}, Does: "answers a third of all requests with 503", Right: "makes at most twice as many attempts as calls",
			Source: budget, script: []answer{{status: 503, share: 1. / 3}}, judge: brownOut, limit: 45 * time.Second},
		{Name: "volume-layers", Group: "volume", method: "GET", plan: plan{calls: 20, every: 50 * time.Millisecond, layers: 2}, Does: "is the last of three services that call each other with the client, and answers with 503",
			Right: "does not multiply the attempts", Source: "SRE book, Addressing Cascading Failures: retry at one level", script: []answer{{status: 503}}, judge: layered, limit: 45 * time.Second, reported: true},
		{Name: "volume-breaker", Group: "volume", method: "GET", plan: plan{calls: 120, every: 50 * time.Millisecond}, Does: "answers all requests with 503, after 300 ms each, for six seconds", Right: "stops asking, if it has a circuit breaker",
			Source: "Nygard, Release It!, Circuit Breaker", script: []answer{{status: 503, delay: 300 * time.Millisecond}}, judge: sheds, hidden: mayHideABreaker, limit: 30 * time.Second, reported: true},
	}
}

func recoveryCases() []Case {
	outage := answer{status: 503, from: time.Second, until: 3 * time.Second}
	p := plan{calls: 400, every: 20 * time.Millisecond}
	return []Case{
		{Name: "recovery-back", Group: "recovery", method: "GET", plan: p, Does: "takes fifty calls a second, and answers with 503 from the first second to the third", Right: "lets calls succeed again, three seconds after the end at the latest",
			Source: "Nygard, Release It!, Circuit Breaker: the half-open state", script: []answer{outage}, judge: back, hidden: mayHideThatItIsBack, limit: 30 * time.Second, reported: true},
		{Name: "recovery-herd", Group: "recovery", method: "GET", plan: p, Does: "takes fifty calls a second, and answers with 503 from the first second to the third", Right: "does not come back with a herd of retries",
			Source: "Bronson et al., Metastable Failures in Distributed Systems (HotOS 2021)", script: []answer{outage}, judge: afterwards, hidden: mayOnlyBeBusy(afterwards), stands: true, limit: 30 * time.Second},
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
		{Name: "hedge-get", Group: "hedging", method: "GET", plan: p, usual: usual, Does: "answers a hundred and twenty GETs after 20 ms each; then the first attempt of a GET after three seconds, and others at once", Right: "if it sends a second one meanwhile, cancels the one that lost",
			Source: source, script: []answer{slow, good}, judge: hedge, hidden: mayHideAHedge, stands: true, longer: true},
		{Name: "hedge-post", Group: "hedging", method: "POST", body: 100, plan: p, usual: usual, Does: "the same with POST", Right: "sends no second one meanwhile",
			Source: source, script: []answer{slow, good}, judge: hedgedPost, hidden: mayHideAHedge, stands: true, longer: true},
		{Name: "hedge-slow", Group: "hedging", method: "GET", plan: plan{calls: 220, every: 20 * time.Millisecond}, usual: usual, Does: "takes fifty calls a second, and from the third second on answers all attempts after two seconds", Right: "does not double the load of a server that is slow",
			Source: source, script: []answer{{status: 200, delay: 2 * time.Second, from: 2500 * time.Millisecond, until: time.Minute}}, judge: hedgedSlow},
	}
}

func connectionCases() []Case {
	const source = "RFC 9112, 9.3 (persistence)"
	return []Case{
		{Name: "connection-retries", Group: "connections", method: "GET", Does: "answers a GET twice with 503 and a small body, and then with 200", Right: "uses one connection: it reads the bodies of failures",
			Source: source, script: failing(503, 503), judge: reuse, hidden: mayOnlyBeBusy(reuse), stands: true},
		{Name: "connection-large", Group: "connections", method: "GET", Does: "answers a GET with 503 and a body of 32 KB, and then with 200", Right: "uses one connection: it reads the bodies of failures",
			Source: source, script: []answer{{status: 503, body: 32 << 10}, good}, judge: reuse, hidden: mayOnlyBeBusy(reuse), stands: true},
		{Name: "connection-calls", Group: "connections", method: "GET", plan: plan{calls: 10}, Does: "takes ten calls of one process, one after the other", Right: "uses one connection", Source: source,
			script: []answer{good}, judge: reuseByCalls},
		{Name: "connection-close", Group: "connections", method: "GET", Does: "answers with 200 and Connection: close", Right: "takes the answer", Source: "RFC 9112, 9.6",
			script: []answer{{status: 200, header: []string{"Connection: close"}}}, judge: works, reported: true},
		{Name: "connection-storm", Group: "connections", method: "GET", door: doorTLS, plan: plan{calls: 20, together: true}, Does: "answers twenty calls of one process over TLS, all at once, twice with 503", Right: "keeps connections for the retries: at most half of them need a new handshake",
			Source: source, script: failing(503, 503), judge: handshakes, hidden: mayOnlyBeBusy(handshakes), stands: true, limit: 40 * time.Second},
		{Name: "connection-tls", Group: "connections", method: "GET", door: doorTLS, Does: "answers with 200, over TLS", Right: "takes the answer", Source: "RFC 9110, 4.3.4", script: []answer{good}, judge: overTLS, reported: true},
	}
}

func keyCases() []Case {
	const source = "draft-ietf-httpapi-idempotency-key-header-06, 2"
	key := func(name, does, right string, judge func(*Seen) Verdict, script ...answer) Case {
		return Case{Name: "key-" + name, Group: "keys", method: "POST", body: 100, key: true, Does: does, Right: right, Source: source, script: append(script, good), judge: judge}
	}
	const same = "may repeat it, with the same key"
	own := key("own", "answers two POSTs to which the caller gave no key with 503, and then with 200", "if it makes keys itself: one for all attempts of a call, another for the next", ownKeys, answer{status: 503})
	own.key, own.plan = false, plan{calls: 2}
	return []Case{
		key("503", "answers a POST with a key twice with 503", same, sameKey, answer{status: 503}, answer{status: 503}),
		key("reset", "reads a POST with a key and resets the connection", same, sameKey, answer{fault: faultReset}),
		key("429", "answers a POST with a key with 429 and Retry-After: 1", same, sameKey, answer{status: 429, header: []string{"Retry-After: 1"}, wait: time.Second}),
		key("409", "answers a POST with a key with 409: the first request is still at work", "may come back with the same key, or gives up", sameKey, answer{status: 409}),
		key("422", "answers a POST with a key with 422: the key was used with another body", "does not repeat it", once(Fail), answer{status: 422}),
		own,
	}
}
