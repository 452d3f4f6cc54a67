package main

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/sim"
	"github.com/lullgo/lull/lab/sim/internal/grid"
)

func named(names ...string) ([]sim.Contender, error) {
	var cs []sim.Contender
	for _, n := range names {
		c, err := battery.Preset(n)
		if err != nil {
			return nil, err
		}
		cs = append(cs, c)
	}
	return cs, nil
}

func peace(p *printer) error {
	cs, err := named("ratio-10", "token-bucket", "aws-legacy-standard", "aws-standard-2.1", "grpc", "breaker-5s", "full-jitter")
	if err != nil {
		return err
	}
	cs = append([]sim.Contender{none(), zero}, cs...)
	return rows(p, "% of calls that succeed at 0.1 % / 1 % / 5 % / 10 % errors; processes:", cs, shares(grid.Fleets, grid.PeaceErrors...), p.success)
}

// lasting is peace for so long that no stock is left from the start.
func lasting(p *printer) error {
	columns := shares(grid.Fleets, 0.01, 0.05, 0.1)
	for _, c := range columns {
		for i := range c.cells {
			c.cells[i].For = 2 * time.Hour
		}
	}
	return rows(p, "% of calls that succeed at 1 % / 5 % / 10 % errors; processes:", []sim.Contender{none(), zero}, columns, p.success)
}

// hang is peace in which errors take longer than an attempt may.
func hang(p *printer) error {
	return rows(p, "% of calls that succeed when 0.1 % / 1 % of attempts hang; processes:", timeoutRules(), hanging(), p.success)
}

// hanging is a column for each fleet: attempts that time out in peace.
func hanging() []column[grid.Peace] {
	columns := shares(grid.Fleets, 0.001, 0.01)
	for _, c := range columns {
		for i := range c.cells {
			c.cells[i].After = 2 * second
		}
	}
	return columns
}

// timeoutRules are the zero Policy and the two others that there are.
func timeoutRules() []sim.Contender {
	return []sim.Contender{
		none(), zero,
		idea("TimeoutsNever", func(p *lull.Policy) { p.Timeouts = lull.TimeoutsNever }),
		idea("TimeoutsAlways", func(p *lull.Policy) { p.Timeouts = lull.TimeoutsAlways }),
	}
}
