package lint

import (
	"math"
	"math/bits"
	"strconv"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config"
)

// A load is the number of requests at a point of the call graph for one request at its beginning:
// first attempts of callers as the server there sees them, and requests that it knows to be
// retries.
type load struct{ first, again uint64 }

func (l load) sum() uint64 { return plus(l.first, l.again) }

// seenBy is l as a server sees it: only one with lull's server half distinguishes retries from
// other requests.
func (l load) seenBy(hasLullServer bool) load {
	if hasLullServer {
		return l
	}
	return load{first: l.sum()}
}

// through is l after a call for each of its requests, if all attempts of these calls fail.
func (l load) through(attempts uint64, again bool) load {
	out := load{l.first, product(l.first, attempts-1)}
	if again {
		out.again = plus(out.again, product(l.again, attempts))
	} else {
		out.again = plus(out.again, l.again)
	}
	return out
}

func (d *dependency) most() uint64 { return uint64(max(d.attempts(), 1)) }

// retriesRetries reports whether a call to d that is made for a retry makes as many attempts as any
// other.
func (d *dependency) retriesRetries() bool { return d.Policy.Nested == lull.NestedAlways }

func (s *service) hasLullServer() bool { return s.Server == config.LullServer }

// arrives is the load of s from outside of the graph. A message that the queue delivers again is a
// retry.
func (s *service) arrives() load {
	return load{1, uint64(max(s.Deliveries, 1)) - 1}
}

// product is a×b, or the largest number if that overflows.
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

func attemptsFigure(n uint64) string {
	if n == math.MaxUint64 {
		return "more than 10^19"
	}
	return strconv.FormatUint(n, 10)
}
