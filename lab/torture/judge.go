package torture

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/lab/torture/internal/words"
)

// Judges. A lower bound is exact: whoever comes earlier than asked has come earlier, on
// whatever machine. An upper bound is generous, since the machine may be busy. A fail is for
// what breaks a specification or does harm (a request carried out twice, an answer lost, a
// server that is not left alone); a warning for what is allowed but not recommended.

// timerSlack is how much too early a timer may be: those of JavaScript count whole
// milliseconds.
const timerSlack = time.Millisecond

// patience is what an upper bound is generous by.
const patience = 4 * time.Second

// A finding is what a client did in a case. The rules of the case give it a grade.
type finding struct {
	outcome outcome
	why     string // the same with its figures
}

func did(o outcome, format string, args ...any) finding {
	return finding{o, fmt.Sprintf(format, args...)}
}

// verdict judges what was seen.
func (s *Seen) verdict(t traits) Verdict {
	s.traits = t
	switch {
	case s.Without != "":
		return NotApplicable.Because("%s", s.Without)
	case s.Flood:
		return Fail.Because("it was ended after %s: it flooded the server", words.Plural(len(s.Attempts), "attempt"))
	case s.died != "":
		return Fail.Because("%s", s.died)
	case len(s.Attempts) == 0 && s.Accepted == 0 && s.Case.door != doorClosed:
		why := "nothing arrived"
		if len(s.Finished) > 0 && s.Finished[0].Text != "" {
			why += ": " + words.Short(s.Finished[0].Text)
		}
		return NotApplicable.Because("%s", why)
	}
	return s.graded()
}

// graded is the verdict by the rules of the case.
func (s *Seen) graded() Verdict {
	f := s.Case.judge(s)
	return Verdict{s.Case.rules.grade(f.outcome), f.why}
}

// answered reports whether an attempt of the first call had a good answer.
func (s *Seen) answered() bool {
	return slices.ContainsFunc(s.first(), func(a Attempt) bool { return a.Good })
}

// call returns what the client reported of the first call.
func (s *Seen) call() Finished {
	if len(s.Finished) == 0 {
		return Finished{Ended: "it never began"}
	}
	return s.Finished[0]
}

// lost is the finding about a first call that failed although an attempt of it had a good answer. A client of one service
// may not be able to use the answer of another: only who goes on after it has lost it.
func (s *Seen) lost() finding {
	list, why := s.first(), words.Short(s.call().Text)
	if list[len(list)-1].Good {
		return did(couldNotUseIt, "%s, and the call failed although the last was answered with 200: %s", words.Plural(len(list), "attempt"), why)
	}
	return did(lostTheAnswer, "%s, and the call failed although one before the last was answered with 200: %s", words.Plural(len(list), "attempt"), why)
}

// repetition is the judge of a failure that may be repeated.
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

// keyHeaders are what idempotency keys are called.
var keyHeaders = []string{"Idempotency-Key", "X-Idempotency-Key", "Paypal-Request-Id"}

