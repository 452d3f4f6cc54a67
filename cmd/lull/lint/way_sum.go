package lint

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/cmd/lull/internal/term"
)

func (w way) begins() string {
	if w.root.Deliveries > 1 {
		return "message for " + w.root.Name
	}
	return "request to " + w.root.Name
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

func paths(services []string) (all []string) {
	for _, name := range services {
		all = append(all, "services."+name)
	}
	return all
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

// otherWays describes the load of the leaf on all ways from root together, including repeated
// calls, if it is more than on the worst way.
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
