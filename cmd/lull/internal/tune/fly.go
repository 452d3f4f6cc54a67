package tune

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/lab/battery"
)

// A bench flies policies in all worlds.
type bench struct {
	battery.Trial
	progress func(flights int, what string)
}

// A comparison is what became of a policy beside others.
type comparison struct {
	wins    []string // where it is better than the first, and in what
	learned bool     // one of them is in the learned world
	loss    string   // the first world where it is worse than one of them; empty: none
}

// compare flies p beside each of others in every world, until it loses, or does not win in the learned world although it must.
func (b *bench) compare(ctx context.Context, what string, must bool, from uint64, p lull.Policy, others ...lull.Policy) (c comparison, err error) {
	for w := range b.Worlds {
		b.progress(b.Flights, what+" in "+b.Worlds[w].Name)
		for i, other := range others {
			differences, err := b.Differences(ctx, p, other, w, from)
			if err != nil {
				return c, err
			}
			for _, d := range differences {
				switch {
				case d.Worse():
					c.loss = b.Worlds[w].Name + ": " + inWords(d)
					return c, nil
				case i == 0 && d.Better():
					c.wins = append(c.wins, b.Worlds[w].Name+": "+inWords(d))
					c.learned = c.learned || w == 0
				}
			}
		}
		if must && !c.learned {
			break
		}
	}
	return c, nil
}

// inWords is a difference for people: "held −0.31 calls".
func inWords(d battery.Difference) string {
	switch d.Figure {
	case "success":
		return fmt.Sprintf("success %+.3g ± %.2g points", 100*d.By, 100*d.Half)
	case "held":
		return fmt.Sprintf("%+.3g ± %.2g calls held", -d.By, d.Half)
	case "attempts":
		return fmt.Sprintf("%+.3g ± %.2g attempts a call", -d.By, d.Half)
	}
	if math.IsInf(d.By, 0) {
		return choice.Either(d.By > 0, "it comes back, the other does not", "it does not come back with some seeds")
	}
	return fmt.Sprintf("back %+.3g ± %.2g s", -d.By, d.Half)
}

// A decision is what tune answers.
type decision struct {
	base, tuned lull.Policy // base: what the tuned policy is made of, the one in use or the zero policy
	proposals   []proposal
	asGood      bool // the zero policy is as good as the one in use
	notes       []string
}

// firstSeeds are those of the flights by which a value is chosen, and of those that confirm it.
var firstSeeds = []uint64{1, 1001}

// decide keeps the proposals that win in the learned world and lose nowhere, in turn. present is the policy in use, or
// the zero policy.
func (b *bench) decide(ctx context.Context, present lull.Policy, f *facts, g goals) (d decision, err error) {
	var zero lull.Policy
	d.base = present
	needed := f.attemptTimeout(lull.Policy{AttemptTimeout: time.Hour, Deadline: engine.NoTimeout}, g)
	b.Shortest, _ = time.ParseDuration(needed.Value) // 0: it is not known
	if b.Flown(present) != b.Flown(zero) {
		c, err := b.compare(ctx, "the zero policy", false, firstSeeds[0], zero, present)
		if err != nil {
			return d, err
		}
		if d.asGood = c.loss == ""; d.asGood {
			d.base, d.notes = zero, append(d.notes, "What no world has, such as hints and rate limits, is not judged: keep what you set for that.")
		} else {
			d.notes = append(d.notes, "The zero policy is worse than the one in use in "+c.loss+". The table has what it is better in.")
		}
	}
	if g.slo == 0 {
		d.notes = append(d.notes, "Without --slo a success counts, however late it is.")
	}
	d.proposals, d.tuned = propose(f, d.base, g), d.base
	for i := range d.proposals {
		r := &d.proposals[i]
		if r.Value == "" {
			r.Verdict = "stays: " + r.Why
			continue
		}
		for _, value := range append([]string{r.Value}, r.Looser...) {
			r.Value = value
			with, err := r.in(d.tuned)
			if err != nil {
				r.Verdict = "stays: it does not fit the others (" + strings.Join(strings.Fields(err.Error()), " ") + ")"
				continue
			}
			c := comparison{learned: true}
			for _, from := range firstSeeds {
				if c.loss == "" && c.learned {
					if c, err = b.compare(ctx, r.Field+" "+value, true, from, with, d.tuned, d.base); err != nil {
						return d, err
					}
				}
			}
			if r.Verdict = "stays: worse in " + c.loss; c.loss != "" {
				continue
			}
			if r.Verdict = "stays: no better in the learned world"; c.learned {
				r.Verdict, r.Kept, d.tuned = "changes: better in "+strings.Join(c.wins, "; "), true, with
			}
			break
		}
	}
	runs, err := b.Fly(ctx, d.tuned, 1, firstSeeds[0])
	if peace := (&battery.Flown{Runs: runs}).Success(); err == nil && peace < g.target {
		d.notes = append(d.notes, fmt.Sprintf("The SLO is not met even in peace: %s of the calls succeed within %v. No value here can make the service quicker.", percent(peace), g.slo))
	}
	return d, err
}
