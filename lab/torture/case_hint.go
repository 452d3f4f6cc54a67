package torture

import (
	"fmt"
	"time"

	"github.com/lullgo/lull/lab/torture/internal/words"
)

func hintCases() []Case {
	const field = "RFC 9110, 10.2.3 (Retry-After)"
	const forms = "RFC 9110, 5.6.7: recipients must accept all three forms"
	const limits = "draft-ietf-httpapi-ratelimit-headers-10"
	// A busy machine can be why a client seems to have waited.
	hinted := func(name, does string, status int, wait time.Duration, source string, r rules, header ...string) Case {
		return Case{Name: "hint-" + name, Does: does, Source: source,
			script: []answer{{status: status, header: header, wait: wait}, good}, judge: hint, rules: r, maybeBusy: mayHideThatItReadsNoHint, judgedWhenBusy: true}
	}
	// heeds are the rules of a Retry-After; early is the grade of a client that reads it and comes back earlier.
	// Who reads none is warned once, by the first case.
	heeds := func(early Grade) rules {
		return rules{Pass: {keptHint, stayedAway}, Warn: {stillWaited}, NotApplicable: {ignoredHint, noRetries}}.and(rules{early: {cameTooEarly}})
	}
	read := func(field, name, does string, status int, wait time.Duration, source string, header ...string) Case { // a field that only some clients claim to read
		c := hinted(name, does, status, wait, source, rules{Pass: {keptHint}, NotApplicable: {ignoredField, oneAttempt}}, header...)
		c.judge, c.field = dialect, field
		return c
	}
	odd := func(name, value string, judge func(*Seen) finding, r rules) Case {
		return Case{Name: "hint-" + name, Does: "answers with 503 and Retry-After: " + value, Source: field,
			script: []answer{{status: 503, header: []string{"Retry-After: " + value}}, good}, judge: judge, rules: r}
	}
	comesBack := rules{Pass: {cameBack}, Warn: {stayedAway}, Fail: {stillWaited}, NotApplicable: {noRetries}}
	return []Case{
		hinted("seconds-503", "answers with 503 and Retry-After: 2", 503, 2*time.Second, field,
			rules{Pass: {keptHint, stayedAway}, Warn: {ignoredHint, stillWaited}, NotApplicable: {noRetries}}, "Retry-After: 2"),
		hinted("seconds-429", "answers with 429 and Retry-After: 2", 429, 2*time.Second, "RFC 6585, 4", heeds(Fail), "Retry-After: 2"),
		hinted("date", "answers with 503 and a Retry-After that is a date in two to three seconds", 503, 0, field, heeds(Fail), "Retry-After: {imf+3}"),
		hinted("date-429", "answers with 429 and a Retry-After that is a date in two to three seconds", 429, 0, field, heeds(Fail), "Retry-After: {imf+3}"),
		hinted("date-rfc850", "the same, with a date in the form of RFC 850", 503, 0, forms, heeds(Warn), "Retry-After: {rfc850+3}"),
		hinted("date-asctime", "the same, with a date in the form of asctime", 503, 0, forms, heeds(Warn), "Retry-After: {asctime+3}"),
		odd("past", "{imf-60}", oddHint, comesBack),
		odd("zero", "0", oddHint, comesBack),
		odd("negative", "-5", oddHint, comesBack),
		odd("fraction", "0.5", oddHint, comesBack),
		odd("words", "soon", oddHint, comesBack),
		odd("day", "86400", hugeHint, rules{Pass: {stayedAway}, Warn: {stillWaited}, Fail: {cameTooEarly}, NotApplicable: {ignoredHint, noRetries}}),
		{Name: "hint-overflow", Does: "answers with 503 and Retry-After: 99999999999999999999; forty clients", Source: field, plan: fortyClients,
			script: []answer{{status: 503, header: []string{"Retry-After: 99999999999999999999"}}, good}, judge: overflowHint,
			rules: rules{Pass: {stayedAway, cameBack}, Warn: {stillWaited}, Fail: {overflowed}, NotApplicable: {noRetries}}, maybeBusy: mayHideAnOverflow, judgedWhenBusy: true},
		hinted("twice", "answers with 503 and two fields, Retry-After: 1 and Retry-After: 2", 503, time.Second, "RFC 9110, 5.3: the field is not a list; waiting for either will do", heeds(Warn),
			"Retry-After: 1", "Retry-After: 2"),
		hinted("both", "answers with 429, Retry-After: 2 and a RateLimit field that would allow it at once", 429, 2*time.Second, limits+": Retry-After takes precedence", heeds(Fail),
			"Retry-After: 2", `RateLimit: "default";r=0;t=0`),
		read("RateLimit", "ratelimit", "answers with 429 and RateLimit: \"default\";r=0;t=2", 429, 2*time.Second, limits, `RateLimit-Policy: "default";q=10;w=2`, `RateLimit: "default";r=0;t=2`),
		read("X-RateLimit-Reset", "x-ratelimit", "answers with 429, X-RateLimit-Remaining: 0 and an X-RateLimit-Reset in two to three seconds", 429, 0, "docs.github.com: rate limits for the REST API",
			"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: {epoch+3}"),
		read("retry-after-ms", "ms", "answers with 503 and retry-after-ms: 2000", 503, 2*time.Second, "the SDKs of OpenAI, and Azure's services", "Retry-After-Ms: 2000"),
		{Name: "hint-404", Does: "answers with 404 and Retry-After: 1", Source: "RFC 9110, 15.5.5: the hint makes no failure of the server of it",
			script: []answer{{status: 404, header: []string{"Retry-After: 1"}, wait: time.Second}, good}, judge: once, rules: rules{Pass: {sentOnce}, Warn: {sentAgain}, Fail: {didNotEnd}}},
		hinted("413", "answers with 413 and Retry-After: 2", 413, 2*time.Second, "RFC 9110, 15.5.14: the client may try again after that time", heeds(Fail), "Retry-After: 2"),
		{Name: "hint-200", Does: "answers with 200 and Retry-After: 1", Source: field,
			script: []answer{{status: 200, header: []string{"Retry-After: 1"}}, good}, judge: unrequested, rules: rules{Pass: {tookTheAnswer}, Fail: {sentAgain, callFailed}}},
		read("Retry-After of a redirect", "301", "answers with 301 and Retry-After: 2", 301, 2*time.Second, "RFC 9110, 10.2.3: the minimum wait before the redirected request", "Retry-After: 2", "Location: ?moved"),
	}
}

