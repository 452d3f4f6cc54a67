package lint

import (
	"fmt"
	"slices"
	"strings"
)

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

// oneLayer is the fix that leaves the retries of one layer on all ways to the leaf: those of the
// queue that root reads from, if it delivers several times, otherwise those next to the leaf.
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

// onlyOnce is the fix with which calls make one attempt. once are those with a policy; names are
// those of dependencies that need a policy of their own for it.
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
		hedged := ""
		if slices.ContainsFunc(once, (*dependency).hedged) {
			hedged = " (where there are hedges, hedge.attempts: 1 as well)"
		}
		parts = append(parts, fmt.Sprintf("write attempts: 1%s in %s", hedged, few(paths)))
	}
	if len(names) > 0 {
		fix.Changes = nil // they would not be complete
		parts = append(parts, fmt.Sprintf("add %s to the dependencies, with attempts: 1", few(names)))
	}
	fix.Text = strings.Join(parts, ", and ") + "; " + rest
	return fix
}
