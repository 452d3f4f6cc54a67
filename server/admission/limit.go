package admission

import (
	"math"
	"time"
)

// The adaptive limit after evidence of overload (evidence.go): how many requests in flight are enough.
//
// A server with room for c requests at a time, each of which takes S, has the
// throughput
//
//	X(L) = min(L, c) / S
//
// when L are kept in flight. Beyond the knee, L = c, nothing is gained. What is admitted
// waits inside the server, where nobody can refuse it: by Little's law it takes L/X. So c
// must be found. Neither c nor S is known, and both change.
//
// The limit is compared with its half. A window of requests is watched at L, then one
// at l = L/2, then one at L again, and with X, x the useful completions per second
//
//	c = l × X / x
//
// which is exact as long as l ≤ c ≤ L. Then L becomes c plus a fifth, or plus √c if that
// is more. A limit that is too high costs some time (L/c); one that is too low costs work
// that is not done.
//
//   - If X/x = L/l, the knee is not reached. L grows, and its throughput is compared with
//     the one before. It grows again, by twice the step (at most to 2L), as long as that
//     gains half of what it could.
//   - If x = X, c may be anything below l: L becomes l. So a limit that is ten times too
//     high is right after four comparisons.
//   - Comparisons that agree are averaged, and made less and less often. A result that was
//     too low by chance would last, so a larger limit is tried before each (below).
//
// The formula is that of a gradient controller (limit × RTT without load / RTT, as in
// Envoy's adaptive concurrency filter and Netflix' concurrency-limits), with two
// differences. First, no time without load is remembered: L is compared with a throughput
// that is a few windows old at most. When a dependency takes five times as long, X and x
// fall alike, and c stays the same; a remembered time would shrink the limit to its
// minimum. Second, nothing is measured at a fixed, small number in flight, which may be
// more than c. Completions are counted; times are not measured. The two are the same while
// requests wait (Little's law), and failures that return at once do not count as speed.
//
// Before l, a larger limit is tried: by a quarter, or by half once comparisons agree. That costs nobody
// a place. If it achieves more, or there is not more to do, the limit was too low and is
// now larger. So a lower limit is looked for only under overload. While fewer are in
// flight than the limit allows, nothing is learned, and nothing needs to be.
//
// Cost: some 20 ns a request, and 410 bytes with the evidence.
const (
	leastRounds   = 4    // least completions in a window, as a multiple of the limit
	mostRounds    = 16   // most of them, unless coarse needs more
	coarse        = 64   // 1 / square of the largest standard error that a window may have
	fine          = 1024 // 1 / square of the standard error that is aimed at once a knee was found
	mostLength    = 512  // most completions in a window, unless leastRounds needs more
	saturated     = 0.85 // a window counts if the mean in flight is at least this part of the limit
	headroom      = 0.2  // beyond the knee c; and no less than √c
	proportional  = 0.92 // if knee / limit is at least this, the limit is too low to show a knee
	halfIsEnough  = 1.15 // knee / half the limit up to which half is enough
	maxAgreements = 6    // the pause after a comparison is at most 2^maxAgreements / 2 times as long as it
	unsteady      = 1.5  // if two figures that should be equal differ by this factor, something else has changed
	tryStep       = 0.5  // by which a limit is exceeded to see whether that achieves more
	stepLeast     = 0.25 // growth of a limit that has shown no knee
)

type phase uint8

const (
	open     phase = iota // no evidence of overload: at the most
	cruising              // at the limit
	draining              // at half of it, as soon as enough have departed
	halved                // at half of it
	restored              // at the limit again, to compare
)

// knee is the adaptive limit at work. The controller's lock guards it.
type knee struct {
	least, most int
	limit       int // L
	current     int // what holds now: L, or l while comparing
	phase       phase
	step        float64 // by which a limit that is too low grows, as a part of it
	meanKnee    float64 // mean of the comparisons that agreed
	agreements  int     // how many did
	noKnee      bool    // the last one showed no knee
	triedLarger bool    // a larger limit, since the last comparison with half of it
	found       bool    // a knee, ever
	compareNext bool    // compare after the next window

	// How much the times of requests vary.
	mean, square float64

	// The window.
	skip        int // completions before it begins
	since, last time.Duration
	useful, all int
	missed      int     // first attempts refused for want of room
	area        float64 // in flight × ns

	rateBefore float64       // X before the comparison, per ns
	lowerRate  float64       // x
	lowerLimit int           // l
	lowerTook  time.Duration // how long its window took
	grown      bool          // l is the limit before it grew, not its half
	cruised    time.Duration
	usual      float64       // mean time of a request when the limit was last found right, ns
	lastFull   time.Duration // when the limit was last in use

	evidence evidence // while open
}