const (
	keptHint     outcome = "comes back no earlier than asked"
	stayedAway   outcome = "does not come back"
	cameTooEarly outcome = "comes back earlier than asked although it reads a Retry-After of seconds"
	ignoredHint  outcome = "comes back earlier than asked since it reads no Retry-After"
	ignoredField outcome = "comes back earlier than asked since it does not read that field"
	cameBack     outcome = "comes back"
	overflowed   outcome = "comes back at once although it waits where there is no such field"
)

// timerSlack is how much too early a timer may be: those of JavaScript count whole
// milliseconds.
const timerSlack = time.Millisecond

// early returns the first attempt that came earlier than the server had asked, and the one
// before it.
func early(list []Attempt) (before, at Attempt, found bool) {
	for i := 1; i < len(list); i++ {
		if p := list[i-1]; p.NotBefore > 0 && list[i].Arrived+timerSlack < p.NotBefore {
			return p, list[i], true
		}
	}
	return Attempt{}, Attempt{}, false
}

func obeyed(s *Seen) bool {
	list := s.first()
	_, _, found := early(list)
	return len(list) > 1 && !found
}

// mayHideThatItReadsNoHint reports whether a busy machine can be why the client waited for as long as the
// server had asked: its own wait was shorter, and came late. Whoever comes too early in one of the tries
// reads no hint; who is late in each of them does.
func mayHideThatItReadsNoHint(s *Seen) bool { return s.Late > usualLateness && obeyed(s) }

