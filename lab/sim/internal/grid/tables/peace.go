package main

import (
	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/sim"
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
	return p.successes("0.1 % / 1 % / 5 % / 10 % errors", cs, shares(fleets, 0.001, 0.01, 0.05, 0.1))
}

// hang compares the zero Policy with the two other rules about time-outs.
func hang(p *printer) error {
	return hangs(p, []sim.Contender{
		none(), zero,
		idea("TimeoutsNever", func(p *lull.Policy) { p.Timeouts = lull.TimeoutsNever }),
		idea("TimeoutsAlways", func(p *lull.Policy) { p.Timeouts = lull.TimeoutsAlways }),
	})
}

// hangs is peace in which errors take longer than an attempt may.
func hangs(p *printer, cs []sim.Contender) error {
	columns := shares(fleets, 0.001, 0.01)
	for _, c := range columns {
		for i := range c.cells {
			c.cells[i].late = 2 * second
		}
	}
	return rows(p, "% of calls that succeed when 0.1 % / 1 % of attempts hang; processes:", cs, columns, p.success)
}
