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
)

func layerRules() []Rule {
	return []Rule{{
		ID:       "retries-in-layers",
		Severity: Warning,
		Title:    "Retries of several layers multiply",
		Why: `If each layer repeats what fails below it, attempts multiply: with four in each of three
layers, one call at the top becomes 4 × 4 × 4 = 64 at the bottom, and it does so when the
bottom is down. One layer should retry, the one next to the failure, since it repeats the least
work; the others should pass the failure on.

The rule follows the calls of the services, and at each leaf (what is answered by no service
of the files, or by one that calls nothing) multiplies the attempts along the worst way there,
deliveries of a queue included. It finds leaves with more than one such layer.

lull has a rule of its own for this (Policy.Nested, never by default): a server that is at work
on a retry does not retry its own calls, and one whose calls have failed for good tells its
caller not to retry. It needs lull's half in the server, which a file cannot show: so the
finding says both figures. Budgets bound the average over many requests, not the one request.`,
		Sources: []Source{srcCascading, srcOverload, srcBuilders},
		Bad: `dependencies:
  orders: {attempts: 4, attempt_timeout: 5s}
  stock: {attempts: 4, attempt_timeout: 1s}
  db: {attempts: 4, attempt_timeout: 200ms}
services:
  shop: {calls: [orders]}
  orders: {calls: [stock]}
  stock: {calls: [db]}
`,
		Good: `dependencies:
  orders: {attempts: 1}
  stock: {attempts: 1}
  db: {attempts: 4, attempt_timeout: 200ms}
services:
  shop: {calls: [orders]}
  orders: {calls: [stock]}
  stock: {calls: [db]}
`,
		check: retriesInLayers,
	}, {
		ID:       "call-cycle",
		Severity: Error,
		Title:    "Services call each other in a circle",
		Why: `A request that can come back to a service that is waiting for it has no worst case: no
bound on attempts, and none on time. One service that waits for another which waits for it is
also how both run out of workers at once. If the circle is never closed for one request (the
second call is for something else), give the two kinds of request names of their own.

The rule finds calls that lead back to the service that makes them. What lies on a circle is
left out of the sums of other rules.`,
		Sources: []Source{srcCascading},
		Bad: `dependencies:
  orders: {attempts: 1}
  billing: {attempts: 1}
services:
  orders: {calls: [billing]}
  billing: {calls: [orders]}
`,
		Good: `dependencies:
  ledger: {attempts: 1}
  billing: {attempts: 1}
services:
  orders: {calls: [billing]}
  billing: {calls: [ledger]}
`,
		check: callCycle,
	}}
}

// A graph is the services in an order in which each stands before those that it calls.
type graph struct {
	order []*service
	back  map[*call]bool // calls that close a circle, and are left out
}

func (p *pass) graph() graph {
	g := graph{back: map[*call]bool{}}
	const (
		underWay = 1
		seen     = 2
	)
	state := map[*service]int{}
	type frame struct {
		s    *service
		next int
	}
	for _, root := range p.services {
		if state[root] != 0 {
			continue
		}
		stack := []frame{{s: root}}
		state[root] = underWay
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			if f.next == len(f.s.calls) {
				state[f.s] = seen
				g.order = append(g.order, f.s)
				stack = stack[:len(stack)-1]
				continue
			}
			c := f.s.calls[f.next]
			f.next++
			switch to := c.answered; {
			case to == nil:
			case state[to] == underWay:
				g.back[c] = true
			case state[to] == 0:
				state[to] = underWay
				stack = append(stack, frame{s: to})
			}
		}
	}
	for i, j := 0, len(g.order)-1; i < j; i, j = i+1, j-1 {
		g.order[i], g.order[j] = g.order[j], g.order[i]
	}
	return g
}

// mostCircles is how many are reported: each takes a search.
const mostCircles = 20

func callCycle(p *pass) {
	g := p.graph()
	reported := 0
	for _, s := range p.services {
		for _, c := range s.calls {
			if !g.back[c] || reported == mostCircles {
				continue
			}
			reported++
			way := circle(c, s)
			var steps []Step
			for i, name := range way[1:] {
				steps = append(steps, Step{What: way[i] + " calls " + name})
			}
			p.report(s.in, c.path, fmt.Sprintf("calls go in a circle: %s", strings.Join(shortened(way), " → ")), compact(steps),
				Fix{Text: fmt.Sprintf("take %s out of the calls of %s, or, if no request goes all the way round, write what is called as a dependency of its own that no service provides", c.Dependency, s.Name)})
		}
	}
}

