// Package simulate is the command lull simulate: it flies retry policies through an outage in virtual time, side by side,
// with package sim, and prints a table, maps of a sweep, JSON, CSV or a page of HTML (package report).
//
// Flags and files become a simulation (setting.go), which runs (run.go) and becomes an
// outcome; each way of printing one has a file of its own.
package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"github.com/lullgo/lull/cmd/lull/internal/cells"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/queue"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/lab/rivals"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// Command is lull simulate. Its flags are text, so that all mistakes are reported at once; simulation reads them.
type Command struct {
	Scenario cli.Text  `arg:"" optional:"" help:"A built-in scenario (--list shows them) or a YAML file. Default: metastable-stall."`
	Policy   cli.Texts `placeholder:"POLICY,..." help:"The policies to compare: presets (--list shows them), lull (the zero Policy), or YAML files. All policies of a file are used. Default: none, full-jitter, aws-legacy-standard, grpc and lull."`
	Set      cli.Texts `placeholder:"PATH=VALUE" help:"Change the scenario, such as fleets.0.arrivals.rate=900 (--explain shows the names). policy.KEY=VALUE changes every policy that is not a preset. May be repeated."`
	Clients  cli.Text  `placeholder:"N" help:"Processes of all fleets together, such as 100k or 25M. The load stays the same, except for arrivals that are set for each process."`
	Horizon  cli.Text  `placeholder:"DURATION" help:"The length of time that is simulated. Default: that of the scenario."`
	Seed     cli.Text  `placeholder:"1" default:"1" help:"The seed of all random draws. The same seed gives the same figures."`
	Seeds    cli.Text  `placeholder:"1" default:"1" help:"Runs of each policy, with consecutive seeds: 1 to 1000. From 2 on there are confidence intervals."`
	Sweep    cli.Texts `placeholder:"PATH=VALUES" help:"Repeat the simulation for each value: a,b,c or from..to/step. PATH is as in --set, or clients. With a second sweep, for each pair of values."`
	Map      bool      `help:"Draw a map for each policy: at which loads and after which outages the service recovers by itself, only with help, or never. Default policies: none, full-jitter and lull."`
	JSON     bool      `name:"json" help:"Print all figures and series as JSON on standard output, instead of the table."`
	CSV      bool      `name:"csv" help:"Print the time series as CSV on standard output, instead of the table. With --sweep, print its cells."`
	Report   cli.Text  `placeholder:"FILE" help:"Also write an HTML page, with charts and everything that is needed to repeat the run."`
	List     bool      `help:"List the scenarios and the presets."`
	Explain  bool      `help:"Explain the scenario, its lesson and its source, and print it as YAML."`
	Force    bool      `help:"Run a simulation that seems too large for this machine."`
	cells.Flags
}

func (Command) Help() string {
	return `Simulates an outage in virtual time, and compares retry policies in it. The
simulator and lull's clients use the same engine to decide about retries, so you
simulate the code that you ship. Presets describe other libraries as policies.

  lull simulate
      a backend with 80 % load stops for ten seconds: who recovers?
  lull simulate --policy lull,mine.yaml --seeds 5 --report out.html
      your own policies and the recommended one, with charts on a page
  lull simulate --sweep clients=1,100,10k --sweep services.0.faults.0.for=1s,9s
      the time to recover, by size of the fleet and length of the outage

Ctrl-C ends the run and prints what was computed until then; the exit code is 1.`
}

func (f Command) Check() error { _, err := f.simulation(); return err }

func (Command) Complete() map[string][]string {
	return map[string][]string{
		"scenario": choice.Each(scenario.BuiltIn(), func(s sim.Scenario) string { return s.Name }),
		"policy":   choice.Each(rivals.All(), func(p rivals.Preset) string { return p.Name }),
	}
}

var errInterrupted = errors.New("interrupted: the figures are of what was simulated until then")

type result interface {
	// print prints it in the form that the flags name.
	print(f Command, env cli.Env) error
	// writePage writes it as a page of HTML.
	writePage(w io.Writer, command string) error
}

// Run simulates and prints what comes of it.
func (f Command) Run(env cli.Env, ctx *kong.Context) error {
	if f.Remote() && f.Away == nil {
		return queue.Start(env, ctx.Args)
	}
	if f.List {
		return printList(env.Stdout)
	}
	s, err := f.simulation()
	if err != nil {
		return err
	}
	s.where.Env = env
	if f.Explain {
		return printExplanation(env.Stdout, s.scenario)
	}
	if !f.Map && !f.Force && !f.Remote() && len(f.Merge) == 0 {
		if err := s.estimate().check(availableMemory()); err != nil {
			return err
		}
	}
	p := term.NewProgress(env.Stderr, env.Getenv, f.Quiet)
	var result result
	interrupted := false
	if f.Map {
		result, err = mapOf(env.Context, s, p)
	} else {
		var o outcome
		o, err = s.run(env.Context, p)
		result, interrupted = o, o.interrupted
	}
	p.End()
	if err == nil && !s.where.Part {
		err = result.print(f, env)
	}
	switch {
	case err != nil:
		return inFileTerms(err)
	case s.where.Part:
	case f.Report != "":
		var page bytes.Buffer
		if err := result.writePage(&page, f.command()); err != nil {
			return err
		}
		if err := cli.WriteWhole(string(f.Report), page.Bytes()); err != nil {
			return err
		}
		if !f.JSON && !f.CSV {
			fmt.Fprintf(env.Stdout, "\nThe page is in %s.\n", f.Report)
		}
	}
	if interrupted {
		return errInterrupted
	}
	return nil
}

func (o outcome) print(f Command, env cli.Env) error {
	switch {
	case f.JSON:
		return printJSON(env.Stdout, o)
	case f.CSV && o.swept():
		return printSweepCSV(env.Stdout, o)
	case f.CSV:
		return printSeriesCSV(env.Stdout, o)
	case o.swept():
		return printMaps(env.Stdout, o)
	}
	return printComparison(env.Stdout, o, term.BarsFor(env.Getenv))
}
