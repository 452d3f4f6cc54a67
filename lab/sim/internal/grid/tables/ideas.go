package main

import (
	"fmt"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/sim"
)

const second = time.Second

// stall is the outage of the tables of ideas.
const stall = 10 * second

var zero = sim.Contender{Name: "the zero Policy"}

func none() sim.Contender {
	c := must.Have(battery.Preset("none"))
	c.Name = "no retry"
	return c
}

func idea(name string, change func(*lull.Policy)) sim.Contender {
	c := sim.Contender{Name: name}
	change(&c.Policy)
	return c
}

// compare prints what each of cs takes to recover, and how it does in peace.
func compare(p *printer, cs []sim.Contender) {
	p.recoveries(cs, fleets, cell{length: stall})
	p.successes("1 % / 10 % errors", cs, shares(fleets, 0.01, 0.1))
}

func prices(p *printer) {
	cs := []sim.Contender{none()}
	for _, n := range []float64{1, 5, 10} {
		c := idea(fmt.Sprintf("a time-out costs %v", n), func(p *lull.Policy) {
			p.Breaker.Off = true
			p.Timeouts = lull.TimeoutsAlways
		})
		c.Options = append(c.Options, lull.WithBudget(func() budget.Budget { return &priced{timeout: n, tokens: pricedSize} }))
		cs = append(cs, c)
	}
	cs = append(cs, idea("the rule", func(p *lull.Policy) { p.Breaker.Off = true }))
	compare(p, cs)
}

func breakers(p *printer) {
	var cs []sim.Contender
	add := func(name string, b breaker.Config) {
		cs = append(cs, sim.Contender{Name: name, Policy: lull.Policy{Breaker: b}})
	}
	add("none", breaker.Config{Off: true})
	add("50 % of 20 in 10 s, open 5 s doubling to 30 s", breaker.Config{Consecutive: -1, FailureRate: 0.5, MinCalls: 20, Window: 10 * second, OpenFor: 5 * second, OpenMax: 30 * second})
	add("3 in a row over 1 s", breaker.Config{ConsecutiveFor: second})
	add("3 in a row over 2 s: **the zero Policy**", breaker.Config{})
	add("3 in a row over 5 s", breaker.Config{ConsecutiveFor: 5 * second})
	add("as the zero Policy, open 1 s", breaker.Config{OpenFor: second, OpenMax: 1500 * time.Millisecond})
	add("as the zero Policy, open 1 s doubling to 30 s", breaker.Config{OpenFor: second})
	add("as the zero Policy, open 5 s doubling to 30 s", breaker.Config{OpenFor: 5 * second})
	for _, o := range []struct {
		title string
		cell
	}{
		{"A stall of", cell{length: 10 * second}},
		{"A stall of", cell{length: 30 * second}},
		{"2,500 calls/s, for", cell{spike: true, length: 30 * second}},
		{"Errors that return at once, for", cell{outage: sim.Errors, length: 30 * second}},
	} {
		fmt.Fprintf(p.out, "\n%s %v:\n", o.title, o.length)
		p.recoveries(cs, fleets, o.cell)
	}
	p.successes("1 % / 10 % / 30 % errors", cs, shares(fleets, 0.01, 0.1, 0.3))
}
