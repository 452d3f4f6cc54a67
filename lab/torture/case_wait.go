package torture

import (
	"math"
	"slices"
	"time"

	"github.com/lullgo/lull/lab/torture/internal/words"
)

func waitCases() []Case {
	const backoff = "AWS Builders' Library, Timeouts, retries and backoff with jitter"
	return []Case{
		{Name: "wait-first", Does: "answers a GET with 503, and then with 200; sixty clients, one every 25 ms", Source: backoff,
			plan: plan{calls: 60, fresh: true, every: 25 * time.Millisecond}, alone: true, limit: 60 * time.Second, script: failing(503),
			judge: firstWait, rules: rules{Pass: {waited}, Fail: {noWait}, NotApplicable: {tooFew, hedges}}, maybeBusy: mayHideThatThereWasNoWait},
		{Name: "wait-broken", Does: "reads each GET and resets the connection; sixty clients, one every 25 ms", Source: backoff + "; RFC 9112, 9.3.1: connections can be closed at any time",
			plan: plan{calls: 60, fresh: true, every: 25 * time.Millisecond}, alone: true, limit: 60 * time.Second, script: []answer{{fault: faultReset}},
			judge: brokenWait, rules: rules{Pass: {waited}, Warn: {onlyFirstAtOnce}, Fail: {noWait}, NotApplicable: {tooFew, hedges}}, maybeBusy: mayHideThatNoRetryWaits},
		{Name: "wait-growth", Does: "answers every GET of a hundred clients with 503", Source: backoff + "; gRFC A6",
			plan: plan{calls: 100, fresh: true, every: 20 * time.Millisecond}, limit: 40 * time.Second, script: []answer{{status: 503}},
			exempt: (*Seen).noWaits, judge: growth, rules: rules{Pass: {grew}, Warn: {didNotGrow, noWait}, NotApplicable: {tooFew, oneRetry, hedges}}, maybeBusy: mayHideThatTheyGrow},
		{Name: "wait-cap", Does: "answers every GET of two hundred clients with 503, for forty seconds", Source: backoff + ": the cap must not end the jitter",
			plan: plan{calls: 200, fresh: true, every: 10 * time.Millisecond}, limit: 40 * time.Second, script: []answer{{status: 503}},
			exempt: (*Seen).noWaits, judge: capped, rules: rules{Pass: {random}, Warn: {notRandom, noWait}, NotApplicable: {tooFew, stillGrows, didNotGrow, hedges}}, maybeBusy: mayHideThatTheLongestAreConstant, judgedWhenBusy: true},
		{Name: "wait-jitter", Does: "answers a GET with 503, and then with 200; two hundred clients", Source: backoff + "; gRFC A6: ±20 %",
			plan: plan{calls: 200, fresh: true, every: 10 * time.Millisecond}, alone: true, script: failing(503),
			exempt: (*Seen).noWaits, judge: jitter, rules: rules{Pass: {random}, Warn: {notRandom, noWait}, NotApplicable: {tooFew, hedges}}, maybeBusy: mayHideThatNothingIsRandom},
		{Name: "wait-herd", Does: "fails twenty clients at the same moment with 503, six times", Source: backoff,
			plan: plan{calls: 6 * herdSize, fresh: true, rounds: 6}, alone: true, limit: 60 * time.Second, script: []answer{{status: 503, gather: herdSize}, good},
			exempt: (*Seen).noWaits, judge: herd, rules: rules{Pass: {spread}, Warn: {together, noWait}, NotApplicable: {tooFew, sometimesTogether, hedges}}, maybeBusy: mayDriveAHerdApart},
		{Name: "wait-refused", Does: "resets twenty connections as soon as they are accepted", Source: "SRE book, Addressing Cascading Failures",
			doors: slices.Repeat([]arrival{arriveReset}, 20), script: []answer{good}, judge: fewConnections, rules: rules{Pass: {fewConnectionsMade}, Warn: {manyConnections, stillTried}}},
	}
}

const (
	waited             outcome = "waits before it repeats it"
	onlyFirstAtOnce    outcome = "makes its first retry without a wait but not the others"
	hedges             outcome = "hedges (its next attempt follows on a failure at once)"
	oneRetry           outcome = "makes one retry"
	grew               outcome = "waits longer before later retries"
	didNotGrow         outcome = "waits no longer before later retries"
	stillGrows         outcome = "makes no retries of which the waits have stopped to grow"
	random             outcome = "draws its waits at random"
	notRandom          outcome = "waits for the same time always"
	spread             outcome = "spreads its retries in nearly all rounds"
	together           outcome = "makes more than four fifths of its retries at the same moment in nearly all rounds"
	sometimesTogether  outcome = "does neither in nearly all rounds"
	fewConnectionsMade outcome = "gives up after at most ten connections"
	manyConnections    outcome = "makes more than ten connections"
)

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
	return waits[len(waits)/2] < 10*instant || s.Late > usualLateness && waits[len(waits)/20] < instant
}

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
	if s.Late <= usualLateness || s.finding().outcome != random {
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

const herdSize = 20

// A round is clients that failed together.
type round struct {
	clients, together int           // how many of those came back within width
	width, median     time.Duration // the latter of the waits
}

// herd reports whether they came back together.
func (r round) herd() bool { return 5*r.together > 4*r.clients }

func (s *Seen) rounds() []round {
	var rounds []round
	for n := 0; ; n++ {
		var waits []time.Duration
		for _, a := range s.Attempts {
			if a.Number == 2 && a.Call/herdSize == n {
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
func herd(s *Seen) finding {
	herds, of := s.herds()
	worst := round{}
	for _, r := range s.rounds() {
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

// herds returns in how many of the rounds the clients were a herd.
func (s *Seen) herds() (herds, of int) {
	rounds := s.rounds()
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
func mayDriveAHerdApart(s *Seen) bool {
	_, none := s.noWaits()
	return !none && someHerds(s.herds())
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
