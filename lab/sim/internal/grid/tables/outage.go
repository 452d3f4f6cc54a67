package main

import (
	"fmt"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/sim"
)

func presets(p *printer) {
	cs := append([]sim.Contender{zero}, battery.Presets()...)
	some := []int{100, 10_000}
	p.recoveries(cs, some, cell{length: stall})
	p.successes("1 % / 10 % errors", cs, shares(some, 0.01, 0.1))
}

// A cure is something that the server does.
type cure struct {
	name  string
	apply func(*sim.Service)
}

var cures = []cure{
	{"10,000, first in, first out", func(*sim.Service) {}},
	{"500", func(s *sim.Service) { s.Queue.Limit = 500 }},
	{"500; refusals ask to wait 10 s", func(s *sim.Service) { s.Queue.Limit, s.Queue.RetryAfter = 500, 10*second }},
	{"500; refusals ask not to retry", func(s *sim.Service) { s.Queue.Limit, s.Queue.DontRetry = 500, true }},
	{"10,000, last in, first out", func(s *sim.Service) { s.Queue.Order = sim.LIFO }},
	{"10,000; deadlines are carried along, what has expired is dropped", func(s *sim.Service) { s.Queue.DropExpired = true }},
	{"10,000; work for callers who have gone is stopped", func(s *sim.Service) { s.CancelWork = true }},
}

// server compares measures of the server, for 100,000 processes that call once in two minutes.
func server(p *printer) {
	cs := []sim.Contender{none(), zero, must.Have(battery.Preset("full-jitter"))}
	names := make([]string, len(cures))
	for i, c := range cures {
		names[i] = c.name
	}
	for _, load := range someLoads[1:] {
		cell := cell{load: load, processes: 100_000, length: stall}
		var columns []column[sim.Contender]
		for _, c := range cs {
			columns = append(columns, column[sim.Contender]{c.Name, []sim.Contender{c}})
		}
		fmt.Fprintf(p.out, "\nLoad %v; seconds to recover, and %% of the calls of the first minute after the stall that succeed:\n", load)
		lines(p, "the service's queue", names, cures, columns, func(cure cure, c sim.Contender) string { return p.recoveryWith(c, cell, cure) })
	}
}

// recoveryWith returns the time to recover with a cure, and the share of calls that succeed
// in the minute after the outage.
func (p *printer) recoveryWith(c sim.Contender, cell cell, cure cure) string {
	var sum time.Duration
	var succeeded, calls float64
	for seed := range p.seeds {
		s := cell.scenario()
		cure.apply(&s.Services[0])
		r := must.Have(sim.Run(p.ctx, s, c, sim.Options{Seed: uint64(seed + 1)}))
		if !r.Recovery.Recovered {
			return "never"
		}
		sum += r.Recovery.Time
		from := int((before + cell.length) / r.Series.Step)
		for i := from; i < from+int(time.Minute/r.Series.Step); i++ {
			calls += r.Series.Calls[i]
			succeeded += r.Series.Good[i] * r.Series.Calls[i]
		}
	}
	return fmt.Sprintf("%.0f s, %.0f %%", (sum / time.Duration(p.seeds)).Seconds(), 100*succeeded/calls)
}
