package admission

import (
	"cmp"
	"math"
	"time"
)

// The open gate. While there is no evidence of overload, the limit is Max.
//
// By Little's law, requests in flight = throughput × time. Many requests in flight are no evidence of
// overload: handlers may be slow. Nor are long times: a dependency may be slow. A server whose
// requests do not queue completes more when more are in flight. A server whose requests queue does
// not: the number in flight and the time grow together, and go on growing.
//
// Completions are counted in windows. A growth begins with a window whose mean time is three times the
// least one of the last ten to twenty seconds, and 100 ms more than that one. It is evidence of
// overload in one of three cases:
//
//   - It is even. Number and time have risen by a quarter, three times. Hardly any request was quick, so
//     all wait behind others (CoDel, RFC 8289, uses the least sojourn time for that). The throughput has
//     not fallen. A dependency that becomes slow makes one such rise, and the throughput falls at first.
//   - It is mixed: some requests are quick, because they do not queue or because times vary. The
//     requests from before the growth are then ignored. A server without a queue would complete the
//     integral of (number in flight × completions per request in flight and second). If number and time
//     have risen, and the completions are fewer by a sixth and by three standard deviations, that is
//     evidence. It is none while the longest time is as long as the growth: at a start, long requests
//     cannot be over.
//   - The number in flight is at Max.
//
// Then the limit becomes c and its headroom, where
//
//	c = throughput × least time
//
// is the bandwidth-delay product to which BBR limits what is in flight (Cardwell et al., ACM Queue
// 14(5), 2016; its least time is also one of ten seconds). A least time below 50 ms counts as 50 ms. From then on
// throughputs are compared, as limit.go describes. That corrects a c that is wrong. The gate opens
// again when the limit has not been in use for ten seconds.
//
// Two things cannot be told apart from in-flight, throughput and time: a queue, and times that creep up
// for many times their own length.
const (
	watchLeast   = 16                     // least completions in a window
	watchTime    = 100 * time.Millisecond // least length of a window
	leastFor     = 10 * time.Second       // for how long a least time counts, at least
	leastTimes   = 50                     // the same, as a multiple of that time
	settleTimes  = 10                     // after so many times of a request the first least time is replaced
	bearable     = 100 * time.Millisecond // what times may have above the least one
	tolerance    = 2                      // the same, as a multiple of the least one
	rise         = 1.25
	rises        = 3
	sure         = 4    // standard deviations by which the number in flight must have grown
	quickShare   = 0.05 // share of quick completions up to which a growth is even
	unfallen     = 0.8  // share of the usual throughput from which it has not fallen
	fewer        = 1.2  // expected / actual completions of a mixed growth
	fewerSure    = 3    // standard deviations of their difference
	longestShare = 0.9  // of the length of a growth
	calmFor      = 10 * time.Second
)

// evidence is what was seen while the gate was open. The controller's lock guards it.
type evidence struct {
	// The window, beside what knee has.
	took  float64 // sum of times, ns
	quick int     // completions within half of evidence.mean

	smooth             float64       // mean time of the last windows
	least, leastBefore float64       // least mean time of a window, in this generation and the last; 0: unknown
	generation         time.Duration // when it began
	windows            int           // in it
	settled            bool          // the first generation is over
	usual              float64       // throughput without growth, per ns; 0: unknown

	// The growth.
	growing   bool
	since     time.Duration
	first     float64 // in flight when it began
	done      int     // completions since then
	quickDone int     // of these, the quick ones
	inFlight  float64 // at the last rise
	mean      float64 // time at the last rise
	rises     int
	older     int // requests from before that are still in flight, at most

	// Since the older ones have left.
	base     sample // the first windows of this
	expected float64
	all      int
	longest  float64 // time of one
}

// sample is a number of completions, of which the last window had so many in flight for so long.
type sample struct {
	all            int
	area           float64 // in flight × ns
	inFlight, mean float64
}

func (e *evidence) leastTime() float64 {
	if e.leastBefore == 0 {
		return e.least
	}
	return math.Min(e.least, e.leastBefore)
}

// watch records a completion while the gate is open, and closes the gate if there is evidence.
func (k *knee) watch(took time.Duration, inFlight int, useful bool) {
	e, x := &k.evidence, float64(took)
	if !useful && x < e.leastTime() {
		return // a failure that returns at once is not speed
	}
	k.all++
	e.took += x
	e.longest = math.Max(e.longest, x)
	if 2*x < e.mean {
		e.quick++
	}
	length := k.last - k.since
	if k.all < watchLeast || length < watchTime {
		return
	}
	now := sample{k.all, k.area, k.area / float64(length), e.took / float64(k.all)}
	if e.record(k.last, length, now, float64(k.most)) {
		k.close(inFlight, float64(k.all)/float64(length))
		return
	}
	e.took, e.quick = 0, 0
	k.restart()
}

