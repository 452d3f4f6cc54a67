package tune

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/sim"
)

// A bench flies policies in all worlds, each once with each seed.
type bench struct {
	worlds   []world
	named    []sim.Contender // policies that fleets have of their own
	slo      time.Duration   // success is within it; 0: no SLO
	patience time.Duration   // the attempt timeout of a policy that sets none; 0: the default
	shortest time.Duration   // the shortest attempt timeout that the data supports; 0: not known
	seeds    int
	workers  int
	progress func(flights int, what string)

	known   map[flight][]battery.Figures
	flights int
}

// A flight is of a policy in a world with seeds from that one on.
type flight struct {
	policy lull.Policy
	world  int
	from   uint64
}

// flown is p as it flies: callers wait as long as they were seen to, unless the policy says how long.
func (b *bench) flown(p lull.Policy) lull.Policy {
	if p.AttemptTimeout == 0 && b.patience > 0 {
		p.AttemptTimeout = b.patience
		if d := p.WithDefaults().Deadline; d > 0 {
			p.AttemptTimeout = min(p.AttemptTimeout, d)
		}
	}
	return p
}

// fly returns the figures of p, one for each seed from the given one on.
func (b *bench) fly(ctx context.Context, p lull.Policy, w int, from uint64) ([]battery.Figures, error) {
	key := flight{b.flown(p), w, from}
	if known, ok := b.known[key]; ok {
		return known, nil
	}
	all, errs := make([]battery.Figures, b.seeds), make([]error, b.seeds)
	sim.Each(b.seeds, b.workers, func(i int) {
		r, err := sim.Run(ctx, b.worlds[w].scenario, sim.Contender{Name: "policy", Policy: key.policy},
			sim.Options{Seed: from + uint64(i), Named: b.named, InTime: b.slo})
		all[i], errs[i] = battery.FiguresOf(&r), err
		if b.slo > 0 {
			all[i].Good = r.Totals.InTime
		}
	})
	if err := cmp.Or(errs...); err != nil {
		return nil, err
	}
	b.flights += b.seeds
	b.known[key] = all
	return all, nil
}

// differences are by how much p is better than base in one world.
func (b *bench) differences(ctx context.Context, p, base lull.Policy, w int, from uint64) ([]battery.Difference, error) {
	mine, err := b.fly(ctx, p, w, from)
	if err != nil {
		return nil, err
	}
	theirs, err := b.fly(ctx, base, w, from)
	if err != nil {
		return nil, err
	}
	patience := time.Duration(math.MaxInt64) // callers need room for that long; more of it is nothing that they need
	for _, d := range []time.Duration{b.flown(p).WithDefaults().AttemptTimeout, b.flown(base).WithDefaults().AttemptTimeout, b.shortest} {
		if d > 0 {
			patience = min(patience, d)
		}
	}
	return battery.Differences(mine, theirs, &b.worlds[w].scenario, patience, b.worlds[w].slack), nil
}

// A comparison is what became of a policy beside others.
type comparison struct {
	wins    []string // where it is better than the first, and in what
	learned bool     // one of them is in the learned world
	loss    string   // the first world where it is worse than one of them; empty: none
}

// compare flies p beside each of others in every world, until it loses.
func (b *bench) compare(ctx context.Context, what string, from uint64, p lull.Policy, others ...lull.Policy) (c comparison, err error) {
	for w := range b.worlds {
		b.progress(b.flights, what+" in "+b.worlds[w].name)
		for i, other := range others {
			differences, err := b.differences(ctx, p, other, w, from)
			if err != nil {
				return c, err
			}
			for _, d := range differences {
				switch {
				case d.Worse():
					c.loss = b.worlds[w].name + ": " + inWords(d)
					return c, nil
				case i == 0 && d.Better():
					c.wins = append(c.wins, b.worlds[w].name+": "+inWords(d))
					c.learned = c.learned || w == 0
				}
			}
		}
	}
	return c, nil
}