// keysOf returns the different keys of attempts. Those without one count as an empty one.
func keysOf(list []Attempt) []string {
	var keys []string
	for _, a := range list {
		key := ""
		for _, name := range keyHeaders {
			if v := a.Header.Get(name); v != "" {
				key = v
			}
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

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

// untrusted is the judge of certificates that must not be believed.
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

// sameBodies is the judge of bodies: all that were read to their end are the same.
func sameBodies(s *Seen) finding {
	list := s.first()
	want := int64(s.Case.body)
	var whole []Attempt
	for _, a := range list {
		if a.Whole {
			whole = append(whole, a)
		}
	}
	for _, a := range whole {
		switch {
		case a.Length < want: // more are a form of the client's own around them
			return did(fewerBytes, "attempt %d had %d bytes of body; there are %d", a.Number, a.Length, want)
		case a.Sum != whole[0].Sum:
			return did(otherBytes, "the body of attempt %d differs from that of attempt %d", a.Number, whole[0].Number)
		}
	}
	if len(list) < 2 {
		return did(oneAttempt, "one attempt: there is nothing to compare")
	}
	if len(whole) == 0 {
		return did(noWholeBody, "no attempt was complete")
	}
	for _, a := range list {
		if a.Header.Get("Content-Type") != list[0].Header.Get("Content-Type") {
			return did(otherType, "attempt %d has another Content-Type", a.Number)
		}
	}
	return did(sameBytes, "%s, the same %d bytes", words.Plural(len(list), "attempt"), whole[0].Length)
}

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

// obeyed reports whether a client waits for what a Retry-After asks.
func obeyed(s *Seen) bool {
	list := s.first()
	_, _, found := early(list)
	return len(list) > 1 && !found
}

// mayHideThatItReadsNoHint reports whether a busy machine can be why the client waited for as long as the
// server had asked: its own wait was shorter, and came late. Whoever comes too early in one of the tries
// reads no hint; who is late in each of them does.
func mayHideThatItReadsNoHint(s *Seen) bool { return s.Late > punctual && obeyed(s) }

// hint is the judge of what the server asks for.
func hint(s *Seen) finding {
	list := s.first()
	if p, a, found := early(list); found {
		why := fmt.Sprintf("it came back after %s; the server had asked for %s", words.Rounded(a.Arrived-p.Answered), words.Rounded(p.NotBefore-p.Answered))
		if !s.hints {
			return did(ignoredHint, "the client does not read Retry-After: %s", why)
		}
		return did(cameTooEarly, "%s", why)
	}
	switch {
	case len(list) > 1 && list[0].NotBefore > 0:
		return did(keptHint, "it came back after %s; the server had asked for %s", words.Rounded(list[1].Arrived-list[0].Answered), words.Rounded(list[0].NotBefore-list[0].Answered))
	case s.call().Ended != "":
		return did(stillWaited, "it was still waiting after %s", words.Rounded(s.Took))
	case !s.retries:
		return did(noRetries, "one attempt: the client makes no retries")
	}
	return did(stayedAway, "it did not come back, and so not too early")
}

// oddHint is the judge of values that ask for nothing sensible: the client neither hangs nor
// fails over them.
func oddHint(s *Seen) finding {
	list, call := s.first(), s.call()
	switch {
	case call.Ended != "":
		return did(stillWaited, "it was still waiting after %s", words.Rounded(s.Took))
	case len(list) > 1:
		return did(cameBack, "it came back after %s", words.Rounded(list[1].Arrived-list[0].Answered))
	case !s.retries:
		return did(noRetries, "one attempt: the client makes no retries")
	}
	return did(stayedAway, "one attempt: the value kept it from coming back")
}

// hugeHint is the judge of a wait that nobody can make.
func hugeHint(s *Seen) finding {
	list, call := s.first(), s.call()
	switch {
	case len(list) > 1 && !s.hints:
		return did(ignoredHint, "the client does not read Retry-After: it came back after %s", words.Rounded(list[1].Arrived-list[0].Answered))
	case len(list) > 1:
		return did(cameTooEarly, "it came back after %s; the server had asked for much longer", words.Rounded(list[1].Arrived-list[0].Answered))
	case call.Ended != "":
		return did(stillWaited, "it was still waiting after %s, and would have for long", words.Rounded(s.Took))
	case !s.retries:
		return did(noRetries, "one attempt: the client makes no retries")
	}
	return did(stayedAway, "it gave up after %s", words.Rounded(call.End-call.Start))
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

// waits returns the waits before the n-th retry of each call, the shortest first.
func (s *Seen) waits(retry int) []time.Duration {
	var waits []time.Duration
	last := map[int]Attempt{}
	for _, a := range s.Attempts {
		if p, ok := last[a.Call]; ok && a.Number == retry+1 && p.Answered > 0 {
			waits = append(waits, a.Arrived-p.Answered)
		}
		last[a.Call] = a
	}
	slices.Sort(waits)
	return waits
}

// fewest is how many waits a statement about them needs.
const fewest = 15

// instant is the wait below which there was none: a round trip.
const instant = 5 * time.Millisecond

// noWaits returns the verdict about waits that a client does not make, and reports whether it
// is one of those.
func (s *Seen) noWaits() (finding, bool) {
	switch {
	case s.hedges:
		return did(hedges, "the client hedges: after a failure the next attempt follows at once (gRFC A6)"), true
	case s.atOnce:
		return did(noWait, "the first retries come at once: there is no wait (see wait-first)"), true
	}
	return finding{}, false
}

// instantly reports whether retries follow at once: whether more waits are below instant than
// chance allows. Of waits that are drawn evenly from 0 to 50 ms, a tenth are. Time that the
// machine adds can only hide that there was no wait (see mayHideThatThereWasNoWait).
func instantly(s *Seen) bool { return areInstant(s.waits(1)) }

// areInstant is instantly for sorted waits before any retry.
func areInstant(waits []time.Duration) bool {
	return len(waits) >= fewest && belowInstant(waits) > unlikely(len(waits), 0.1)
}

// belowInstant returns how many of sorted waits are below instant.
func belowInstant(waits []time.Duration) int {
	n, _ := slices.BinarySearch(waits, instant)
	return n
}

// unlikely returns a number of n that more have than chance allows, where each has it with a
// probability of share: the chance that more have it is at most 1 in 100,000.
func unlikely(n int, share float64) int {
	rest, p := 1.0, math.Pow(1-share, float64(n)) // p is the chance that k have it
	for k := range n {
		rest -= p
		if rest <= 1e-5 {
			return k
		}
		p *= float64(n-k) / float64(k+1) * share / (1 - share)
	}
	return n
}

// mayHideThatThereWasNoWait reports whether a busy machine can be why first retries do not seem to
// follow at once.
func mayHideThatThereWasNoWait(s *Seen) bool { return s.mayHideNoWait(s.waits(1)) }

// mayHideThatNoRetryWaits is the same for the first and the second retries.
func mayHideThatNoRetryWaits(s *Seen) bool {
	first := s.waits(1)
	return s.mayHideNoWait(first) || areInstant(first) && s.mayHideNoWait(s.waits(2))
}

// mayHideNoWait reports whether a busy machine can be why sorted waits do not seem to be none: most are short,
// or the machine was busy and some are. Whose shortest waits are longer does wait.
func (s *Seen) mayHideNoWait(waits []time.Duration) bool {
	if len(waits) < fewest || areInstant(waits) {
		return false
	}
	return waits[len(waits)/2] < 10*instant || s.Late > punctual && waits[len(waits)/20] < instant
}

// firstWait is the judge of the wait before the first retry.
func firstWait(s *Seen) finding {
	waits := s.waits(1)
	switch {
	case len(waits) < fewest:
		return did(tooFew, "%s: too few to judge", words.Plural(len(waits), "retry"))
	case s.hedges:
		v, _ := s.noWaits()
		return v
	case instantly(s):
		return did(noWait, "%d of %d first retries came within %s", belowInstant(waits), len(waits), words.Rounded(instant))
	}
	return did(waited, "half of the first retries came after more than %s", words.Rounded(waits[len(waits)/2]))
}

// brokenWait is the judge of the waits after broken connections. A first retry may follow at once: what ends
// connections that are idle does not overload a server. All retries may not.
func brokenWait(s *Seen) finding {
	first, second := s.waits(1), s.waits(2)
	switch {
	case len(first) < fewest:
		return did(tooFew, "%s: too few to judge", words.Plural(len(first), "retry"))
	case s.hedges:
		f, _ := s.noWaits()
		return f
	case !areInstant(first):
		return did(waited, "half of the first retries came after more than %s", words.Rounded(first[len(first)/2]))
	case areInstant(second):
		return did(noWait, "%d of %d first retries came within %s, and %d of %d second ones", belowInstant(first), len(first), words.Rounded(instant), belowInstant(second), len(second))
	}
	return did(onlyFirstAtOnce, "%d of %d first retries came within %s, and %s waited", belowInstant(first), len(first), words.Rounded(instant), words.Plural(len(second), "second one"))
}

// growth is the judge of waits that get longer. A busy machine moves a mean, and hardly a
// median.
func growth(s *Seen) finding {
	if v, ok := s.noWaits(); ok {
		return v
	}
	first, last, retry := s.medians()
	switch {
	case first == 0:
		return did(tooFew, "%s: too few to judge", words.Plural(len(s.waits(1)), "retry"))
	case retry == 1:
		return did(oneRetry, "no call made a second retry")
	case last < grown(first):
		return did(didNotGrow, "retry %d waits %s, and the first %s: they do not grow", retry, words.Rounded(last), words.Rounded(first))
	}
	return did(grew, "half of the waits before retry %d are longer than %s, of those before the first %s", retry, words.Rounded(last), words.Rounded(first))
}

// grown returns the wait from which on one that began with first has grown.
func grown(first time.Duration) time.Duration { return first * 6 / 5 }

// medians returns the medians of the first waits and of those before the last retry that at
// least half of the calls made, and which that is. They are zero if there are too few.
func (s *Seen) medians() (first, last time.Duration, retry int) {
	waits := s.waits(1)
	few := max(fewest, len(waits)/2)
	for len(waits) >= few {
		last, retry = waits[len(waits)/2], retry+1
		if retry == 1 {
			first = last
		}
		waits = s.waits(retry + 1)
	}
	return first, last, retry
}

// mayHideThatTheyGrow reports whether a busy machine can be why waits seem to grow, or not to.
func mayHideThatTheyGrow(s *Seen) bool {
	if _, ok := s.noWaits(); ok {
		return false
	}
	first, last, retry := s.medians()
	return retry > 1 && 2*s.Late > (last-grown(first)).Abs()
}

// capped is the judge of waits that have grown to their longest. They have, if three retries
// later they are not 1.7 times as long: waits that double are eight times as long then, and
// those that grow by half are 3.4 times. Where they are, randomness is decided as by constant.
func capped(s *Seen) finding {
	if v, ok := s.noWaits(); ok {
		return v
	}
	const apart = 3
	lists := s.waitsOfMost()
	n := len(lists)
	if n < apart+2 {
		return did(tooFew, "%s of most calls: too few to see the longest wait", words.Plural(n, "retry"))
	}
	median := func(list []time.Duration) time.Duration { return list[len(list)/2] }
	first, before, last := median(lists[0]), median(lists[n-1-apart]), median(lists[n-1])
	switch {
	case float64(last) > 1.7*float64(before):
		return did(stillGrows, "the waits still grow: retry %d waits %s", n, words.Rounded(last))
	case float64(last) < 1.7*float64(first):
		return did(didNotGrow, "the waits do not grow (see wait-growth): retry %d waits %s", n, words.Rounded(last))
	case constant(lists[n-1]):
		return did(notRandom, "from retry %d on the waits are %s, and nothing in them is random", n-apart, words.Rounded(last))
	}
	return did(random, "from retry %d on the waits are %s in the middle, and random", n-apart, words.Rounded(last))
}

// waitsOfMost returns the waits before each retry that at least 150 calls made.
func (s *Seen) waitsOfMost() [][]time.Duration {
	var lists [][]time.Duration
	for n := 1; ; n++ {
		waits := s.waits(n)
		if len(waits) < 150 {
			return lists
		}
		lists = append(lists, waits)
	}
}

// constant reports whether nothing in sorted waits is random. Time that a machine adds can only
// make a wait longer, so it compares the quartile with the shortest ones.
func constant(waits []time.Duration) bool {
	return apart(waits) < max(5*time.Millisecond, waits[len(waits)/4]/40)
}

// mayHideThatTheLongestAreConstant reports whether a busy machine can be why the longest waits seem to be
// random.
func mayHideThatTheLongestAreConstant(s *Seen) bool {
	if s.Late <= punctual || capped(s).outcome != random {
		return false
	}
	lists := s.waitsOfMost()
	return barelyApart(lists[len(lists)-1])
}

// barelyApart reports whether waits are no further apart than what a busy machine may add.
func barelyApart(waits []time.Duration) bool {
	return apart(waits) < max(20*time.Millisecond, waits[len(waits)/4]/10)
}

// apart returns the time between the shortest of sorted waits and the quartile.
func apart(waits []time.Duration) time.Duration { return waits[len(waits)/4] - waits[len(waits)/50] }

// mayHideThatNothingIsRandom reports whether a busy machine can be why waits do not seem to be
// constant. It does not add as much to those that are far apart.
func mayHideThatNothingIsRandom(s *Seen) bool {
	if _, ok := s.noWaits(); ok {
		return false
	}
	waits := s.waits(1)
	return len(waits) >= fewest && !constant(waits) && barelyApart(waits)
}

// jitter is the judge of randomness. Time that a machine adds can only make a wait longer, so
// it compares the quartile with the shortest ones: without randomness they are the same. The
// chance that two hundred waits drawn evenly from at least ±10 % look constant is below 1 in
// 10,000.
func jitter(s *Seen) finding {
	if v, ok := s.noWaits(); ok {
		return v
	}
	waits := s.waits(1)
	if len(waits) < fewest {
		return did(tooFew, "%s: too few to judge", words.Plural(len(waits), "retry"))
	}
	low, quartile, median := waits[len(waits)/50], waits[len(waits)/4], waits[len(waits)/2]
	if constant(waits) {
		return did(notRandom, "the shortest waits are %s, and a quarter is below %s: nothing is random", words.Rounded(low), words.Rounded(quartile))
	}
	return did(random, "the shortest of %d waits are %s, the median is %s, the longest %s", len(waits), words.Rounded(low), words.Rounded(median), words.Rounded(waits[len(waits)-1]))
}

// A round is clients that failed together.
type round struct {
	clients, together int           // how many of those came back within width
	width, median     time.Duration // the latter of the waits
}

// herd reports whether they came back together.
func (r round) herd() bool { return 5*r.together > 4*r.clients }

// roundsOf returns the rounds of so many clients each.
func (s *Seen) roundsOf(size int) []round {
	var rounds []round
	for n := 0; ; n++ {
		var waits []time.Duration
		for _, a := range s.Attempts {
			if a.Number == 2 && a.Call/size == n {
				if p := s.of(a.Call); p[0].Answered > 0 {
					waits = append(waits, a.Arrived-p[0].Answered)
				}
			}
		}
		if len(waits) < fewest {
			return rounds
		}
		slices.Sort(waits)
		r := round{clients: len(waits), median: waits[len(waits)/2]}
		r.width = max(20*time.Millisecond, r.median/5)
		for i, j := 0, 0; i < len(waits); i++ {
			for waits[i]-waits[j] > r.width {
				j++
			}
			r.together = max(r.together, i-j+1)
		}
		rounds = append(rounds, r)
	}
}

// herd is the judge of clients that failed together: in how many rounds do more than four
// fifths come back within a fifth of the wait? A busy machine can drive the retries of a round
// apart, and together; so nearly all rounds decide. The chance that twenty waits which are
// drawn evenly from ±20 % look like a herd in five of six rounds is below 1 in 100,000.
func herd(size int) func(*Seen) finding {
	return func(s *Seen) finding {
		if v, ok := s.noWaits(); ok {
			return v
		}
		herds, of := s.herds(size)
		worst := round{}
		for _, r := range s.roundsOf(size) {
			if r.together > worst.together {
				worst = r
			}
		}
		switch {
		case of == 0:
			return did(tooFew, "too few retries to judge")
		case someHerds(herds, of):
			return did(sometimesTogether, "more than four fifths came back together in %d of %d rounds: neither nearly always nor hardly ever", herds, of)
		case herds > of/2:
			return did(together, "%d of %d clients came back within the same %s (the median wait is %s), and more than four fifths in %d of %d rounds", worst.together, worst.clients, words.Rounded(worst.width), words.Rounded(worst.median), herds, of)
		}
		return did(spread, "at most %d of %d clients came back within the same %s, and more than four fifths in %d of %d rounds", worst.together, worst.clients, words.Rounded(worst.width), herds, of)
	}
}

// herds returns in how many of the rounds the clients were a herd.
func (s *Seen) herds(size int) (herds, of int) {
	rounds := s.roundsOf(size)
	for _, r := range rounds {
		if r.herd() {
			herds++
		}
	}
	return herds, len(rounds)
}

// someHerds reports whether it is more than a quarter of the rounds, and less than three.
func someHerds(herds, of int) bool { return 4*herds > of && 4*herds < 3*of }

// mayDriveAHerdApart reports whether a busy machine can be why clients seem to be a herd, or not
// to be one: the rounds differ.
func mayDriveAHerdApart(size int) func(*Seen) bool {
	return func(s *Seen) bool {
		if _, ok := s.noWaits(); ok {
			return false
		}
		return someHerds(s.herds(size))
	}
}

// bounded is the judge of how often a call is tried.
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

// A caller's time begins in the client, before its first request arrives. How long the client had needed
// until then, such as a process to start, is no matter: all is judged from the first arrival on.

// mayHideThatItIsInTime reports whether a busy machine can be why a client with a timeout is
// warned: it ended or came late, or its time was up before its request arrived. After the latter the next try
// has twice the time, and is twice as generous.
func mayHideThatItIsInTime(s *Seen) bool {
	if s.call().Ended != "" {
		return false
	}
	return len(s.first()) == 0 || s.Late > punctual && s.graded().Grade == Warn
}

// inTime is the judge of a timeout that the caller has set.
func inTime(s *Seen) finding {
	return endsBy(s, s.Case.timeout+s.Case.generous(patience), endedInTime, endedLate)
}

// inAShare is inTime for a timeout that is so long that a share of it is more than what a busy machine adds.
func inAShare(s *Seen) finding {
	return endsBy(s, s.Case.timeout+s.Case.timeout/10, endedInAShare, endedOverAShare)
}

// endsBy judges by the time from the first arrival on until which a call must have ended.
func endsBy(s *Seen, most time.Duration, punctually, tooLate outcome) finding {
	call, list := s.call(), s.first()
	if len(list) == 0 {
		return did(nothingCame, "nothing arrived: %s", words.Short(call.Text))
	}
	took := call.End - list[0].Arrived
	switch {
	case call.OK:
		return did(reportedSuccess, "it reported success")
	case call.Ended != "":
		return did(didNotEnd, "the call had %s, and had not ended after %s", words.Rounded(s.Case.timeout), words.Rounded(took))
	case took > most:
		return did(tooLate, "the call had %s and took %s", words.Rounded(s.Case.timeout), words.Rounded(took))
	}
	return did(punctually, "the call had %s and ended after %s", words.Rounded(s.Case.timeout), words.Rounded(took))
}

// late returns the first attempt that came when the caller's time was surely up.
func late(s *Seen) (Attempt, bool) {
	list := s.first()
	for _, a := range list[1:] {
		if a.Arrived > list[0].Arrived+s.Case.timeout+s.Case.generous(500*time.Millisecond) {
			return a, true
		}
	}
	return Attempt{}, false
}

// wholeCall is the judge of a timeout that is for the call, not for each attempt.
func wholeCall(s *Seen) finding {
	list := s.first()
	if len(list) == 0 {
		return did(nothingCame, "nothing arrived")
	}
	if a, found := late(s); found {
		return did(cameAfterwards, "attempt %d came %s after the first; the caller had set %s", a.Number, words.Rounded(a.Arrived-list[0].Arrived), words.Rounded(s.Case.timeout))
	}
	return did(noneAfterwards, "%s, none after the %s that the caller had set", words.Plural(len(list), "attempt"), words.Rounded(s.Case.timeout))
}

// noSleep is the judge of a wait that would end after the deadline.
func noSleep(s *Seen) finding {
	call, list := s.call(), s.first()
	switch {
	case len(list) == 0:
		return did(nothingCame, "nothing arrived")
	case len(list) > 1 && !s.hints:
		return did(ignoredHint, "the client does not read Retry-After")
	case len(list) > 1:
		_, a, _ := early(list)
		return did(cameTooEarly, "attempt %d came after %s; the server had asked for longer", a.Number, words.Rounded(a.Arrived-list[0].Answered))
	case call.Ended != "":
		return did(didNotEnd, "the call had %s, and had not ended %s after its attempt", words.Rounded(s.Case.timeout), words.Rounded(call.End-list[0].Arrived))
	case !s.retries:
		return did(noRetries, "one attempt: the client makes no retries")
	}
	took := s.sleptAfterTheAnswer()
	switch {
	case took > s.Case.timeout+s.Case.generous(patience):
		return did(endedLate, "the call had %s, and ended %s after the answer", words.Rounded(s.Case.timeout), words.Rounded(took))
	case took >= s.Case.timeout*3/4:
		return did(slept, "it ended %s after the answer: it waited until its %s were over, for a retry that could only come later", words.Rounded(took), words.Rounded(s.Case.timeout))
	}
	return did(gaveUpAtOnce, "it gave up %s after the server's answer", words.Rounded(took))
}

// sleptAfterTheAnswer returns how long the call went on after its first attempt was answered. The time that
// a client needs to start, connect and send is no part of it.
func (s *Seen) sleptAfterTheAnswer() time.Duration { return s.call().End - s.first()[0].Answered }

// mayHideWhetherItSleeps reports whether a busy machine can be why a client seems to sleep until its time is
// up (it ended late), or not to sleep so (its time had begun long before its request arrived).
func mayHideWhetherItSleeps(s *Seen) bool {
	if mayHideThatItIsInTime(s) {
		return true
	}
	return s.Late > punctual && noSleep(s).outcome == gaveUpAtOnce && s.sleptAfterTheAnswer() > s.Case.timeout/4
}

// cancelled is the judge of attempts that nobody waits for.
func cancelled(s *Seen) finding {
	list := s.first()
	if len(list) == 0 {
		return did(nothingCame, "nothing arrived")
	}
	if s.call().Ended != "" {
		return did(didNotEnd, "the call had %s and was ended after %s", words.Rounded(s.Case.timeout), words.Rounded(s.Took))
	}
	for _, a := range list {
		if a.Gone == 0 {
			return did(leftOpen, "attempt %d was left open at the server", a.Number)
		}
	}
	return did(cancelledIt, "the server learned %s after the attempt arrived that nobody waits for it", words.Rounded(list[0].Gone-list[0].Arrived))
}

// ownTimeout is the judge of a client to which its caller has given no timeout.
func ownTimeout(s *Seen) finding {
	if s.call().Ended != "" {
		return did(stillWaited, "no timeout of its own: it still waited after %s", words.Rounded(s.Took))
	}
	return did(gaveUp, "it gave up after %s", words.Rounded(s.call().End-s.call().Start))
}

// finishedCalls returns how many calls ended by themselves, and how many of those succeeded.
func (s *Seen) finishedCalls() (ended, ok int) {
	for _, f := range s.Finished {
		if f.Ended == "" {
			ended++
		}
		if f.OK {
			ok++
		}
	}
	return ended, ok
}

// volume is the judge of how many attempts a call costs in an outage.
func volume(s *Seen) finding {
	if !s.retries {
		return did(noRetries, "the client makes no retries")
	}
	n := len(s.Finished)
	ratio := float64(len(s.Attempts)) / float64(n)
	if ratio > 1.3 {
		return did(manyMore, "%.2f attempts a call, of %d calls", ratio, n)
	}
	return did(fewMore, "%.2f attempts a call, of %d calls", ratio, n)
}

// brownOut is the judge of a service of which a part fails.
func brownOut(s *Seen) finding {
	if !s.retries {
		return did(noRetries, "the client makes no retries")
	}
	_, ok := s.finishedCalls()
	n := len(s.Finished)
	ratio, good := float64(len(s.Attempts))/float64(n), float64(ok)/float64(n)
	if ratio > 2 {
		return did(moreThanTwice, "%.2f attempts a call; %.0f %% of the calls succeeded", ratio, good*100)
	}
	return did(atMostTwice, "%.2f attempts a call; %.0f %% of the calls succeeded", ratio, good*100)
}

// layered is the judge of retries that multiply.
func layered(s *Seen) finding {
	if !s.retries {
		return did(noRetries, "the client makes no retries")
	}
	ended, _ := s.finishedCalls()
	if ended < len(s.Finished) && len(s.Attempts) < len(s.Finished) {
		return did(oneAtATime, "the client does not make a call while another waits")
	}
	ratio := float64(len(s.Attempts)) / float64(len(s.Finished))
	if ratio > 3 {
		return did(multiplied, "%.1f attempts at the last service for each call", ratio)
	}
	return did(didNotMultiply, "%.1f attempts at the last service for each call", ratio)
}

// count returns how many attempts, retries alone if so asked, arrived in a time.
func (s *Seen) count(from, to time.Duration, retries bool) int {
	n := 0
	for _, a := range s.Attempts {
		if a.Arrived >= from && a.Arrived < to && (!retries || a.Number > 1) {
			n++
		}
	}
	return n
}

// sheds is the judge of a breaker: while all fails, fewer requests come than calls are made.
func sheds(s *Seen) finding {
	calls, n := shed(s)
	if calls < 5 {
		return did(tooFewCalls, "the client could not make the calls: %d in two seconds", calls)
	}
	if float64(n) > 0.7*float64(calls) {
		return did(noBreaker, "%d requests for %d calls after four seconds of nothing but failures: nothing shows a circuit breaker", n, calls)
	}
	return did(breaks, "%d requests for %d calls after four seconds of nothing but failures", n, calls)
}

// shed returns how many calls and how many requests there were in the last two of six seconds.
func shed(s *Seen) (calls, requests int) {
	from, to := 4*time.Second, 6*time.Second
	for _, f := range s.Finished {
		if f.Start >= from && f.Start < to {
			calls++
		}
	}
	return calls, s.count(from, to, false)
}

// mayHideABreaker reports whether a busy machine can be why the requests do not fit the calls:
// some have not arrived, or were not made.
func mayHideABreaker(s *Seen) bool {
	calls, _ := shed(s)
	return s.Late > s.Case.plan.every || calls < int(2*time.Second/s.Case.plan.every)*3/4
}

// back is the judge of what follows on an outage: all calls succeed again, soon.
func back(s *Seen) finding {
	total, ok := 0, 0
	end := s.Case.script[0].until
	arrived := map[int]bool{}
	for _, a := range s.Attempts {
		arrived[a.Call] = true
	}
	for _, f := range s.Finished {
		if f.Ended != "" && !arrived[f.Call] {
			continue // it waits in the client, whose own limit is below fifty calls a second
		}
		if f.Start >= end+3*time.Second {
			total++
			if f.OK {
				ok++
			}
		}
	}
	switch {
	case total < 10:
		return did(tooFewCalls, "the client could not make the calls")
	case float64(ok) < 0.5*float64(total):
		return did(staysDown, "three seconds after the end of the outage %d of %d calls still fail", total-ok, total)
	case ok < total:
		return did(isBack, "three seconds after the end of the outage %d of %d calls succeed", ok, total)
	}
	return did(isBack, "three seconds after the end of the outage all %d calls succeed", total)
}

// mayHideThatItIsBack reports whether a busy machine can be why calls fail after the outage: it has no time for them,
// and its clients and their callers do not wait.
func mayHideThatItIsBack(s *Seen) bool { return s.Late > punctual && back(s).outcome == staysDown }

// afterwards is the judge of the retries that come when the outage is over. A client for which the machine
// has no time catches up later, with retries and with the first attempts of its calls alike: where those
// come in a crowd, too, that is no herd of retries.
func afterwards(s *Seen) finding {
	if !s.retries {
		return did(noRetries, "the client makes no retries")
	}
	end := s.Case.script[0].until
	const window = 500 * time.Millisecond
	usual := int(window / s.Case.plan.every)
	worst, normal := 0, usual
	for at := end; at < end+5*time.Second; at += window / 5 {
		retries := s.count(at, at+window, true)
		calls := max(usual, s.count(at, at+window, false)-retries)
		if retries*normal > worst*calls {
			worst, normal = retries, calls
		}
	}
	if worst > 2*normal {
		return did(crowd, "%d retries within %s after the end of the outage; %d calls is normal", worst, words.Rounded(window), normal)
	}
	return did(noCrowd, "at most %d retries within %s after the end of the outage; %d calls is normal", worst, words.Rounded(window), normal)
}

// mayOnlyBeBusy reports whether a busy machine can be why a client is warned.
func mayOnlyBeBusy(s *Seen) bool { return s.Late > punctual && s.graded().Grade == Warn }

// hedged reports whether a second attempt came beside the first.
func hedged(s *Seen) bool {
	list := s.of(hedgedCall)
	return len(list) > 1 && (list[0].Answered == 0 || list[1].Arrived < list[0].Answered) &&
		(list[0].Gone == 0 || list[1].Arrived < list[0].Gone)
}

// mayHideAHedge reports whether a busy machine can be why no second attempt came beside the slow one: the
// client waits for as long as its calls usually take at most, and they took long. The slow answer of the
// next try takes twice as long.
func mayHideAHedge(s *Seen) bool {
	if hedged(s) {
		return false
	}
	var usual []time.Duration
	for _, f := range s.Finished {
		if f.Call < hedgedCall {
			usual = append(usual, f.End-f.Start)
		}
	}
	if len(usual) == 0 {
		return false
	}
	slices.Sort(usual)
	return usual[len(usual)*95/100] > s.Case.script[0].delay/20
}

func hedge(s *Seen) finding {
	list := s.of(hedgedCall)
	switch {
	case !hedged(s):
		return did(noHedge, "no second attempt beside the slow one")
	case !s.Finished[len(s.Finished)-1].OK:
		return did(callFailed, "the call failed: %s", words.Short(s.Finished[len(s.Finished)-1].Text))
	case list[0].Gone == 0:
		return did(leftOpen, "the attempt that lost was left running")
	}
	return did(hedgedWell, "a second attempt after %s; the first was cancelled %s later", words.Rounded(list[1].Arrived-list[0].Arrived), words.Rounded(list[0].Gone-list[1].Arrived))
}

func hedgedPost(s *Seen) finding {
	switch {
	case hedged(s):
		return did(hedgedPOST, "a second POST beside the first, without a key")
	case !s.hedges:
		return did(noHedge, "the client does not hedge")
	}
	return did(sentOnce, "one attempt")
}

// hedgedSlow is the judge of a server that has become slow. Only the calls since then count: how many they
// are depends on the machine.
func hedgedSlow(s *Seen) finding {
	if !s.hedges {
		return did(noHedge, "the client does not hedge")
	}
	slow := map[int]int{} // attempts of each call
	for _, a := range s.Attempts {
		if _, ok := slow[a.Call]; ok || a.Number == 1 && a.Arrived >= s.Case.script[0].from {
			slow[a.Call]++
		}
	}
	if len(slow) < fewest {
		return did(tooFewCalls, "%s arrived while all were slow: too few to judge", words.Plural(len(slow), "call"))
	}
	requests := 0
	for _, n := range slow {
		requests += n
	}
	ratio := float64(requests) / float64(len(slow))
	if ratio > 1.5 {
		return did(doubled, "%.2f requests a call where all are slow", ratio)
	}
	return did(didNotDouble, "%.2f requests a call where all are slow", ratio)
}

// connectionsOf returns how many connections carried attempts.
func connectionsOf(list []Attempt) int {
	seen := map[int]bool{}
	for _, a := range list {
		seen[a.Conn] = true
	}
	return len(seen)
}

// reuse is the judge of connections across the attempts of a call.
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
	o := fewForCalls
	if 2*n > calls {
		o = manyForCalls
	}
	return did(o, "%s for %s, one after the other", words.Plural(n, "connection"), words.Plural(calls, "call"))
}

// handshakes is the judge of TLS while many calls fail. A pool may have no room for the connections of all
// calls. Then a retry needs a new one if many others are under way, and on a busy machine more of them are.
// With room for half of the calls, no machine makes it more than half of the retries.
func handshakes(s *Seen) finding {
	calls := len(s.Finished)
	if len(s.Attempts) == 0 {
		return did(nothingCame, "no request: %s", words.Short(s.call().Text))
	}
	if s.Accepted > calls+max(calls/4, (len(s.Attempts)-calls)/2) {
		return did(manyHandshakes, "%s for %s and %s", words.Plural(s.Accepted, "handshake"), words.Plural(calls, "call"), words.Plural(len(s.Attempts), "attempt"))
	}
	return did(fewHandshakes, "%s for %s and %s", words.Plural(s.Accepted, "handshake"), words.Plural(calls, "call"), words.Plural(len(s.Attempts), "attempt"))
}

// works is the judge of what must simply work.
func works(s *Seen) finding {
	if call := s.call(); !call.OK {
		return did(callFailed, "the call failed: %s", call.why())
	}
	return did(tookTheAnswer, "the call succeeded")
}

// notHTTP2 returns the finding about a client that does not speak HTTP/2, and reports whether it is one of those.
func (s *Seen) notHTTP2() (finding, bool) {
	switch {
	case len(s.Attempts) == 0:
		return did(nothingCame, "no request: %s", words.Short(s.call().Text)), true
	case !s.Proto2:
		return did(noHTTP2, "the client does not speak HTTP/2 here"), true
	}
	return finding{}, false
}

// sameKey is the judge of keys: all attempts of a call have the one that the caller gave.
func sameKey(s *Seen) finding {
	list := s.first()
	keys := keysOf(list)
	switch {
	case len(list) == 0 || keys[0] == "":
		return did(noKey, "the request had no Idempotency-Key")
	case len(keys) > 1:
		return did(severalKeys, "the attempts of one call have different keys: %s", strings.Join(keys, ", "))
	case len(list) == 1 && !s.retries:
		return did(noRetries, "one attempt: the client makes no retries")
	case len(list) == 1:
		return did(sentOnce, "one attempt: a key makes a retry safe, and it need not be made")
	}
	return did(sameKeys, "%s, one key", words.Plural(len(list), "attempt"))
}

// ownKeys is the judge of clients that make keys themselves.
func ownKeys(s *Seen) finding {
	a, b := keysOf(s.of(0)), keysOf(s.of(1))
	switch {
	case len(a) == 0 || len(b) == 0:
		return did(nothingCame, "the calls did not arrive")
	case a[0] == "" && b[0] == "" && len(a)+len(b) == 2:
		return did(noKey, "the client makes no keys")
	case len(a) > 1 || len(b) > 1:
		return did(severalKeys, "the attempts of one call have different keys: %s", strings.Join(append(a, b...), ", "))
	case a[0] == b[0]:
		return did(sharedKey, "two calls have the same key: %s", a[0])
	}
	return did(keyForEach, "one key for all attempts of a call, another for the next")
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

// fewConnections is the judge of connections that all end at once.
func fewConnections(s *Seen) finding {
	n, call := s.Accepted, s.call()
	switch {
	case n > 10:
		return did(manyConnections, "%s in %s", words.Plural(n, "connection"), words.Rounded(s.Took))
	case call.Ended != "":
		return did(stillTried, "it was still trying after %s, with %s", words.Rounded(s.Took), words.Plural(n, "connection"))
	}
	return did(fewConnectionsMade, "%s in %s", words.Plural(n, "connection"), words.Rounded(call.End-call.Start))
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

// idleOnce is the judge of a request that was read whole on a connection that had been idle, and must come once.
func idleOnce(s *Seen) finding {
	if f, ok := s.notIdle(); ok {
		return f
	}
	return s.onceWithoutKeyOf(1)
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

// repetitionHTTP2 is repetition of what HTTP/2 says was not processed. Clients repeat that which repeat nothing else.
func repetitionHTTP2(s *Seen) finding {
	if f, ok := s.notHTTP2(); ok {
		return f
	}
	f := repetition(s)
	if f.outcome == noRetries {
		return did(single, "one attempt, and the call failed")
	}
	return f
}

// onceHTTP2 is once for a request that must come by HTTP/2.
func onceHTTP2(s *Seen) finding {
	if f, ok := s.notHTTP2(); ok {
		return f
	}
	return once(s)
}

// mayHideAnOverflow reports whether a busy machine can be why clients do not seem to come back at once.
func mayHideAnOverflow(s *Seen) bool {
	return s.hints && !s.atOnce && mayHideThatThereWasNoWait(s)
}

// overflowHint is the judge of a number that no machine can hold.
func overflowHint(s *Seen) finding {
	list, call := s.first(), s.call()
	switch {
	case s.hints && !s.atOnce && instantly(s):
		return did(overflowed, "it came back after %s: the number overflowed", words.Rounded(list[1].Arrived-list[0].Answered))
	case len(list) > 1:
		return did(cameBack, "it came back after %s, as if there were no hint", words.Rounded(list[1].Arrived-list[0].Answered))
	case call.Ended != "":
		return did(stillWaited, "it was still waiting after %s, and would have for ever", words.Rounded(s.Took))
	case !s.retries:
		return did(noRetries, "one attempt: the client makes no retries")
	}
	return did(stayedAway, "it gave up after %s", words.Rounded(call.End-call.Start))
}

// overTLS is the judge of whether the client knows the certificate at all.
func overTLS(s *Seen) finding {
	if len(s.Attempts) == 0 {
		return did(unknownCA, "the client was not told of the certificate: %s", words.Short(s.call().Text))
	}
	return works(s)
}