// record records a window, and reports whether there is evidence of overload.
func (e *evidence) record(now, length time.Duration, w sample, most float64) bool {
	e.windows++
	if e.smooth == 0 {
		e.smooth, e.least = w.mean, w.mean
	}
	e.smooth += (w.mean - e.smooth) / 4
	switch {
	case !e.settled && e.windows > watchLeast && now-e.generation >= time.Duration(settleTimes*e.smooth):
		// Before, only quick requests could be over.
		e.settled, e.least, e.generation, e.windows = true, e.smooth, now, 0
	case e.windows > watchLeast && now-e.generation >= max(leastFor, time.Duration(leastTimes*e.least)):
		e.leastBefore, e.least = e.least, e.smooth
		e.generation, e.windows = now, 0
	default:
		e.least = math.Min(e.least, e.smooth)
	}
	least, rate := e.leastTime(), float64(w.all)/float64(length)
	switch {
	case math.Max(w.mean, e.smooth) <= least+math.Max(tolerance*least, float64(bearable)):
		e.growing, e.mean = false, 0
		e.usual = cmp.Or(e.usual, rate)
		e.usual += (rate - e.usual) / 4
		return false
	case w.inFlight >= saturated*most:
		return true
	case !e.growing || w.inFlight < e.inFlight/(rise*rise) || math.Max(w.mean, e.smooth) < e.mean/(rise*rise):
		e.begin(now, w)
		return false
	}
	e.done += w.all
	e.quickDone += e.quick
	if w.inFlight >= rise*e.inFlight && w.mean >= rise*e.mean {
		e.inFlight, e.mean = w.inFlight, w.mean
		e.rises++
	}
	return e.isEven(now, w) || e.isMixed(now, w)
}

func (e *evidence) begin(now time.Duration, w sample) {
	e.growing, e.since, e.first, e.done, e.quickDone = true, now, w.inFlight, 0, 0
	e.inFlight, e.mean, e.rises = w.inFlight, w.mean, 0
	e.older, e.base, e.expected, e.all = int(w.inFlight), sample{}, 0, 0
}

// grownFrom reports whether more are in flight than before by more than chance explains.
func (w sample) grownFrom(before float64) bool {
	return w.inFlight >= before+sure*math.Sqrt(before)
}

func (e *evidence) isEven(now time.Duration, w sample) bool {
	done := float64(e.done)
	return e.rises >= rises && w.grownFrom(e.first) && float64(e.quickDone) <= quickShare*done &&
		done >= unfallen*e.usual*float64(now-e.since)
}

func (e *evidence) isMixed(now time.Duration, w sample) bool {
	switch {
	case e.older > 0:
		e.older -= w.all
		return false
	case e.base.all < 4*watchLeast:
		if e.base.all == 0 {
			e.longest = 0
		}
		e.base = sample{e.base.all + w.all, e.base.area + w.area, w.inFlight, w.mean}
		return false
	}
	e.all += w.all
	e.expected += w.area * float64(e.base.all) / e.base.area
	if w.inFlight < rise*rise*e.base.inFlight || math.Max(w.mean, e.smooth) < rise*e.base.mean || !w.grownFrom(e.base.inFlight) {
		return false
	}
	all := float64(e.all)
	if e.longest > longestShare*float64(now-e.since) {
		return false
	}
	if e.expected > fewer*all && e.expected-all > fewerSure*math.Sqrt(e.expected*(1+e.expected/float64(e.base.all))) {
		return true
	}
	if w.inFlight > 4*e.base.inFlight { // so far the throughput has followed
		e.base, e.expected, e.all = sample{}, 0, 0
	}
	return false
}

// close sets the limit after evidence of overload, at a throughput per ns.
func (k *knee) close(inFlight int, rate float64) {
	e := &k.evidence
	c := rate * math.Max(e.leastTime(), float64(bearable)/2)
	*k = knee{least: k.least, most: k.most, since: k.last, last: k.last, lastFull: k.last, step: stepLeast, compareNext: true}
	k.limit = k.enough(c)
	k.enter(cruising, k.limit)
	k.skip += inFlight // those that have come before
}

// reopen lifts the limit.
func (k *knee) reopen() {
	*k = knee{least: k.least, most: k.most, limit: k.most, current: k.most, since: k.last, last: k.last}
	k.evidence.generation = k.last
}
