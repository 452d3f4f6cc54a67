package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lullgo/lull/cmd/lull/convert"
	"github.com/lullgo/lull/internal/choice"
)

const mostCircles = 20

func callCycle(p *pass) {
	g := p.graph
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

// mostLeaves is how many leaves are looked at, the worst first. Mending these mostly mends the others, too.
const mostLeaves = 100

func retriesInLayers(p *pass) {
	p.systemsInLayers()
	g := p.graph
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
		fix.Text += fmt.Sprintf("; or, if %s %s lull's server half, say so: server: lull in %s", few(unknown), verb(len(unknown), "has", "have"), few(choice.Each(unknown, func(name string) string { return "services." + name })))
	}
	steps := slices.Concat(w.sum(), w.ifServers(), g.otherWays(w.root, leaf, r.sum()), w.budgets())
	p.reportAs(severity, leaf.in, leaf.at(leaf.attemptsField()),
		fmt.Sprintf("one %s may become %s attempts at %s: %s", w.begins(), attemptsFigure(r.sum()), leaf.name, how), steps, fix)
}

func (g graph) leadingTo(end leaf) map[*service]bool {
	leads := map[*service]bool{}
	for _, s := range slices.Backward(g.order) {
		leads[s] = slices.ContainsFunc(s.calls, func(c *call) bool {
			return c.leaf(g) && c.end() == end || g.above(c, leads)
		})
	}
	return leads
}

func (g graph) above(c *call, services map[*service]bool) bool {
	return c.to != nil && c.answered != nil && !g.back[c] && services[c.answered]
}

// oneLayer is the fix that leaves one layer of retries on all ways to the leaf: those of a queue, or those next to the leaf.
func (g graph) oneLayer(root *service, end leaf) Fix {
	leads := g.leadingTo(end)
	queue := root.Deliveries > 1
	var once []*dependency // are changed to one attempt
	var shared []string    // should be, and have the policy of the leaf
	done := map[leaf]bool{}
	for _, s := range g.order {
		if !leads[s] {
			continue
		}
		queue = queue || s.Deliveries > 1
		for _, c := range s.calls {
			callee := leaf{c.to, ""}
			if c.to == end.dependency {
				callee.name = c.Dependency
			}
			if !g.above(c, leads) || c.to.attempts() < 2 || done[callee] {
				continue
			}
			if done[callee] = true; c.to == end.dependency {
				shared = append(shared, c.Dependency)
			} else {
				once = append(once, c.to)
			}
		}
	}
	rest := "then one layer retries, next to " + end.name
	if queue && end.attempts() > 1 {
		once, shared = append(once, end.dependency), nil
		rest = "then only the queue tries again"
	}
	return onlyOnce(once, shared, rest)
}

// onlyOnce is the fix with which calls make one attempt. names are dependencies that need a policy of their own for it.
func onlyOnce(once []*dependency, names []string, rest string) Fix {
	var fix Fix
	var parts, paths []string
	for _, d := range once {
		if d.in.set != nil { // in the words of its system
			there := d.write("", d.attemptFields(1)...)
			parts, fix.Changes = append(parts, there.Text), append(fix.Changes, there.Changes...)
			continue
		}
		paths = append(paths, d.path)
		fix.Changes = append(fix.Changes, d.write("", d.attemptFields(1)...).Changes...)
	}
	if len(paths) > 0 {
		hedged := choice.Either(slices.ContainsFunc(once, (*dependency).hedged), " (where there are hedges, hedge.attempts: 1 as well)", "")
		parts = append(parts, fmt.Sprintf("write attempts: 1%s in %s", hedged, few(paths)))
	}
	if len(names) > 0 {
		fix.Changes = nil // they would not be complete
		parts = append(parts, fmt.Sprintf("add %s to the dependencies, with attempts: 1", few(names)))
	}
	fix.Text = strings.Join(parts, ", and ") + "; " + rest
	return fix
}

// A retrier is a system in whose files calls to a service are retried.
type retrier struct {
	*dependency
	of    convert.Format
	facts convert.Facts
}

// systemsInLayers reports services that several systems retry: to a mesh a sidecar's retry is one more request.
func (p *pass) systemsInLayers() {
	var all []retrier
	for _, d := range p.dependencies {
		set := d.in.set
		if set == nil || d.attempts() < 2 || !(d.hasField("attempts") || d.hasField("hedge.attempts")) {
			continue
		}
		if facts := set.Facts(d.Name); facts.Service != "" {
			all = append(all, retrier{d, set.Format(d.Name), facts})
		}
	}
	done := map[*dependency]bool{}
	for i, first := range all {
		if done[first.dependency] {
			continue
		}
		layers := []retrier{first}
		for _, other := range all[i+1:] {
			if other.sameService(first) && !slices.ContainsFunc(layers, func(l retrier) bool { return l.of.System() == other.of.System() }) {
				layers = append(layers, other)
			}
		}
		if len(layers) > 1 {
			for _, l := range layers {
				done[l.dependency] = true
			}
			p.severalSystems(layers)
		}
	}
}

func (r retrier) sameService(other retrier) bool {
	a, b := r.facts, other.facts
	return a.Service == b.Service && (a.Namespace == b.Namespace || a.Namespace == "" || b.Namespace == "")
}

// severalSystems reports layers of retries for one service. The fix leaves those of the first.
func (p *pass) severalSystems(layers []retrier) {
	service := layers[0].facts.Service
	total, endless := uint64(1), false
	var factors, names []string
	var steps []Step
	var once []*dependency
	for i, l := range layers {
		n := l.most()
		total, endless = product(total, n), endless || l.endless()
		factors, names = append(factors, strconv.FormatUint(n, 10)), append(names, l.of.System())
		line, _ := l.in.place(l.at(l.attemptsField()))
		where := fmt.Sprintf("attempts of %s (%s:%d)", l.of.System(), l.in.name, line)
		switch {
		case l.endless():
			steps = append(steps, Step{What: where + ", as many as there is time for"})
		case i == 0:
			steps = append(steps, Step{where, factors[i], factors[i]})
		default:
			steps = append(steps, Step{where, "× " + factors[i], attemptsFigure(total)})
		}
		if i > 0 {
			once = append(once, l.dependency)
		}
	}
	how := choice.Either(endless, "the retries multiply", fmt.Sprintf("one call may become %s attempts (%s)", attemptsFigure(total), strings.Join(factors, " × ")))
	first := layers[0]
	fix := onlyOnce(once, nil, "then one layer retries, "+first.of.System())
	p.report(first.in, first.at(first.attemptsField()), fmt.Sprintf("calls to %s are retried by %s: %s", service, list(names), how), steps, fix)
}
