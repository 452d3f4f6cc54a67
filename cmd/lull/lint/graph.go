package lint

import "slices"

// A graph is the call graph. Its services are in an order in which callers come first.
type graph struct {
	order []*service
	back  map[*call]bool    // calls that close a circle; they are left out
	last  map[*service]bool // those without calls

	callers map[*dependency][]*call // calls that services answer, by dependency
}

func newGraph(services []*service) graph {
	g := graph{back: map[*call]bool{}, last: map[*service]bool{}, callers: map[*dependency][]*call{}}
	const (
		underWay = 1
		seen     = 2
	)
	state := map[*service]int{}
	var visit func(*service)
	visit = func(s *service) {
		state[s] = underWay
		for _, c := range s.calls {
			switch to := c.answered; {
			case to == nil:
			case state[to] == underWay:
				g.back[c] = true
			case state[to] != seen:
				visit(to)
			}
		}
		state[s] = seen
		g.order = append(g.order, s)
	}
	for _, root := range services {
		if state[root] != seen {
			visit(root)
		}
	}
	slices.Reverse(g.order)
	for _, s := range g.order {
		for _, c := range s.calls {
			if c.to != nil && c.answered != nil && !g.back[c] {
				g.callers[c.to] = append(g.callers[c.to], c)
			}
		}
		g.last[s] = !slices.ContainsFunc(s.calls, func(c *call) bool { return c.to != nil && !g.back[c] })
	}
	return g
}

// leaf reports whether the call goes to a leaf: no service answers it, or one without calls.
func (c *call) leaf(g graph) bool { return c.answered == nil || g.last[c.answered] }

// A leaf is a dependency at the end of a way, and its name: one policy, that of the defaults, may be for several names.
type leaf struct {
	*dependency
	name string
}

func (c *call) end() leaf { return leaf{c.to, c.Dependency} }

// ways are those to each service that matter by their load, from services that nobody calls or that read from a queue.
func (g graph) ways() map[*service][]*reach {
	called := map[*service]bool{}
	for _, s := range g.order {
		for _, c := range s.calls {
			if c.answered != nil && !g.back[c] {
				called[c.answered] = true
			}
		}
	}
	all := map[*service][]*reach{}
	for _, s := range g.order {
		if !called[s] || s.Deliveries > 1 || len(all[s]) == 0 {
			all[s] = among(all[s], s.begins())
		}
		for _, c := range s.calls {
			if c.to == nil || g.back[c] || c.leaf(g) {
				continue
			}
			for _, r := range all[s] {
				all[c.answered] = among(all[c.answered], r.on(s, c).to(c.answered))
			}
		}
	}
	return all
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
		way = append(way, at.Name)
	}
	way = append(way, s.Name)
	slices.Reverse(way)
	return way
}