// shortened is a way without its middle, if that is long.
func shortened(way []string) []string {
	if len(way) <= 2*shown {
		return way
	}
	return slices.Concat(way[:shown], []string{"..."}, way[len(way)-shown:])
}

// circle is the shortest way from s by its call c back to s.
func circle(c *call, s *service) []string {
	from := map[*service]*service{c.answered: nil}
	queue := []*service{c.answered}
	for i := 0; i < len(queue) && queue[i] != s; i++ {
		for _, next := range queue[i].calls {
			if to := next.answered; to != nil {
				if _, ok := from[to]; !ok {
					from[to] = queue[i]
					queue = append(queue, to)
				}
			}
		}
	}
	way := []string{s.Name}
	for at := s; at != c.answered; {
		at = from[at]
		if at == nil {
			break
		}
		way = append(way, at.Name)
	}
	if c.answered != s {
		way = append(way, s.Name)
		for i, j := 1, len(way)-2; i < j; i, j = i+1, j-1 {
			way[i], way[j] = way[j], way[i]
		}
		return way
	}
	return append(way, s.Name)
}

// A reach is the worst way to a service.
type reach struct {
	attempts uint64 // product along the way
	by       *call  // the last call of it; nil: the service is where it begins
	from     *service
}

// leaf: no service is known to answer the call, or one that calls nothing further.
func (c *call) leaf(g graph) bool {
	if c.answered == nil {
		return true
	}
	for _, next := range c.answered.calls {
		if next.to != nil && !g.back[next] {
			return false
		}
	}
	return true
}

func retriesInLayers(p *pass) {
	g := p.graph()
	called := map[*service]bool{}
	for _, s := range g.order {
		for _, c := range s.calls {
			if c.answered != nil && !g.back[c] {
				called[c.answered] = true
			}
		}
	}
	worst := map[*service]reach{}
	type leaf struct {
		c    *call
		from *service
		n    uint64
	}
	var leaves []*leaf
	at := map[*dependency]*leaf{}
	for _, s := range g.order {
		r, ok := worst[s]
		if n := uint64(max(s.Deliveries, 1)); !ok || !called[s] || n > r.attempts {
			r = reach{attempts: n}
			worst[s] = r
		}
		for _, c := range s.calls {
			if c.to == nil || g.back[c] {
				continue
			}
			n := product(r.attempts, uint64(max(c.to.attempts(), 1)))
			if c.leaf(g) {
				switch l := at[c.to]; {
				case l == nil:
					l = &leaf{c, s, n}
					at[c.to], leaves = l, append(leaves, l)
				case n > l.n:
					*l = leaf{c, s, n}
				}
				continue
			}
			if w, ok := worst[c.answered]; !ok || n > w.attempts {
				worst[c.answered] = reach{n, c, s}
			}
		}
	}
	slices.SortStableFunc(leaves, func(a, b *leaf) int { return cmp.Compare(b.n, a.n) })
	for i, l := range leaves {
		if i == mostLeaves {
			break
		}
		p.layers(g, worst, l.c, l.from)
	}
}

// mostLeaves is how many leaves are looked at, the worst first: who mends these has
// mended the others, too.
const mostLeaves = 100

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

// figure of attempts; the largest number stands for more.
func attemptsFigure(n uint64) string {
	if n == math.MaxUint64 {
		return "more than 10^19"
	}
	return strconv.FormatUint(n, 10)
}

// A layer repeats what it is asked to do.
type layer struct {
	what     string
	attempts uint64
	nested   lull.NestedRetries
	d        *dependency // nil: a queue
	service  *service    // who calls d
	ratio    float64     // of its budget; infinite: none
}

