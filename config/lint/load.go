package lint

import (
	"math"
	"math/bits"
	"strconv"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config"
)

// A load is how many requests there may be at a point of the call graph for one where it
// begins: those that the server there takes for first attempts of its caller, and those
// that it knows to be retries.
type load struct{ first, again uint64 }

// sum is all of them.
func (l load) sum() uint64 { return plus(l.first, l.again) }

// seenBy is l to a server: only one with lull's server half tells retries from others.
func (l load) seenBy(lulls bool) load {
	if lulls {
		return l
	}
	return load{first: l.sum()}
}

// through is what l becomes by a call that is made for each of its requests, all attempts
// of which fail.
func (l load) through(attempts uint64, again bool) load {
	out := load{l.first, product(l.first, attempts-1)}
	if again {
		out.again = plus(out.again, product(l.again, attempts))
	} else {
		out.again = plus(out.again, l.again)
	}
	return out
}

// most is the most attempts that one call to d makes.
func (d *dependency) most() uint64 { return uint64(max(d.attempts(), 1)) }

// retriesRetries tells whether a call to d that is made for a retry makes as many attempts
// as any other.
func (d *dependency) retriesRetries() bool { return d.Policy.Nested == lull.NestedAlways }

// lulls tells whether s has lull's server half.
func (s *service) lulls() bool { return s.Server == config.LullServer }

// arrives is how a message, or a request, comes to s if nobody of the graph calls it: what
// the queue delivers more than once is a retry.
func (s *service) arrives() load {
	return load{1, uint64(max(s.Deliveries, 1)) - 1}
}

// product is a×b, or the largest number there is.
func product(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi != 0 {
		return math.MaxUint64
	}
	return lo
}

func plus(a, b uint64) uint64 {
	s, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return s
}

// attemptsFigure is a number of attempts; the largest number stands for more.
func attemptsFigure(n uint64) string {
	if n == math.MaxUint64 {
		return "more than 10^19"
	}
	return strconv.FormatUint(n, 10)
}
