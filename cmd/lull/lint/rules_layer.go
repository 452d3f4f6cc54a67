package lint

import (
	"fmt"
	"slices"
	"strings"
)

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
		fix.Text += fmt.Sprintf("; or, if %s %s lull's server half, say so: server: lull in %s", few(unknown), verb(len(unknown), "has", "have"), few(paths(unknown)))
	}
	steps := slices.Concat(w.sum(), w.ifServers(), g.otherWays(w.root, leaf, r.sum()), w.budgets())
	p.reportAs(severity, leaf.in, leaf.at(leaf.attemptsField()),
		fmt.Sprintf("one %s may become %s attempts at %s: %s", w.begins(), attemptsFigure(r.sum()), leaf.name, how), steps, fix)
}