// layers reports the leaf that c, a call of s, leads to, if more than one layer retries on
// the worst way there.
func (p *pass) layers(g graph, worst map[*service]reach, c *call, s *service) {
	var way []layer
	var root *service
	for at, by := s, c; ; {
		b := by.to.Policy.Budget
		l := layer{
			what:     fmt.Sprintf("%s calls %s: %s", at.Name, by.Dependency, count(by.to.attempts(), "attempt")),
			attempts: uint64(max(by.to.attempts(), 1)), nested: by.to.Policy.Nested, d: by.to, service: at, ratio: math.Inf(1),
		}
		if !b.Unlimited {
			l.ratio = b.Ratio
			if l.ratio == 0 {
				l.ratio = budget.DefaultRatio
			}
		}
		way = append(way, l)
		r := worst[at]
		if r.by == nil {
			root = at
			break
		}
		at, by = r.from, r.by
	}
	if n := root.Deliveries; n > 1 {
		way = append(way, layer{what: fmt.Sprintf("a message for %s: %s", root.Name, count(n, "delivery")), attempts: uint64(n), ratio: math.Inf(1)})
		way[len(way)-1].what = fmt.Sprintf("a message for %s: %d deliveries", root.Name, n)
	}
	for i, j := 0, len(way)-1; i < j; i, j = i+1, j-1 {
		way[i], way[j] = way[j], way[i]
	}
	var retrying []layer
	for _, l := range way {
		if l.attempts > 1 {
			retrying = append(retrying, l)
		}
	}
	if len(retrying) < 2 {
		return
	}
	total := uint64(1)
	var steps []Step
	var factors []string
	for _, l := range way {
		total = product(total, l.attempts)
		steps = append(steps, Step{l.what, "× " + strconv.FormatUint(l.attempts, 10), attemptsFigure(total)})
		if l.attempts > 1 {
			factors = append(factors, strconv.FormatUint(l.attempts, 10))
		}
	}
	steps = compact(steps)
	steps = append(steps, nestedSteps(way)...)
	steps = append(steps, p.otherWays(g, root, c.to, total)...)
	if s := budgetStep(retrying); s.What != "" {
		steps = append(steps, s)
	}
	name := c.Dependency
	p.report(c.to.in, c.to.at(c.to.attemptsField()),
		fmt.Sprintf("one request to %s may become %s attempts at %s: %d layers retry (%s)",
			root.Name, attemptsFigure(total), name, len(retrying), strings.Join(shortened(factors), " × ")),
		steps, p.oneLayer(g, root, c.to))
}

// nested is how many attempts there are at the bottom of way at the most, if servers know
// which attempt of their callers they are at work on and heed Policy.Nested.
func nested(way []layer) (most uint64) {
	fresh, again := uint64(1), uint64(1) // for a request that is a first attempt, or a retry
	for i := len(way) - 1; i >= 0; i-- {
		l := way[i]
		fresh = plus(fresh, product(l.attempts-1, again))
		if l.nested == lull.NestedAlways {
			again = product(l.attempts, again)
		}
	}
	return fresh
}

// nestedSteps say what lull's own rule makes of the product.
func nestedSteps(way []layer) []Step {
	var servers, always []string
	last := uint64(1)
	for i, l := range way {
		if i > 0 && l.service != nil {
			servers = append(servers, l.service.Name)
			if l.nested == lull.NestedAlways && l.attempts > 1 {
				always = append(always, l.d.Name)
			}
		}
		if l.attempts > 1 {
			last = l.attempts
		}
	}
	if len(servers) == 0 {
		return nil
	}
	who := fmt.Sprintf("if %s %s with lull's server half", few(servers), answers(len(servers)))
	most := nested(way)
	if len(always) > 0 {
		return []Step{{What: fmt.Sprintf("%s: nested: always at %s lets retries be retried", who, few(always)), Total: attemptsFigure(most)}}
	}
	var parts []string
	for i := len(way) - 1; i >= 0; i-- {
		if n := way[i].attempts; n > 1 {
			if len(parts) > 0 {
				n--
			}
			parts = append(parts, strconv.FormatUint(n, 10))
		}
	}
	if len(parts) > shown {
		parts = append(parts[:shown-1], "...")
	}
	return []Step{
		{fmt.Sprintf("%s, a retry is not retried once more (nested: never)", who), strings.Join(parts, " + "), attemptsFigure(most)},
		{What: "and as long as failures come back up in time, each with its \"don't retry\"", Total: attemptsFigure(last)},
	}
}

