package main

import (
	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/sim"
)

func peace(p *printer) {
	cs := []sim.Contender{none(), zero}
	for _, name := range []string{"ratio-10", "token-bucket", "aws-legacy-standard", "aws-standard-2.1", "grpc", "breaker-5s", "full-jitter"} {
		cs = append(cs, must.Have(battery.Preset(name)))
	}
	p.successes("0.1 % / 1 % / 5 % / 10 % errors", cs, shares(fleets, 0.001, 0.01, 0.05, 0.1))
}

// hang compares the zero Policy with the two other rules about time-outs, in peace in which errors take longer than an attempt may.
func hang(p *printer) {
	cs := []sim.Contender{
		none(), zero,
		idea("TimeoutsNever", func(p *lull.Policy) { p.Timeouts = lull.TimeoutsNever }),
		idea("TimeoutsAlways", func(p *lull.Policy) { p.Timeouts = lull.TimeoutsAlways }),
	}
	columns := shares(fleets, 0.001, 0.01)
	for _, c := range columns {
		for i := range c.cells {
			c.cells[i].late = 2 * second
		}
	}
	rows(p, "% of calls that succeed when 0.1 % / 1 % of attempts hang; processes:", cs, columns, p.success)
}
