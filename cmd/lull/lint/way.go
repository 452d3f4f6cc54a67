package lint

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/choice"
)

// A way leads to a leaf, from a service that no other in the graph calls or that reads from a queue.
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

// covers reports whether every continuation of r is at least as bad as the same one of other, and as much of a finding.
func (r *reach) covers(other *reach) bool {
	return r.first >= other.first && r.sum() >= other.sum() && r.multiplicity >= other.multiplicity
}

// mostReaches is how many ways to a service are continued. There is seldom more than one that no other covers.
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

// servers are the services of the way that are called along it or read messages, with lull's server half or without.
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

// end is the number of attempts at the end of the way if these services have lull's server half. inTime: their failures come in time
// with "don't retry", which all callers but queues heed.
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
	return choice.Each(numbers, func(n uint64) string { return strconv.FormatUint(n, 10) })
}

func (r *reach) compare(other *reach) int {
	return cmp.Or(cmp.Compare(r.multiplicity, other.multiplicity), cmp.Compare(r.sum(), other.sum()))
}

// A load is the requests at a point of the call graph for one at its beginning: first attempts, and what is known to be a retry.
type load struct{ first, again uint64 }

func (l load) sum() uint64 { return plus(l.first, l.again) }

// seenBy is l as a server sees it: only one with lull's server half distinguishes retries from other requests.
func (l load) seenBy(hasLullServer bool) load {
	return choice.Either(hasLullServer, l, load{first: l.sum()})
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

// retriesRetries reports whether a call to d that is made for a retry makes as many attempts as any other.
func (d *dependency) retriesRetries() bool { return d.Policy.Nested == lull.NestedAlways }

func (s *service) hasLullServer() bool { return s.Server == config.LullServer }

// arrives is the load of s from outside of the graph. A message that the queue delivers again is a retry.
func (s *service) arrives() load { return load{1, uint64(max(s.Deliveries, 1)) - 1} }

// product is a×b, or the largest number if that overflows.
func product(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return choice.Either(hi != 0, math.MaxUint64, lo)
}

func plus(a, b uint64) uint64 {
	s, carry := bits.Add64(a, b, 0)
	return choice.Either(carry != 0, math.MaxUint64, s)
}

func attemptsFigure(n uint64) string {
	return choice.Either(n == math.MaxUint64, "more than 10^19", strconv.FormatUint(n, 10))
}

func (w way) begins() string {
	return choice.Either(w.root.Deliveries > 1, "message for "+w.root.Name, "request to "+w.root.Name)
}

func (w way) sum() []Step {
	var steps []Step
	l := w.root.arrives()
	if n := w.root.Deliveries; n > 1 {
		steps = append(steps, Step{fmt.Sprintf("a %s: %d deliveries", w.begins(), n), "× " + strconv.Itoa(n), attemptsFigure(l.sum())})
	}
	for _, h := range w.hops {
		l = l.seenBy(h.from.hasLullServer())
		n, before := h.call.to.most(), l.sum()
		l = l.through(n, h.call.to.retriesRetries())
		what := fmt.Sprintf("%s calls %s: %s", h.from.Name, h.call.Dependency, term.Counted(int(n), "attempt"))
		value := "× " + strconv.FormatUint(n, 10)
		if l.sum() != product(before, n) {
			what += ", 1 for a retry"
			value = "+ " + attemptsFigure(l.sum()-before)
		}
		steps = append(steps, Step{what, value, attemptsFigure(l.sum())})
	}
	return compact(steps)
}

// ifServers describes the effect of lull's server half: where it is, and where it could be.
func (w way) ifServers() []Step {
	var steps []Step
	known, unknown := w.servers(true), w.servers(false)
	now := w.end((*service).hasLullServer, false)
	if without := w.end(nobody, false); without != now {
		steps = append(steps, Step{"without lull's server half in " + few(known), strings.Join(shortened(figures(w.factors())), " × "), attemptsFigure(without)})
	}
	inTime := func(and string, hasLullServer func(*service) bool, most uint64) {
		if n := w.end(hasLullServer, true); n < most {
			steps = append(steps, Step{What: and + `as long as failures come back up in time, each with its "don't retry"`, Total: attemptsFigure(n)})
		}
	}
	inTime("", (*service).hasLullServer, now)
	if len(unknown) == 0 {
		return steps
	}
	what := fmt.Sprintf("if %s %s with lull's server half", few(unknown), verb(len(unknown), "answers", "answer"))
	if len(known) > 0 {
		what += ", too"
	}
	with := w.end(everyone, false)
	if all := w.factors(); with == sumOf(all) {
		steps = append(steps, Step{what + ", a retry is not retried once more (nested: never)", strings.Join(shortened(asSum(all)), " + "), attemptsFigure(with)})
	} else {
		steps = append(steps, Step{What: fmt.Sprintf("%s: retries are retried at %s all the same (nested: always)", what, few(w.retryingRetries())), Total: attemptsFigure(with)})
	}
	inTime("and ", everyone, with)
	return steps
}

// retryingRetries are the dependencies at which every client would retry retries.
func (w way) retryingRetries() (all []string) {
	for i, h := range w.hops {
		if (i > 0 || w.root.Deliveries > 1) && h.call.to.most() > 1 && h.call.to.retriesRetries() {
			all = append(all, h.call.to.Name)
		}
	}
	return all
}

// budgets describes the effect of budgets over many requests; empty if a layer has none.
func (w way) budgets() []Step {
	if w.root.Deliveries > 1 {
		return nil
	}
	share := 1.0
	var parts []string
	for _, h := range w.hops {
		if h.call.to.most() < 2 {
			continue
		}
		extra := h.call.to.paid()
		if math.IsInf(extra, 0) {
			return nil
		}
		share *= 1 + extra
		parts = append(parts, number(1+extra))
	}
	return []Step{{"over many requests the budgets hold it to", strings.Join(shortened(parts), " × "), number(share) + " times"}}
}

// paid is the largest share of the calls to d that its budget adds as retries.
func (d *dependency) paid() float64 {
	b := d.Policy.Budget
	switch {
	case b.Unlimited:
		return math.Inf(1)
	case b.Floor > 0: // the rate of calls is not known, so it may be any share
		return cmp.Or(b.Ratio, budget.DefaultRatio) + b.Floor/d.Rate
	}
	return cmp.Or(b.Ratio, budget.DefaultRatio)
}

// otherWays describes the load of the leaf on all ways from root, with repeated calls, if it is more than on the worst way.
func (g graph) otherWays(root *service, end leaf, worst uint64) []Step {
	type flow struct {
		load
		calls uint64
	}
	and := func(a, b flow) flow {
		return flow{load{plus(a.first, b.first), plus(a.again, b.again)}, plus(a.calls, b.calls)}
	}
	in := map[*service]flow{root: {root.arrives(), 1}}
	var sum flow
	for _, s := range g.order {
		f, ok := in[s]
		if !ok {
			continue
		}
		f.load = f.seenBy(s.hasLullServer())
		for _, c := range s.calls {
			if c.to == nil || g.back[c] {
				continue
			}
			n := uint64(c.times())
			made := flow{load{product(f.first, n), product(f.again, n)}.through(c.to.most(), c.to.retriesRetries()), product(f.calls, n)}
			switch {
			case !c.leaf(g):
				in[c.answered] = and(in[c.answered], made)
			case c.end() == end:
				sum = and(sum, made)
			}
		}
	}
	if sum.sum() <= worst {
		return nil
	}
	return []Step{{What: fmt.Sprintf("all ways from %s to %s, and calls made several times: %s calls while all is well, and at most", root.Name, end.name, attemptsFigure(sum.calls)), Total: attemptsFigure(sum.sum())}}
}
