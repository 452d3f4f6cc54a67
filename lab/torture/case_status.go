package torture

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/lab/torture/internal/words"
)

const sourceMethods = "RFC 9110, 9.2.2 (idempotent methods)"

// mayRepeat are the rules of what a client may repeat, and need not; oughtToRepeat of what it ought to.
var (
	mayRepeat     = rules{Pass: {again, againInVain, single}, Fail: {reportedSuccess, lostTheAnswer, didNotEnd}, NotApplicable: {noRetries, couldNotUseIt}}
	oughtToRepeat = rules{Pass: {again, againInVain}, Warn: {single}, Fail: {reportedSuccess, lostTheAnswer, didNotEnd}, NotApplicable: {noRetries, couldNotUseIt}}
)

func statusCases() []Case {
	get := func(status int, r rules, source string) Case {
		return Case{Name: "status-" + strconv.Itoa(status), Does: fmt.Sprintf("answers a GET with %d, and then with 200", status), Source: source,
			script: failing(status), judge: repetition, rules: r, maybeBusy: mayOnlyBeBusy, judgedWhenBusy: true}
	}
	other := func(method string, body int) Case {
		return Case{Name: "status-503-" + strings.ToLower(method), Does: "answers a " + method + " with 503, and then with 200", Source: sourceMethods,
			method: method, body: body, script: failing(503), judge: repetition, rules: mayRepeat}
	}
	return []Case{
		get(503, oughtToRepeat, "RFC 9110, 15.6.4; gRPC status UNAVAILABLE"),
		get(502, oughtToRepeat, "RFC 9110, 15.6.3; GEP-1731 lists 500, 502, 503 and 504"),
		get(504, oughtToRepeat, "RFC 9110, 15.6.5; GEP-1731"),
		{Name: "status-429", Does: "answers a GET with 429, and then with 200; forty clients", Source: "RFC 6585, 4; AWS Builders' Library, Timeouts, retries and backoff with jitter",
			plan: fortyClients, script: failing(429), judge: repetitionAfterAWait, maybeBusy: mayHideThatThereWasNoWait, judgedWhenBusy: true,
			rules: rules{Pass: {again, againInVain, single}, Warn: {noWait}, Fail: mayRepeat[Fail], NotApplicable: {noRetries, couldNotUseIt, tooFew}}},
		get(500, mayRepeat, "RFC 9110, 15.6.1 with 9.2.2"),
		get(408, mayRepeat, "RFC 9110, 15.5.9: the client may repeat the request"),
		get(425, mayRepeat, "RFC 8470, 5.2: the client may repeat the request"),
		get(421, mayRepeat, "RFC 9110, 15.5.20: may repeat it over another connection"),
		get(520, mayRepeat, "RFC 9110, 15, third paragraph: an unknown 5xx is a 500"),
		other("PUT", 200),
		other("DELETE", 0),
		other("HEAD", 0),
		{Name: "status-mixed", Does: "answers a GET with 503, then 502, then 200", Source: sourceMethods, script: failing(503, 502), judge: repetition, rules: mayRepeat},
		{Name: "status-always", Does: "answers every GET with 503", Source: "RFC 9110, 9.2.2; SRE book, Handling Overload: three attempts a request",
			script: []answer{{status: 503}}, judge: bounded, rules: rules{Pass: {fewAttempts}, Warn: {manyAttempts, stillTried}, Fail: {reportedSuccess}}},
		{Name: "status-early-hints", Does: "sends 103 before its 200", Source: "RFC 9110, 15.2: a client must be able to parse 1xx",
			script: []answer{{status: 200, fault: faultHints}}, judge: works, rules: mustWork, onlyReported: true},
	}
}

// fortyClients are enough to see whether there is a wait: one that came back soon could have drawn a short one.
var fortyClients = plan{calls: 40, fresh: true, every: 25 * time.Millisecond}

var faultHints = &fault{name: "early-hints"}

func writeHints(w http.ResponseWriter) {
	w.Header().Set("Link", "</style.css>; rel=preload")
	w.WriteHeader(http.StatusEarlyHints)
	w.Header().Del("Link")
}

const (
	again         outcome = "repeats it and takes the 200"
	againInVain   outcome = "gives up after it has repeated it"
	single        outcome = "does not repeat it"
	lostTheAnswer outcome = "goes on after an attempt was answered with 200 and reports a failure"
	couldNotUseIt outcome = "cannot use the 200 of a server that is not of its own service"
	noWait        outcome = "repeats it without a wait"
	fewAttempts   outcome = "gives up after at most ten attempts"
	manyAttempts  outcome = "makes more than ten attempts"
)

// lost is the finding about a first call that failed although an attempt of it had a good answer. A client of one service
// may not be able to use the answer of another: only who goes on after it has lost it.
func (s *Seen) lost() finding {
	list, why := s.first(), words.Short(s.call().Text)
	if list[len(list)-1].Good {
		return did(couldNotUseIt, "%s, and the call failed although the last was answered with 200: %s", words.Plural(len(list), "attempt"), why)
	}
	return did(lostTheAnswer, "%s, and the call failed although one before the last was answered with 200: %s", words.Plural(len(list), "attempt"), why)
}

func repetition(s *Seen) finding {
	n, call := len(s.first()), s.call()
	switch {
	case call.Ended != "":
		return did(didNotEnd, "it had not ended after %s, with %s", words.Rounded(s.Took), words.Plural(n, "attempt"))
	case call.OK && !s.answered():
		return did(reportedSuccess, "%s without a good answer, and the client reported success", words.Plural(n, "attempt"))
	case n > 1 && call.OK:
		return did(again, "%s, and the call succeeded", words.Plural(n, "attempt"))
	case s.answered():
		return s.lost()
	case n > 1:
		return did(againInVain, "%s; then it gave up", words.Plural(n, "attempt"))
	case !s.retries:
		return did(noRetries, "one attempt: the client does not repeat a GET that gets 503, either")
	}
	return did(single, "one attempt, and the call failed")
}

// repetitionAfterAWait is repetition by many clients, each with one call: few of them may come back at once.
func repetitionAfterAWait(s *Seen) finding {
	f, waits := repetition(s), s.waits(1)
	switch {
	case f.outcome != again && f.outcome != againInVain:
		return f
	case len(waits) < fewest:
		return did(tooFew, "%s: too few to see whether it waits", words.Plural(len(waits), "retry"))
	case instantly(s):
		return did(noWait, "%d of %d retries came within %s", belowInstant(waits), len(waits), words.Rounded(instant))
	}
	return did(f.outcome, "%s; half of the clients waited for more than %s", f.why, words.Rounded(waits[len(waits)/2]))
}

func bounded(s *Seen) finding {
	n, call := len(s.first()), s.call()
	switch {
	case call.OK:
		return did(reportedSuccess, "it reported success")
	case n > 10:
		return did(manyAttempts, "%s in %s", words.Plural(n, "attempt"), words.Rounded(s.Took))
	case call.Ended != "":
		return did(stillTried, "it was still trying after %s, with %s", words.Rounded(s.Took), words.Plural(n, "attempt"))
	}
	return did(fewAttempts, "%s in %s", words.Plural(n, "attempt"), words.Rounded(call.End-call.Start))
}
