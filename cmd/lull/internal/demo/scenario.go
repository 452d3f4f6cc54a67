package demo

import (
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/internal/problem"
)

// A scenario is what the demo shows. The empty one is the storm.
type scenario string

const (
	storm scenario = "storm" // backends go down, and calls are retried
	tail  scenario = "tail"  // some requests are slow, and calls are hedged
)

// clients of the scenario, in the order in which they are shown.
func (c scenario) clients() []client {
	if c == tail {
		return tailClients
	}
	return allClients
}

// foreign reports the flags that were given and say nothing in this scenario.
func (f Command) foreign(l *problem.List, c scenario) {
	reject := func(flag string, o cli.Option, allowed string) {
		if o.Given {
			l.Add(flag, o.Typed.Quoted(), allowed)
		}
	}
	if c == tail {
		reject("--kind", f.Kind, "it left out with --scenario tail, where backends turn slow and not down; it is for --scenario storm")
		reject("--attempts", f.Attempts, "it left out with --scenario tail, where a call makes at most two; it is for --scenario storm")
		return
	}
	reject("--tail", f.Tail, "it left out with --scenario storm; it is for --scenario tail")
	reject("--hedge-delay", f.HedgeDelay, "it left out with --scenario storm, where nobody hedges; it is for --scenario tail")
}