// few are names, not more than can be read.
func few(names []string) string {
	if len(names) > shown {
		return fmt.Sprintf("%s and %d others", strings.Join(names[:shown-1], ", "), len(names)-shown+1)
	}
	return list(names)
}

func answers(n int) string {
	if n == 1 {
		return "answers"
	}
	return "answer"
}

// otherWays says what comes to the leaf on all ways from root, calls made several times
// included, if that is more than the worst way brings.
func (p *pass) otherWays(g graph, root *service, leaf *dependency, worst uint64) []Step {
	type flow struct{ attempts, calls uint64 }
	in := map[*service]flow{root: {uint64(max(root.Deliveries, 1)), 1}}
	var sum flow
	for _, s := range g.order {
		f, ok := in[s]
		if !ok {
			continue
		}
		for _, c := range s.calls {
			if c.to == nil || g.back[c] {
				continue
			}
			n := flow{product(f.attempts, product(uint64(c.times()), uint64(max(c.to.attempts(), 1)))), product(f.calls, uint64(c.times()))}
			if c.to == leaf && c.leaf(g) {
				sum = flow{plus(sum.attempts, n.attempts), plus(sum.calls, n.calls)}
			}
			if c.answered != nil && !c.leaf(g) {
				had := in[c.answered]
				in[c.answered] = flow{plus(had.attempts, n.attempts), plus(had.calls, n.calls)}
			}
		}
	}
	if sum.attempts <= worst {
		return nil
	}
	return []Step{{What: fmt.Sprintf("all ways from %s to %s, and calls made several times: %s calls while all is well, and at most", root.Name, leaf.Name, attemptsFigure(sum.calls)), Total: attemptsFigure(sum.attempts)}}
}

// budgetStep says what the budgets make of it, over many requests.
func budgetStep(retrying []layer) Step {
	share := 1.0
	var parts []string
	for _, l := range retrying {
		if math.IsInf(l.ratio, 0) {
			return Step{}
		}
		share *= 1 + l.ratio
		parts = append(parts, number(1+l.ratio))
	}
	if len(parts) > shown {
		parts = append(parts[:shown-1], "...")
	}
	return Step{"over many requests the budgets hold it to", strings.Join(parts, " × "), number(share) + " times"}
}

// oneLayer keeps the retries of one layer on all ways to the leaf: those of the queue that
// root reads from, if it delivers several times, or else those next to the leaf.
func (p *pass) oneLayer(g graph, root *service, leaf *dependency) Fix {
	leads := map[*service]bool{} // to the leaf
	for _, s := range slices.Backward(g.order) {
		for _, c := range s.calls {
			if c.to == leaf && c.leaf(g) || c.answered != nil && !g.back[c] && c.to != nil && leads[c.answered] {
				leads[s] = true
			}
		}
	}
	queue := root.Deliveries > 1
	var names []string
	var fix Fix
	done := map[*dependency]bool{}
	for _, s := range g.order {
		if queue = queue || leads[s] && s.Deliveries > 1; !leads[s] {
			continue
		}
		for _, c := range s.calls {
			above := c.answered != nil && !g.back[c] && leads[c.answered]
			if above && c.to != nil && c.to != leaf && c.to.attempts() > 1 && !done[c.to] {
				done[c.to] = true
				names = append(names, c.to.path)
				fix.Changes = append(fix.Changes, c.to.write("", c.to.makes(1)...).Changes...)
			}
		}
	}
	rest := "then one layer retries, next to " + leaf.Name
	if queue && leaf.attempts() > 1 {
		names = append(names, leaf.path)
		fix.Changes = append(fix.Changes, leaf.write("", leaf.makes(1)...).Changes...)
		rest = "then only the queue tries again"
	}
	field := "attempts"
	if slices.ContainsFunc(fix.Changes, func(c Change) bool { return strings.HasSuffix(c.Path, ".hedge.attempts") }) {
		field = "attempts: 1 (where there are hedges, hedge.attempts: 1 as well)"
	} else {
		field += ": 1"
	}
	fix.Text = fmt.Sprintf("write %s in %s; %s", field, few(names), rest)
	return fix
}
