package lint

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lullgo/lull"
)

type plan struct {
	p       *pass
	g       graph
	changed map[*dependency]lull.Policy
	order   []*dependency              // of changed
	known   map[*service]time.Duration // results of longestWork, until the next change
	far     bool                       // consequences elsewhere are planned, too
}

func (p *pass) plan() *plan {
	p.plans++
	return &plan{p: p, g: p.graph, far: p.plans <= mostPlans,
		changed: map[*dependency]lull.Policy{}, known: map[*service]time.Duration{}}
}

func (pl *plan) of(d *dependency) lull.Policy {
	if better, ok := pl.changed[d]; ok {
		return better
	}
	return d.Policy
}

// longestWork is the longest time of all calls of s for one request, without waits that servers ask for.
func (pl *plan) longestWork(s *service) (sum time.Duration) {
	if known, ok := pl.known[s]; ok {
		return known
	}
	sum, _ = s.inStages(pl.took)
	pl.known[s] = sum
	return sum
}

// patience is the longest time of an attempt at d, and the field that limits it. Zero: there is no limit.
func patience(p lull.Policy) (time.Duration, string) {
	limit, field := attemptTimeout(p), "attempt_timeout"
	if end := deadline(p); end > 0 && (limit == 0 || end < limit) {
		limit, field = end, "deadline"
	}
	return limit, field
}

// tooShort reports whether attempts at d are given up before s, which answers them, is finished.
func (pl *plan) tooShort(d *dependency, s *service) bool {
	limit, _ := patience(pl.of(d))
	return limit > 0 && pl.longestWork(s) > limit
}

func (pl *plan) change(d *dependency, p lull.Policy) {
	if _, ok := pl.changed[d]; !ok {
		pl.order = append(pl.order, d)
	}
	pl.changed[d] = p
	clear(pl.known)
}

// allowTime plans so much time for an attempt at d, and a deadline with room for all attempts.
func (pl *plan) allowTime(d *dependency, attempt time.Duration) {
	better := pl.of(d)
	better.AttemptTimeout = attempt
	if t := newTimeline(better); deadline(better) > 0 && t.total() > deadline(better) {
		better.Deadline = up(t.total())
	}
	pl.change(d, better)
}

// settle plans what must follow: callers wait as long as services may now take, and services promise what they can keep.
func (pl *plan) settle() (promises Fix) {
	if !pl.far {
		return Fix{}
	}
	before := pl.p.now
	for _, above := range slices.Backward(pl.g.order) { // callees before callers
		for _, c := range above.calls {
			if s := c.answered; c.to != nil && s != nil && !pl.g.back[c] && pl.tooShort(c.to, s) && !before.tooShort(c.to, s) {
				pl.allowTime(c.to, up(pl.longestWork(s)))
			}
		}
	}
	for _, s := range pl.p.services {
		if need := pl.promises(s); s.SLO > 0 && need > s.SLO && before.promises(s) <= s.SLO {
			promises = bothFixes(promises, s.promise(need))
		}
	}
	return promises
}

// promises is the shortest SLO of s that leaves time for its calls, a third of it for each.
func (pl *plan) promises(s *service) time.Duration {
	sum, most := s.inStages(func(c *call) time.Duration {
		if c.to == nil {
			return 0
		}
		return times(pl.of(c.to).WorstCase(), c.times())
	})
	return max(sum, times(most, sloPart))
}

func (pl *plan) fix(rest string, promises Fix) (fix Fix) {
	for _, d := range pl.order {
		was, is := d.Policy, pl.changed[d]
		var fields []string
		if is.Attempts != was.Attempts || is.Hedge.Attempts != was.Hedge.Attempts {
			fields = d.attemptFields(is.MaxAttempts())
		}
		if is.AttemptTimeout != was.AttemptTimeout {
			fields = append(fields, "attempt_timeout", pretty(is.AttemptTimeout))
		}
		if is.Deadline != was.Deadline {
			fields = append(fields, "deadline", pretty(is.Deadline))
		}
		if len(fields) > 0 {
			fix = bothFixes(fix, d.write("", fields...))
		}
	}
	if promises.Text != "" {
		fix = bothFixes(fix, promises)
	}
	if foreign := slices.ContainsFunc(pl.order, func(d *dependency) bool { return d.in.set != nil }); rest != "" && !foreign {
		fix.Text += "; " + rest
	}
	return fix
}

