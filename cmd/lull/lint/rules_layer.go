package lint

import (
	"fmt"
	"slices"
	"strings"
)

func layerRules() []Rule {
	return []Rule{{
		ID:       "retries-in-layers",
		Severity: Warning,
		Title:    "Retries of several layers multiply",
		Why: `If each layer repeats what fails below it, attempts multiply: with four in each of three
layers, one call at the top becomes 4 × 4 × 4 = 64 at the bottom when the bottom is down. One
layer should retry: the one next to the failure, since it repeats the least work. The others
should pass the failure on.

The rule follows the calls of the services to each leaf. A leaf is a dependency that no
service of the files provides, or one of a service that calls nothing. The rule multiplies
the attempts along the worst path to the leaf, including the deliveries of a queue. It finds
leaves with more than one layer that retries. It also finds a service whose calls are retried
by several systems, such as a mesh and a sidecar, if each of their files sets retries.

lull has its own rule for this (Policy.Nested, by default never). A server that works for a
retry does not retry or hedge its own calls. A server whose calls have failed for good asks
its caller not to retry. Then retries add up instead of multiplying: 4 + 3 + 3 = 10 at most.
It is 4 if failures come back before the callers above give up. This needs lull's server
half: lullhttp.NewHandler, the interceptors of lullgrpc, or a queue.Consumer, and handlers
that pass on their context. Mark a service that has it with server: lull. The rule takes it
into account. If nothing multiplies any more, the finding is a note.

Budgets limit the average over many requests, not a single request.`,
		Sources: []Source{srcCascading, srcOverload, srcBuilders},
		Bad: `dependencies:
  orders: {attempts: 4, attempt_timeout: 5s}
  stock: {attempts: 4, attempt_timeout: 1s}
  db: {attempts: 4, attempt_timeout: 50ms}
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
		Why: `If a request can come back to a service that waits for it, there is no worst case: neither
the attempts nor the time have a limit. Two services that wait for each other can also run
out of workers at the same time. If one request never goes round the circle (because the
second call is for something else), give the two kinds of request different names.

The rule finds calls that lead back to the service that makes them. Other rules leave the
services of a circle out of their sums.`,
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

// mostCircles is how many circles are reported, since each takes a search.
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

// shortened is a way without its middle, if it is long.
func shortened(way []string) []string {
	if len(way) <= 2*shown {
		return way
	}
	return slices.Concat(way[:shown], []string{"..."}, way[len(way)-shown:])
}

// mostLeaves is how many leaves are looked at, the worst first. Mending these mostly mends the
// others, too.
const mostLeaves = 100

func retriesInLayers(p *pass) {
	p.systemsInLayers()
	g := p.graph()
	ways := g.ways()
	worst := map[leaf]*reach{}
	var leaves []leaf
	for _, s := range g.order {
		for _, c := range s.calls {
			if c.to == nil || g.back[c] || !c.leaf(g) {
				continue
			}
			for _, r := range ways[s] {
				r, end := r.on(s, c), c.end()
				if known := worst[end]; known == nil {
					leaves = append(leaves, end)
				} else if r.compare(known) <= 0 {
					continue
				}
				worst[end] = r
			}
		}
	}
	slices.SortStableFunc(leaves, func(a, b leaf) int { return worst[b].compare(worst[a]) })
	for _, l := range leaves[:min(len(leaves), mostLeaves)] {
		if r := worst[l]; r.multiplicity > oneLayer {
			p.layers(g, r)
		}
	}
}

// layers reports the load of the leaf at the end of r.
func (p *pass) layers(g graph, r *reach) {
	w := r.way()
	leaf := w.hops[len(w.hops)-1].call.end()
	factors := w.factors()
	unmended := strings.Join(shortened(figures(factors)), " × ")
	severity, how := Warning, fmt.Sprintf("%d layers retry (%s)", len(factors), unmended)
	fix := g.oneLayer(w.root, leaf)
	known, unknown := w.servers(true), w.servers(false)
	switch without := w.end(nobody, false); {
	case r.multiplicity == adding:
		severity = Note
		how = fmt.Sprintf("the retries of %d layers add up (%s), where they would multiply to %s without lull's server half", len(factors), strings.Join(shortened(asSum(factors)), " + "), attemptsFigure(without))
		fix = Fix{Text: "is it rare that an answer comes too late? Then nothing. If not, " + fix.Text}
	case without > r.sum():
		how = fmt.Sprintf("%d layers retry (%s, which is %s without lull's server half in %s)", len(factors), unmended, attemptsFigure(without), few(known))
	}
	if len(unknown) > 0 && w.end(everyone, false) == sumOf(factors) {
		fix.Text += fmt.Sprintf("; or, if %s %s lull's server half, say so: server: lull in %s", few(unknown), verb(unknown, "has", "have"), few(paths(unknown)))
	}
	steps := slices.Concat(w.sum(), w.ifServers(), g.otherWays(w.root, leaf, r.sum()), w.budgets())
	p.reportAs(severity, leaf.in, leaf.at(leaf.attemptsField()),
		fmt.Sprintf("one %s may become %s attempts at %s: %s", w.begins(), attemptsFigure(r.sum()), leaf.name, how), steps, fix)
}