// inWords is a difference for people: "held −0.31 calls".
func inWords(d battery.Difference) string {
	half := ""
	if d.Half > 0 {
		half = fmt.Sprintf(" ± %.2g", d.Half)
	}
	switch d.Figure {
	case "success":
		half = ""
		if d.Half > 0 {
			half = fmt.Sprintf(" ± %.2g", 100*d.Half)
		}
		return fmt.Sprintf("success %+.3g%s points", 100*d.By, half)
	case "back":
		if math.IsInf(d.By, 0) {
			return map[bool]string{true: "it comes back, the other does not", false: "it does not come back with some seeds"}[d.By > 0]
		}
		return fmt.Sprintf("back %+.3g%s s", -d.By, half)
	case "held":
		return fmt.Sprintf("%+.3g%s calls held", -d.By, half)
	}
	return fmt.Sprintf("%+.3g%s attempts a call", -d.By, half)
}

// A decision is what tune answers.
type decision struct {
	base, tuned lull.Policy // base: what the tuned policy is made of, the one in use or the zero policy
	proposals   []proposal
	asGood      bool // the zero policy is as good as the one in use
	notes       []string
	confirmed   comparison // of the tuned policy, with other seeds
}

const (
	chosenWith    = 1    // the first seed of the choice
	confirmedWith = 1001 // and of the flights that confirm it
)

// decide keeps the proposals that win somewhere and lose nowhere, one after the other, and confirms the sum with seeds that it was
// not chosen by. present is the policy in use; without one it is the zero policy.
func (b *bench) decide(ctx context.Context, present lull.Policy, f *facts, g goals) (d decision, err error) {
	var zero lull.Policy
	d.base = present
	if r := f.attemptTimeout(lull.Policy{AttemptTimeout: time.Hour, Deadline: engine.NoTimeout}, g); r.Value != "" {
		if b.shortest, err = time.ParseDuration(r.Value); err != nil {
			return d, err
		}
	}
	if b.flown(present) != b.flown(zero) {
		c, err := b.compare(ctx, "the zero policy", chosenWith, zero, present)
		if err != nil {
			return d, err
		}
		if d.asGood = c.loss == ""; d.asGood {
			d.base = zero
		} else {
			d.notes = append(d.notes, "The zero policy is worse than the one in use in "+c.loss+". The table has what it is better in.")
		}
	}
	if g.slo == 0 {
		d.notes = append(d.notes, "Without --slo a success counts, however late it is.")
	}
	d.proposals = propose(f, d.base, g)
	d.tuned = d.base
	var kept []*proposal
	for i := range d.proposals {
		r := &d.proposals[i]
		if r.Value == "" {
			r.Verdict = "stays: " + r.Why
			continue
		}
		others := []lull.Policy{d.tuned}
		if d.tuned != d.base {
			others = append(others, d.base)
		}
		for _, value := range append([]string{r.Value}, r.Looser...) {
			r.Value = value
			with, err := r.with(d.tuned)
			if err != nil {
				r.Verdict = "stays: it does not fit the others (" + strings.Join(strings.Fields(err.Error()), " ") + ")"
				continue
			}
			c, err := b.compare(ctx, r.Field+" "+value, chosenWith, with, others...)
			if err != nil {
				return d, err
			}
			if c.loss != "" {
				r.Verdict = "stays: worse in " + c.loss
				continue
			}
			r.Verdict = "stays: no difference that counts"
			if len(c.wins) > 0 {
				r.Verdict, r.Kept = "changes: better in "+strings.Join(c.wins, "; "), true
				d.tuned, kept = with, append(kept, r)
			}
			break
		}
	}
	for len(kept) > 0 {
		d.confirmed, err = b.compare(ctx, "the sum", confirmedWith, d.tuned, d.base)
		if err != nil || d.confirmed.loss == "" && d.confirmed.learned {
			return d, err
		}
		last := kept[len(kept)-1]
		last.Kept = false
		if d.confirmed.loss != "" {
			last.Verdict = "stays: with other seeds worse in " + d.confirmed.loss
		} else {
			last.Verdict = "stays: better, but not in the learned world: " + strings.TrimPrefix(last.Verdict, "changes: better in ")
		}
		kept = kept[:len(kept)-1]
		d.tuned = d.base
		for _, r := range kept {
			if d.tuned, err = r.with(d.tuned); err != nil {
				return d, err
			}
		}
	}
	return d, nil
}

// preset returns the contenders that fleets name.
func presets(s *sim.Scenario) (all []sim.Contender, err error) {
	for _, f := range s.Fleets {
		if f.Policy == "" || f.Policy == battery.None {
			continue
		}
		c, err := battery.Preset(f.Policy)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}
