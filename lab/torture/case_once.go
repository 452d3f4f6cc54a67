package torture

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/lullgo/lull/lab/torture/internal/words"
)

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

// What clients do in these cases.
const (
	sentOnce  outcome = "sends it once"
	sentAgain outcome = "sends it again"
	ownKey    outcome = "sends it again with an Idempotency-Key that it made and that all attempts share"
)

// once is the judge of what must come once.
func once(s *Seen) finding { return s.onceOf(0) }

// onceOf is once for one of the calls.
func (s *Seen) onceOf(call int) finding {
	n := len(s.of(call))
	switch {
	case n > 1:
		return did(sentAgain, "%s", words.Plural(n, "attempt"))
	case call >= len(s.Finished) || s.Finished[call].Ended != "":
		return did(didNotEnd, "it had not ended after %s", words.Rounded(s.Took))
	}
	return did(sentOnce, "one attempt")
}

// onceWithoutKey is once for requests that a key of the client's own makes repeatable.
func onceWithoutKey(s *Seen) finding { return s.onceWithoutKeyOf(0) }

func (s *Seen) onceWithoutKeyOf(call int) finding {
	f := s.onceOf(call)
	if keys := keysOf(s.of(call)); f.outcome == sentAgain && len(keys) == 1 && keys[0] != "" {
		return did(ownKey, "%s, with a key that the client made: %s", f.why, keys[0])
	}
	return f
}

// dontRetry is the judge of a vendor's way to ask for no retry.
func dontRetry(s *Seen) finding {
	n := len(s.first())
	switch {
	case n > 1:
		return did(repeatedUnread, "%s: the client does not read %s", words.Plural(n, "attempt"), s.Case.field)
	case !s.retries:
		return did(noRetries, "one attempt: the client makes no retries")
	}
	return did(sentOnce, "one attempt")
}

// idleOnce is the judge of a request that was read whole on a connection that had been idle, and must come once.
func idleOnce(s *Seen) finding {
	if f, ok := s.notIdle(); ok {
		return f
	}
	return s.onceWithoutKeyOf(1)
}
