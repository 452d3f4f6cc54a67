// Package replay is the command lull replay: it flies the policy that ran through a world that lull learn has made, compares
// that with what was observed, and, if it is near enough, flies other policies through the same incident.
//
// distance.go says what near is. Package scenario draws the uncertain values of a world.
package replay

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/simulate"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/lab/rivals"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// Command is lull replay. Its flags are text, so that all mistakes are reported at once.
type Command struct {
	World     cli.Text  `arg:"" help:"A world file, as lull learn writes it."`
	Policy    cli.Texts `placeholder:"POLICY,..." help:"The policies: YAML files, presets (lull simulate --list shows them), or lull (the zero Policy). The one called now, or else the first, is the policy that ran."`
	Seeds     cli.Text  `placeholder:"16" default:"16" help:"How often each policy flies: 2 to 1000. Each flight has a seed and a draw of the uncertain values of its own. Default: 16."`
	Seed      cli.Text  `placeholder:"1" default:"1" help:"The first seed. The same seed gives the same figures."`
	Tolerance cli.Text  `placeholder:"0.2" default:"0.2" help:"The largest distance between what was observed and what is simulated, from 0 to 1, with which there are answers. Default: 0.2."`
	Report    cli.Text  `placeholder:"FILE" help:"Also write an HTML page with charts."`
	JSON      bool      `name:"json" help:"Print all figures as JSON on standard output. What is zero is left out."`
	Quiet     bool      `help:"Show no progress."`
}

func (Command) Help() string {
	return `Would another policy have brought you back sooner? First the policy that ran
flies through the world that was learned. The output says how far each figure is
from what was observed: 0 is alike, 1 has nothing in common. If one is further off
than --tolerance, or requests waited and nobody knows how many the service can
answer, there is no answer: the output says what would have to be known, and the
exit code is 1. Otherwise all policies fly through the same incident, with
draws of the values that are not known exactly. A policy with an attempt timeout of
its own has it. Others have the one of the world.

  lull learn access.log -o world.yaml
  lull replay world.yaml --policy now.yaml,lull,none --report replay.html`
}

func (f Command) Check() error { _, err := f.task(); return err }

func (Command) Complete() map[string][]string {
	return map[string][]string{"policy": choice.Each(rivals.All(), func(p rivals.Preset) string { return p.Name })}
}

func (f Command) task() (t task, err error) {
	var l problem.List
	var wrong cli.Mistakes
	t.enough = 2 * time.Minute
	t.seeds = cli.Whole(&l, "--seeds", f.Seeds, 2, 1000)
	t.seed = cli.Seed(&l, f.Seed)
	t.tolerance = cli.Number(&l, "--tolerance", f.Tolerance, 0, 1, "such as 0.2")
	wrong.Add(l.Err())
	if f.Report != "" {
		wrong.In("--report", cli.CanWrite(string(f.Report)))
	}
	if t.policies, t.file, err = simulate.Contenders(f.Policy.Split()); len(f.Policy) == 0 {
		err = errors.New("--policy is missing: want the policy that ran, and others to compare with it")
	}
	wrong.Add(err)
	if ran := slices.IndexFunc(t.policies, func(c sim.Contender) bool { return c.Name == "now" }); ran > 0 {
		t.policies = slices.Concat(t.policies[ran:ran+1], t.policies[:ran], t.policies[ran+1:])
	}
	if t.whole, t.learned, err = scenario.ReadLearned(string(f.World)); err == nil {
		t.world = scenario.Watched(t.whole)
		err = flyable(t.world, t.learned)
	}
	wrong.Add(cli.CannotRead(err))
	return t, wrong.Err()
}

// flyable reports what a world lacks for a replay.
func flyable(s sim.Scenario, w *scenario.Learned) error {
	var l problem.List
	if w == nil || w.Observed.Step == 0 {
		l.Add("learned.observed", "missing", "what was observed, in a file that lull learn has written")
		return l.Err()
	}
	l.Check(len(s.Topics) == 0, "topics", len(s.Topics), "fleets alone")
	if from, _ := s.Disturbance(); from < s.Horizon {
	} else if v, more := &s.Services[0], len(s.Fleets[0].Arrivals.Ramp) > 0; more && v.Workers == 0 && len(v.Faults) == 0 {
		l.Add("services.0.workers", "not known", "how many requests it can work on at a time, to see when more came than it could do. lull learn --ask asks for it, or write it and queue.limit into the file")
	} else {
		l.Add("services.0.faults", "empty", "an incident: a fault, or a time in which more arrives than the service can do")
	}
	s.Step = w.Observed.Step
	l.In("learned.observed", s.Validate())
	c := newCourse(&w.Observed, steps(s), 1)
	some := func(figure int) bool { return len(known(c[figure])) > 0 }
	l.Check((some(arrivals) || some(attempts)) && (some(failed) || some(p50)), "learned.observed", "unknown", "calls or attempts, and failures or times, of at least one step")
	return l.Err()
}

// Run flies and prints.
func (f Command) Run(env cli.Env, ctx *kong.Context) error {
	t, err := f.task()
	if err != nil {
		return err
	}
	p := term.NewProgress(env.Stderr, env.Getenv, f.Quiet)
	r, err := t.replay(env.Context, p)
	p.End()
	switch {
	case env.Context.Err() != nil:
		return cli.ErrInterrupted
	case err != nil:
		return err
	case f.JSON:
		_, err = fmt.Fprintf(env.Stdout, "%s\n", simulate.Data(*r))
	default:
		err = r.print(env.Stdout, term.BarsFor(env.Getenv))
	}
	if err == nil && f.Report != "" {
		var page bytes.Buffer
		if err = r.writePage(&page, "lull "+strings.Join(ctx.Args, " ")); err == nil {
			err = cli.WriteWhole(string(f.Report), page.Bytes())
		}
		if err == nil && !f.JSON {
			fmt.Fprintf(env.Stdout, "\nThe page is in %s.\n", f.Report)
		}
	}
	if err == nil && len(r.Policies) == 0 {
		return errors.New(choice.Either(r.Reproduced, "too little is known of the service", "the incident is not reproduced") + ": there is no answer to what other policies would have done")
	}
	return err
}