func newKnee(least, most int) knee {
	return knee{least: least, most: most, limit: most, current: most}
}

// advance records that inFlight requests were in flight until now.
func (k *knee) advance(now time.Duration, inFlight int) {
	if now > k.last {
		k.area += float64(inFlight) * float64(now-k.last)
		k.last = now
	}
}

func (k *knee) restart() {
	k.since, k.useful, k.all, k.area, k.missed = k.last, 0, 0, 0, 0
}

// enter begins a phase with the limit current. Its window begins after one round of
// completions: those of requests that came before.
func (k *knee) enter(p phase, current int) {
	k.phase, k.current, k.skip = p, current, current
}

// length returns how many completions a window has. They are whole rounds, since requests
// that take equally long come in bunches. They are so many that the standard error of
// their number is at most an eighth; once a knee was found and if few rounds suffice, a
// thirty-second.
func (k *knee) length() int {
	varies := 1.0 // square of the coefficient of variation
	if k.mean > 0 {
		varies = math.Max(0, k.square/(k.mean*k.mean)-1)
	}
	current := float64(k.current)
	n := coarse * varies
	if k.found { // before that, a wrong limit costs more than a wrong comparison
		n = math.Max(n, math.Min(fine*varies, mostRounds*current))
	}
	n = math.Max(math.Min(n, mostLength), leastRounds*current)
	return int(math.Ceil(n/current)) * k.current
}

func (k *knee) learn(took time.Duration) {
	x := float64(took)
	if k.mean == 0 {
		// As if times were exponential.
		k.mean, k.square = x, 2*x*x
		return
	}
	const of = 64
	k.mean += (x - k.mean) / of
	k.square += (x*x - k.square) / of
}

// departed records a completion after the time took, which leaves inFlight in flight.
// advance was called for the same moment.
func (k *knee) departed(took time.Duration, inFlight int, useful bool) {
	if k.phase == open {
		k.watch(took, inFlight, useful)
		return
	}
	if k.skip <= k.current {
		k.learn(took)
	}
	switch {
	case k.phase == draining:
		if inFlight <= k.current {
			k.enter(halved, k.current)
		}
		return
	case k.skip > 0:
		if k.skip--; k.skip == 0 {
			k.restart()
		}
		return
	}
	k.all++
	if useful {
		k.useful++
	}
	took = k.last - k.since
	full := k.area >= saturated*float64(k.current)*float64(took)
	idle := !full && k.missed == 0 && took >= calmFor // no reason to wait for more
	if k.all < k.length() && !idle || took <= 0 {
		return
	}
	rate, mean := float64(k.useful)/float64(took), k.area/float64(k.all)
	failing, missed := k.useful < k.all*4/5, k.missed > 0
	k.restart()
	if full {
		k.lastFull = k.last
	} else {
		if k.last-k.lastFull >= calmFor {
			k.reopen()
			return
		}
		// There was too little to do to learn anything.
		// A limit that has grown beyond the demand may stay, since it refuses nobody. It
		// goes back if what it lets in fails, at once.
		k.cruised, k.triedLarger = 0, k.triedLarger && failing
		if k.phase == restored && k.grown && failing && rate <= halfIsEnough*k.lowerRate {
			k.limit = k.lowerLimit
		}
		if missed && !failing && k.phase == cruising {
			// The limit is high enough on average, and too low for bursts.
			k.limit = min(k.limit+max(1, k.limit/4), k.most)
		}
		if k.phase != cruising || k.current != k.limit {
			k.enter(cruising, k.limit)
		}
		return
	}
	switch k.phase {
	case cruising:
		k.cruised += took
		k.rateBefore = rate
		if k.compareNext || differ(mean, k.usual) || k.cruised >= k.lowerTook<<k.agreements>>1 {
			k.compareNext = false
			k.usual = mean
			k.compare(inFlight)
		}
	case halved:
		k.lowerRate, k.lowerTook = rate, took
		k.enter(restored, k.limit)
	case restored:
		k.usual, k.cruised = mean, 0
		k.decide(rate)
	}
}

