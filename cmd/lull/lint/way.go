package lint

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config"
)

// A way leads to a leaf, from a service that no other in the graph calls or that reads from a
// queue.
type way struct {
	root *service
	hops []hop
}

type hop struct {
	from *service
	call *call
}

// A multiplicity is how the retries of several layers combine along a way.
type multiplicity uint8

const (
	oneLayer   multiplicity = iota // at most one layer retries
	adding                         // several layers retry, and no retry is retried
	multiplied                     // retries are retried
)

// A reach is a way as far as a service.
type reach struct {
	load // as the service there sees it
	multiplicity
	from *reach // nil: the way begins at the service
	hop         // the last hop, if there is one
}

func (s *service) begins() *reach { return &reach{load: s.arrives().seenBy(s.hasLullServer())} }

// on extends r by the call c of its service, and gives the load on the other side.
func (r *reach) on(s *service, c *call) *reach {
	n := c.to.most()
	out := r.through(n, c.to.retriesRetries())
	m := r.multiplicity
	if before := r.sum(); n > 1 && before > 1 {
		m = max(m, adding)
		if out.sum() > plus(before, n-1) {
			m = multiplied
		}
	}
	return &reach{out, m, r, hop{s, c}}
}

func (r *reach) to(s *service) *reach {
	r.load = r.seenBy(s.hasLullServer())
	return r
}

// covers reports whether every continuation of r is at least as bad as the same continuation of
// other, and at least as much of a finding.
func (r *reach) covers(other *reach) bool {
	return r.first >= other.first && r.sum() >= other.sum() && r.multiplicity >= other.multiplicity
}

// mostReaches is how many ways to a service are continued. There is seldom more than one that no
// other covers.
const mostReaches = 16

// among adds a way to the ways to a service, and removes those that another covers.
func among(all []*reach, one *reach) []*reach {
	if slices.ContainsFunc(all, func(r *reach) bool { return r.covers(one) }) {
		return all
	}
	all = append(slices.DeleteFunc(all, one.covers), one)
	if len(all) > mostReaches {
		least := slices.MinFunc(all, func(a, b *reach) int { return cmp.Compare(a.sum(), b.sum()) })
		all = slices.DeleteFunc(all, func(r *reach) bool { return r == least })
	}
	return all
}

func (r *reach) way() way {
	var w way
	for ; r.from != nil; r = r.from {
		w.hops = append(w.hops, r.hop)
	}
	slices.Reverse(w.hops)
	w.root = w.hops[0].from
	return w
}

// servers are the services of the way whose kind of server matters, because they are called along
// it or read messages: those with lull's server half, or those without.
func (w way) servers(hasLullServer bool) (names []string) {
	for i, h := range w.hops {
		if (i > 0 || w.root.Deliveries > 1) && h.from.hasLullServer() == hasLullServer {
			names = append(names, h.from.Name)
		}
	}
	return names
}

func (w way) factors() (all []uint64) {
	if n := w.root.Deliveries; n > 1 {
		all = append(all, uint64(n))
	}
	for _, h := range w.hops {
		if n := h.call.to.most(); n > 1 {
			all = append(all, n)
		}
	}
	return all
}

// end is the number of attempts at the end of the way if the given services have lull's server
// half. A failure of such a server comes in time and has "don't retry", so its caller does not
// retry. A queue does, because its messages have no other reader.
func (w way) end(hasLullServer func(*service) bool, inTime bool) uint64 {
	l := w.root.arrives()
	for i, h := range w.hops {
		n := h.call.to.most()
		if last := i == len(w.hops)-1; inTime && !last && hasLullServer(w.hops[i+1].from) {
			n = 1
		}
		l = l.seenBy(hasLullServer(h.from)).through(n, h.call.to.retriesRetries())
	}
	return l.sum()
}

func everyone(*service) bool { return true }
func nobody(*service) bool   { return false }

// sumOf is the number of attempts if the retries of layers add up.
func sumOf(factors []uint64) uint64 {
	n := uint64(1)
	for _, f := range factors {
		n = plus(n, f-1)
	}
	return n
}

// asSum is the same as text: "4 + 3 + 3".
func asSum(factors []uint64) []string {
	less := slices.Clone(factors)
	for i := 1; i < len(less); i++ {
		less[i]--
	}
	return figures(less)
}

func figures(numbers []uint64) []string {
	var all []string
	for _, n := range numbers {
		all = append(all, strconv.FormatUint(n, 10))
	}
	return all
}

func (r *reach) compare(other *reach) int {
	return cmp.Or(cmp.Compare(r.multiplicity, other.multiplicity), cmp.Compare(r.sum(), other.sum()))
}

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
func (s *service) arrives() load { return load{1, uint64(max(s.Deliveries, 1)) - 1} }

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
