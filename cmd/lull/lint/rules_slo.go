package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/saturating"
)

// sloPart is the share of a service's SLO that the calls to one dependency may take.
const sloPart = 3

func eachService(check func(*pass, *service)) func(*pass) {
	return func(p *pass) {
		for _, s := range p.services {
			check(p, s)
		}
	}
}

func (c *call) worst() time.Duration {
	if c.to == nil {
		return 0
	}
	return times(c.to.Policy.WorstCase(), c.times())
}

func (c *call) what() string {
	name := c.Dependency
	if c.Operation != "" {
		name += "'s " + c.Operation
	}
	if n := c.times(); n > 1 {
		name += fmt.Sprintf(" (%d times)", n)
	}
	return name
}

// stages are the calls of s, stage by stage; calls of one stage are made at the same time.
func (s *service) stages() [][]*call {
	var all [][]*call
	group := map[string]int{}
	for _, c := range s.calls {
		if i, ok := group[c.Parallel]; ok && c.Parallel != "" {
			all[i] = append(all[i], c)
			continue
		}
		group[c.Parallel] = len(all)
		all = append(all, []*call{c})
	}
	return all
}

func slowest(stage []*call) *call {
	return slices.MaxFunc(stage, func(a, b *call) int { return cmp.Compare(a.worst(), b.worst()) })
}

// inStages is the longest time of all calls of s for one request, and of one stage of them, if each takes as long as took says.
func (s *service) inStages(took func(*call) time.Duration) (sum, most time.Duration) {
	for _, stage := range s.stages() {
		var longest time.Duration
		for _, c := range stage {
			longest = max(longest, took(c))
		}
		sum, most = saturating.Add(sum, longest), max(most, longest)
	}
	return sum, most
}

func (s *service) worst() time.Duration {
	sum, _ := s.inStages((*call).worst)
	return sum
}

func worstCaseOverSLO(p *pass, s *service) {
	sum := s.worst()
	if s.SLO <= 0 || sum <= s.SLO {
		return
	}
	var l ledger
	if len(s.calls) == 1 && s.calls[0].times() == 1 {
		l.steps = newTimeline(s.calls[0].to.Policy).explain()
	} else {
		s.addUp(&l)
	}
	l.note("the SLO of %s is %s", s.Name, pretty(s.SLO))
	share := s.SLO / time.Duration(max(sloPart, len(s.stages())))
	kept := true // it can be, with shorter deadlines
	pl := p.plan()
	for _, c := range s.calls {
		limit := down(share / time.Duration(s.most(c.to)))
		if c.to != nil && c.to.Policy.WorstCase() > limit {
			kept = pl.within(c.to, limit) && kept
		}
	}
	fix := pl.fix("", Fix{})
	if less := s.promise(sum); !kept {
		fix = less
	} else if sum < longest {
		fix.Text += "; or " + less.Text
	}
	of := "its calls"
	if len(s.calls) == 1 {
		of = "its call to " + s.calls[0].what()
	}
	p.report(s.in, s.path+".slo",
		fmt.Sprintf("%s must answer within %s, and %s may take %s", s.Name, pretty(s.SLO), of, pretty(sum)), l.steps, fix)
}

const leastDeadline = time.Millisecond

func (s *service) promise(slo time.Duration) Fix {
	if slo >= longest {
		return Fix{Text: fmt.Sprintf("write a deadline in the dependencies that %s calls, and an slo in %s that leaves time for it", s.Name, s.path)}
	}
	value := pretty(up(slo))
	return Fix{Text: fmt.Sprintf("may %s take %s to answer? Then write slo: %s in %s", s.Name, value, value, s.path)}
}

func (s *service) most(d *dependency) int {
	n := 1
	for _, c := range s.calls {
		if c.to == d {
			n = max(n, c.times())
		}
	}
	return n
}

func (s *service) addUp(l *ledger) {
	stages := s.stages()
	for i, stage := range stages {
		c := slowest(stage)
		what := "call " + c.what()
		if c.to != nil {
			what += ": " + c.to.inShort()
		}
		if len(stage) > 1 {
			what += fmt.Sprintf(", the longest of %d side by side (%s)", len(stage), c.Parallel)
		}
		if i == 2*shown && len(stages) > i+1 {
			var rest time.Duration
			for _, stage := range stages[i:] {
				rest = saturating.Add(rest, slowest(stage).worst())
			}
			l.add(rest, "%d more calls", len(stages)-i)
			return
		}
		l.add(c.worst(), "%s", what)
	}
}

func (d *dependency) inShort() string {
	t := newTimeline(d.Policy)
	if d.Policy.WorstCase() == t.policy.Deadline {
		return "its deadline"
	}
	if t.asked() > t.total() {
		return fmt.Sprintf("%s and the longest waits", term.Counted(t.attempts, "attempt"))
	}
	return fmt.Sprintf("%d × %s and the waits", t.attempts, pretty(t.attempt()))
}

func bothFixes(a, b Fix) Fix {
	if a.Text == "" {
		return b
	}
	both := Fix{Text: a.Text + ", and " + b.Text}
	if len(a.Changes) > 0 && len(b.Changes) > 0 { // otherwise they would not be complete
		both.Changes = slices.Concat(a.Changes, b.Changes)
	}
	return both
}

// within are the fields of d with which its worst case is at most limit, and all attempts fit.
func (d *dependency) within(limit time.Duration) []string {
	better := *d
	better.Policy.Deadline = limit
	t := newTimeline(better.Policy)
	var fields []string
	if t.total() > limit {
		fields = better.fitting(t, limit)
	}
	return append(fields, "deadline", pretty(limit))
}

func worstCaseOverSLOThird(p *pass, s *service) {
	if s.SLO <= 0 || s.worst() > s.SLO { // then the other finding is there, and its fix mends this, too
		return
	}
	part := s.SLO / sloPart
	for _, c := range s.calls {
		worst := c.worst()
		if worst <= part {
			continue
		}
		t := newTimeline(c.to.Policy)
		l := ledger{steps: t.explain()}
		took := pretty(worst)
		if n := c.times(); n > 1 {
			l.steps = append(l.steps, Step{"calls for each request", "× " + strconv.Itoa(n), pretty(worst)})
		} else if own := t.ownWorst(); own < worst {
			took = fmt.Sprintf("%s (%s if the server asks for waits)", pretty(own), pretty(worst))
		}
		l.note("a third of the SLO of %s: %s / %d = %s", s.Name, pretty(s.SLO), sloPart, rough(part))
		limit := down(part / time.Duration(c.times()))
		fix := s.promise(times(worst, sloPart))
		if pl := p.plan(); pl.within(c.to, limit) {
			fix = pl.fix("or "+fix.Text, Fix{})
		}
		p.report(s.in, c.path,
			fmt.Sprintf("calls to %s may take %s of the %s within which %s must answer, more than a third (%s)",
				c.what(), took, pretty(s.SLO), s.Name, rough(part)),
			l.steps, fix)
	}
}
