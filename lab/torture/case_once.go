package torture

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/lullgo/lull/lab/torture/internal/words"
)

const sourceNotAgain = "RFC 9110, 9.2.2: a client should not automatically retry a request with a non-idempotent method"

// onlyOnce are the rules of what must come once; more is the grade of those who repeat it.
func onlyOnce(more Grade) rules {
	return rules{Pass: {sentOnce}, Fail: {didNotEnd}}.and(rules{more: {sentAgain}})
}

func onceCases() []Case {
	const their = "RFC 9110, 15.5: the client seems to have erred; the same request gets the same answer"
	withoutKey := func(more Grade) rules { return onlyOnce(more).and(rules{Pass: {ownKey}}) }
	unsafe := func(name, method, does string, a answer, more Grade, source string) Case {
		return Case{Name: "once-" + name, Does: does + ", and would answer the next with 200", Source: source, method: method, body: 100,
			script: []answer{a, good}, judge: onceWithoutKey, rules: withoutKey(more)}
	}
	get := func(status int, more Grade, source string) Case {
		return Case{Name: "once-" + strconv.Itoa(status), Does: fmt.Sprintf("answers a GET with %d (%s), and would answer the next with 200", status, http.StatusText(status)), Source: source,
			script: failing(status), judge: once, rules: onlyOnce(more)}
	}
	vendor := func(name, field, value, source string) Case {
		return Case{Name: "once-" + name, Does: "answers a GET with 503 and " + field + ": " + value + ", and would answer the next with 200", Source: source,
			script: []answer{{status: 503, header: []string{field + ": " + value}}, good}, judge: dontRetry, field: field, rules: rules{Pass: {sentOnce}, NotApplicable: {repeatedUnread, noRetries}}}
	}
	return slices.Concat([]Case{
		unsafe("post-500", "POST", "answers a POST without a key with 500", answer{status: 500}, Fail, sourceNotAgain),
		unsafe("post-502", "POST", "answers a POST without a key with 502", answer{status: 502}, Fail, sourceNotAgain),
		unsafe("post-503", "POST", "answers a POST without a key with 503", answer{status: 503}, Fail, sourceNotAgain),
		unsafe("post-504", "POST", "answers a POST without a key with 504", answer{status: 504}, Fail, sourceNotAgain),
		unsafe("post-408", "POST", "answers a POST without a key with 408", answer{status: 408}, Warn, "RFC 9110, 15.5.9 with 9.2.2"),
		unsafe("patch-503", "PATCH", "answers a PATCH without a key with 503", answer{status: 503}, Fail, sourceNotAgain),
		unsafe("post-reset", "POST", "reads a POST without a key and resets the connection", answer{fault: faultReset}, Fail, sourceNotAgain),
		unsafe("post-close", "POST", "reads a POST without a key and closes the connection", answer{fault: faultClose}, Fail, sourceNotAgain),
		unsafe("post-in-header", "POST", "reads a POST without a key and breaks off within the header of its answer", answer{fault: faultInHeader}, Fail, sourceNotAgain),
		unsafe("post-body", "POST", "reads a POST without a key and breaks off within the body of its answer", answer{fault: faultCutBody}, Fail, sourceNotAgain),
		{Name: "once-post-timeout", Does: "reads a POST without a key and does not answer; the call has three seconds", Source: sourceNotAgain, method: "POST", body: 100, timeout: 3 * time.Second,
			script: []answer{{fault: faultSilent}}, judge: onceWithoutKey, rules: withoutKey(Fail), maybeBusy: mayHideThatItIsInTime, judgedWhenBusy: true, retriedLonger: true},
		{Name: "once-post-idle", Does: "answers a POST without a key, reads the next one whole on the same connection, resets it, and would answer a third with 200", Source: sourceNotAgain,
			method: "POST", body: 100, plan: plan{calls: 2}, script: []answer{{status: 200, fault: faultIdle}}, exempt: (*Seen).notIdle, judge: idleOnce,
			rules: withoutKey(Fail).and(rules{NotApplicable: {ownConnection, nothingCame}}), maybeBusy: mayHideAnIdleConnection, judgedWhenBusy: true},
		get(400, Fail, their),
		get(401, Warn, "RFC 9110, 15.5.2: may be repeated with other credentials"),
		get(403, Fail, "RFC 9110, 15.5.4: should not be repeated with the same credentials"),
		get(404, Warn, their),
		get(405, Fail, their),
		get(406, Fail, their),
		get(409, Warn, "RFC 9110, 15.5.10: the user might resolve the conflict"),
		get(410, Fail, "RFC 9110, 15.5.11"),
		get(412, Warn, "RFC 9110, 15.5.13"),
		get(413, Fail, "RFC 9110, 15.5.14: may be tried again only if there is a Retry-After"),
		get(414, Fail, their),
		get(415, Fail, their),
		get(422, Fail, "RFC 9110, 15.5.21"),
		get(423, Warn, "RFC 4918, 11.3"),
		get(428, Fail, "RFC 6585, 3"),
		get(431, Warn, "RFC 6585, 5: may be sent again after the fields are made smaller"),
		get(451, Fail, "RFC 7725, 3"),
		get(501, Warn, "RFC 9110, 15.6.2: the method is not supported, which the next attempt does not change"),
		get(505, Warn, "RFC 9110, 15.6.6: the same of the version"),
		get(507, Fail, "RFC 4918, 11.5: must not be repeated until a user asks for it"),
		get(508, Warn, "RFC 5842, 7.2"),
		get(511, Warn, "RFC 6585, 6"),
		vendor("should-retry", "X-Should-Retry", "false", "the SDKs of OpenAI and Anthropic (Stainless)"),
		vendor("stripe-should-retry", "Stripe-Should-Retry", "false", "docs.stripe.com/error-low-level"),
		vendor("grpc-pushback", "Grpc-Retry-Pushback-Ms", "-1", "gRFC A6: a negative pushback asks for no retry"),
	}, http2OnceCases(), []Case{
		{Name: "once-success", Does: "answers a POST with 200", Source: sourceNotAgain, method: "POST", body: 100, script: []answer{good}, judge: once, rules: onlyOnce(Fail)},
	})
}

const (
	sentOnce       outcome = "sends it once"
	sentAgain      outcome = "sends it again"
	repeatedUnread outcome = "repeats it since it does not read that field"
	ownKey         outcome = "sends it again with an Idempotency-Key that it made and that all attempts share"
)

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
func idleOnce(s *Seen) finding { return s.onceWithoutKeyOf(1) }