func callerGivesUpFirst(p *pass) {
	type pair struct {
		d *dependency
		s *service
	}
	now := p.now
	done := map[pair]bool{}
	for _, s := range now.g.order {
		for _, c := range s.calls {
			at := pair{c.to, c.answered}
			if c.to == nil || c.answered == nil || now.g.back[c] || done[at] {
				continue
			}
			if done[at] = true; now.tooShort(c.to, c.answered) && (written(c.to) || slices.ContainsFunc(c.answered.calls, func(c *call) bool { return c.to != nil && written(c.to) })) {
				p.givesUp(now, c)
			}
		}
	}
}

func written(d *dependency) bool {
	if d.in.set != nil {
		return d.hasField("attempt_timeout") || d.hasField("deadline")
	}
	return d.Policy.AttemptTimeout != 0 || d.Policy.Deadline != 0
}

// mostPlans is how many fixes are checked against the rest of the files. A second run checks the others.
const mostPlans = 50

func (p *pass) givesUp(now *plan, c *call) {
	d, s := c.to, c.answered
	limit, field := patience(d.Policy)
	worst := now.longestWork(s)
	var l ledger
	for i, stage := range s.stages() {
		c := slices.MaxFunc(stage, func(a, b *call) int { return cmp.Compare(now.took(a), now.took(b)) })
		if i == 2*shown {
			l.add(worst-l.sum, "%d more calls", len(s.stages())-i)
			break
		}
		l.add(now.took(c), "call %s", c.what())
	}
	l.note("an attempt at %s is given up after %s (%s)", d.Name, pretty(limit), field)
	severity, end := Warning, ""
	if s.hasLullServer() {
		severity, end = Note, "; lull's server half ends them with the attempt"
	}
	fix := Fix{Text: fmt.Sprintf("write deadlines in the dependencies that %s calls", s.Name)}
	if pl := p.plan(); pl.shorten(s, limit) {
		fix = pl.fix("or let callers wait: a longer attempt_timeout in "+d.path, pl.settle())
	} else if pl := p.plan(); worst < longest {
		pl.allowTime(d, up(worst))
		fix = pl.fix(fmt.Sprintf("or shorten the calls of %s", s.Name), pl.settle())
	}
	p.reportAs(severity, d.in, d.at(field),
		fmt.Sprintf("attempts at %s are given up after %s, and %s, which answers them, may take %s for its calls%s", d.Name, pretty(limit), s.Name, pretty(worst), end),
		l.steps, fix)
}

// took is the worst case of c, without waits that servers ask for.
func (pl *plan) took(c *call) time.Duration {
	if c.to == nil || pl.g.back[c] {
		return 0
	}
	return times(newTimeline(pl.of(c.to)).ownWorst(), c.times())
}

// shorten plans that the calls of s, and those behind them, fit into limit. ok is false if one is then too short for a healthy answer.
func (pl *plan) shorten(s *service, limit time.Duration) (ok bool) {
	stages := max(len(s.stages()), 1)
	for _, c := range s.calls {
		if c.to == nil || pl.g.back[c] || pl.took(c) <= limit/time.Duration(stages) {
			continue
		}
		if !pl.within(c.to, down(limit/time.Duration(stages*s.most(c.to)))) {
			return false
		}
	}
	return true
}

// within plans that the worst case of d is at most limit.
func (pl *plan) within(d *dependency, limit time.Duration) (ok bool) {
	if p99, _, _ := d.p99s(); limit < max(leastDeadline, p99) {
		return false
	}
	if was, ok := pl.changed[d]; ok && deadline(was) <= limit {
		return true
	}
	better, err := with(d.Policy, d.within(limit))
	if err != nil {
		return false
	}
	pl.change(d, better)
	return pl.behind(d)
}

// behind plans that services which answer d finish before its attempts are given up, if they did before.
func (pl *plan) behind(d *dependency) (ok bool) {
	if !pl.far {
		return true
	}
	before := pl.p.now
	limit, _ := patience(pl.of(d))
	for _, c := range pl.g.callers[d] {
		if pl.tooShort(d, c.answered) && !before.tooShort(d, c.answered) && !pl.shorten(c.answered, limit) {
			return false
		}
	}
	return true
}