// compare begins a comparison. A limit of one has no half: it is the half of two.
func (k *knee) compare(inFlight int) {
	half := max(k.limit/2, k.least)
	switch {
	case !k.triedLarger && k.limit < k.most:
		// A larger limit costs nobody a place. If it achieves more, or there is not more to
		// do, a try of half would have been wrong.
		k.triedLarger = true
		if k.agreements > 0 {
			k.step = tryStep
		}
		k.grow(k.rateBefore)
	case half < k.limit:
		k.lowerLimit, k.grown = half, false
		k.enter(draining, half)
		if inFlight <= half {
			k.phase = halved
		}
	default:
		k.grow(k.rateBefore)
	}
}

// grow enters a larger limit, which is compared with the present one and its rate. A limit
// that only grows need not be halved for that.
func (k *knee) grow(rate float64) {
	k.lowerRate, k.lowerLimit, k.grown = rate, k.limit, true
	k.limit = min(k.limit+max(1, int(k.step*float64(k.limit))), k.most)
	k.step = math.Min(1, 2*k.step)
	k.enter(restored, k.limit)
}

// decide sets the limit, given X after the comparison.
func (k *knee) decide(after float64) {
	old, high := k.limit, (k.rateBefore+after)/2
	if k.grown {
		high = after
	} else if differ(after, k.rateBefore) {
		high = 0
	}
	if best := math.Max(after, k.rateBefore); !k.grown && k.lowerLimit < k.limit && k.lowerRate >= unsteady*best {
		// Less achieves more: callers do not wait for as long as this limit takes.
		k.limit, k.agreements, k.step, k.triedLarger = k.lowerLimit, 0, stepLeast, false
		k.enter(cruising, k.limit)
		return
	}
	k.rateBefore = after
	if high <= 0 || k.lowerLimit == k.limit {
		k.compareNext = true
		k.phase = cruising
		return
	}
	c := float64(k.most)
	if k.lowerRate > 0 {
		c = math.Min(c, float64(k.lowerLimit)*high/k.lowerRate)
	}
	tight := c >= proportional*float64(k.limit)
	if k.grown {
		tight = c >= float64(k.lowerLimit+k.limit)/2
	}
	if tight && k.limit < k.most && (k.agreements == 0 || k.noKnee || k.grown) {
		k.agreements, k.noKnee, k.triedLarger = 0, false, false
		k.grow(after)
		return
	}
	if k.grown && k.triedLarger && !tight {
		k.limit, k.compareNext = k.lowerLimit, true
		k.step = stepLeast
		k.enter(cruising, k.limit)
		return
	}
	k.noKnee, k.triedLarger = tight, false
	k.found = k.found || !tight
	agrees := k.agreements > 0 && !differ(c, k.meanKnee)
	if agrees {
		c = k.meanKnee + (c-k.meanKnee)/float64(k.agreements+1)
	}
	switch {
	case tight:
		k.compareNext = true
	case !k.grown && !agrees && c <= halfIsEnough*float64(k.lowerLimit):
		k.agreements, k.step = 0, stepLeast
		k.limit = k.lowerLimit
	default:
		k.meanKnee, k.step = c, stepLeast
		k.limit = k.enough(c)
		if agrees {
			k.agreements = min(k.agreements+1, maxAgreements)
		} else {
			k.agreements = 1
		}
	}
	if k.limit == old {
		k.phase = cruising
		return
	}
	k.enter(cruising, k.limit)
}

// differ reports whether two figures differ by more than chance explains.
func differ(a, b float64) bool { return a > unsteady*b || b > unsteady*a }

// enough returns the limit for a knee at c.
func (k *knee) enough(c float64) int {
	return min(max(int(c+math.Max(headroom*c, math.Sqrt(c))), k.least), k.most)
}