func hint(s *Seen) finding {
	list := s.first()
	if p, a, found := early(list); found {
		why := fmt.Sprintf("it came back after %s; the server had asked for %s", words.Rounded(a.Arrived-p.Answered), words.Rounded(p.NotBefore-p.Answered))
		if !s.hints {
			return did(ignoredHint, "the client does not read Retry-After: %s", why)
		}
		return did(cameTooEarly, "%s", why)
	}
	if len(list) > 1 && list[0].NotBefore > 0 {
		return did(keptHint, "it came back after %s; the server had asked for %s", words.Rounded(list[1].Arrived-list[0].Answered), words.Rounded(list[0].NotBefore-list[0].Answered))
	}
	return s.stayed("", "it did not come back, and so not too early")
}

// stayed is the finding about a client that did not come back. The end of what is said of one that still waits, and
// what is said of one that gave up, are those of the case.
func (s *Seen) stayed(still, away string) finding {
	switch call := s.call(); {
	case call.Ended != "":
		return did(stillWaited, "it was still waiting after %s%s", words.Rounded(s.Took), still)
	case !s.retries:
		return did(noRetries, "one attempt: the client makes no retries")
	case away == "":
		return did(stayedAway, "it gave up after %s", words.Rounded(call.End-call.Start))
	}
	return did(stayedAway, "%s", away)
}

// oddHint is the judge of values that ask for nothing sensible: the client neither hangs nor
// fails over them.
func oddHint(s *Seen) finding {
	if list := s.first(); len(list) > 1 && s.call().Ended == "" {
		return did(cameBack, "it came back after %s", words.Rounded(list[1].Arrived-list[0].Answered))
	}
	return s.stayed("", "one attempt: the value kept it from coming back")
}

// hugeHint is the judge of a wait that nobody can make.
func hugeHint(s *Seen) finding {
	switch list := s.first(); {
	case len(list) > 1 && !s.hints:
		return did(ignoredHint, "the client does not read Retry-After: it came back after %s", words.Rounded(list[1].Arrived-list[0].Answered))
	case len(list) > 1:
		return did(cameTooEarly, "it came back after %s; the server had asked for much longer", words.Rounded(list[1].Arrived-list[0].Answered))
	}
	return s.stayed(", and would have for long", "")
}

// dialect is the judge of a field that only some claim to read: whoever comes earlier does not read it.
func dialect(s *Seen) finding {
	list := s.first()
	if p, a, found := early(list); found {
		return did(ignoredField, "the client does not read %s: it came back after %s", s.Case.field, words.Rounded(a.Arrived-p.Answered))
	}
	if len(list) < 2 {
		return did(oneAttempt, "one attempt: nothing shows whether the client reads %s", s.Case.field)
	}
	return did(keptHint, "it came back after %s; the server had asked for %s", words.Rounded(list[1].Arrived-list[0].Answered), words.Rounded(list[0].NotBefore-list[0].Answered))
}

// unrequested is the judge of a hint on an answer that is no failure.
func unrequested(s *Seen) finding {
	if n := len(s.first()); n > 1 {
		return did(sentAgain, "%s of a call that had succeeded", words.Plural(n, "attempt"))
	}
	if !s.call().OK {
		return did(callFailed, "the call failed: %s", words.Short(s.call().Text))
	}
	return did(tookTheAnswer, "one attempt")
}

// mayHideAnOverflow reports whether a busy machine can be why clients do not seem to come back at once.
func mayHideAnOverflow(s *Seen) bool { return s.hints && !s.atOnce && mayHideThatThereWasNoWait(s) }

// overflowHint is the judge of a number that no machine can hold.
func overflowHint(s *Seen) finding {
	switch list := s.first(); {
	case s.hints && !s.atOnce && instantly(s):
		return did(overflowed, "it came back after %s: the number overflowed", words.Rounded(list[1].Arrived-list[0].Answered))
	case len(list) > 1:
		return did(cameBack, "it came back after %s, as if there were no hint", words.Rounded(list[1].Arrived-list[0].Answered))
	}
	return s.stayed(", and would have for ever", "")
}
