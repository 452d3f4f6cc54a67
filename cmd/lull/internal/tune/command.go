// Package tune is the command lull tune: it proposes values for the fields of a policy from a learned world (lull learn), flies
// them in that world and in others like it, and keeps what is better there and worse nowhere.
package tune

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/lab/scenario"
)

// Command is lull tune. Its flags are text, so that all mistakes are reported at once.
type Command struct {
	World         cli.Text `arg:"" help:"A world that lull learn wrote."`
	SLO           cli.Text `name:"slo" placeholder:"TIME@PERCENT" help:"What callers want, such as 800ms@99.9: that share of calls succeeds within that time. Without it deadline and attempts stay as they are."`
	Policy        cli.Text `placeholder:"FILE" help:"A policy file: what is in use. Default: the zero policy."`
	Dependency    cli.Text `placeholder:"NAME" help:"The dependency of the policy file that the world is about. Default: the only one, or the one with the name of the service."`
	Output        cli.Text `short:"o" placeholder:"FILE" help:"Write the policy to a file, with where each value comes from as comments."`
	Check         bool     `help:"Only check that the values in the policy file lie in the intervals that the world allows. Nothing is flown. If one does not, the exit code is 1."`
	Report        cli.Text `placeholder:"FILE" help:"Also write an HTML page, with charts of the learned world."`
	FalseTimeouts cli.Text `placeholder:"0.1%" default:"0.1%" help:"The share of healthy attempts that a timeout may cut off: 0.001% to 5%."`
	HedgeLoad     cli.Text `placeholder:"2%" default:"2%" help:"How many more attempts hedging may cost: 0.1% to 20%."`
	Seeds         cli.Text `placeholder:"6" default:"6" help:"Runs of each policy in each world: 3 to 100."`
	Quiet         bool     `help:"Show no progress."`
}

func (Command) Help() string {
	return `Proposes timeouts, pauses, hedges and limits from a world that lull learn has
learned, each with its data, formula and price. It then flies them in that world, in
its peace, and with other faults (stall, errors, slow-down, crash, brown-out, spike,
sick host). A value is kept only if it is better in the learned world, and worse
nowhere. Most of the time the answer is: keep the zero policy.

  lull learn access.log -o world.yaml
  lull tune world.yaml
      is there a policy that fits this world better than the zero policy?
  lull tune world.yaml --slo 800ms@99.9 --policy now.yaml -o policy.yaml
      the same for your own policy and your objective
  lull tune world.yaml --policy now.yaml --check
      for CI: does the policy still fit what was measured?

Differences count by the rules of lull battery --help.

Exit codes: 0 there is an answer, 1 --check found a value outside of its interval, or
the run was interrupted, 2 the command line or a file is wrong.`
}

// A task is what is read of the flags and files, and then what tune answers.
type task struct {
	Command
	goals      goals
	facts      facts
	file       *config.PolicyFile
	dependency int // of the file
	present    lull.Policy
	bench      bench
	shown      int // of the bench's worlds, in the table
	decision
}

func (f Command) task() (t task, err error) {
	var l problem.List
	var wrong cli.Mistakes
	t = task{Command: f, file: &config.PolicyFile{}}
	t.goals.falseTimeouts = share(&l, "--false-timeouts", f.FalseTimeouts, 0.00001, 0.05)
	t.goals.hedgeLoad = share(&l, "--hedge-load", f.HedgeLoad, 0.001, 0.2)
	if f.SLO != "" {
		t.goals.slo, t.goals.target, err = parseSLO(string(f.SLO))
		l.Check(err == nil, "--slo", f.SLO.Quoted(), "a time from 1ms to 1h and a percentage from 50 to less than 100, such as 800ms@99.9")
	}
	t.bench.Seeds = cli.Whole(&l, "--seeds", f.Seeds, 3, 100)
	l.Check(f.Dependency == "" || f.Policy != "", "--dependency", "without --policy", "both or none")
	l.Check(!f.Check || f.Policy != "", "--check", "without --policy", "the policy file that is checked")
	l.Check(!f.Check || f.Output == "" && f.Report == "", "--check", "with -o or --report", "none of these: nothing is flown")
	wrong.Add(l.Err())
	if f.Output != "" {
		wrong.In("-o", cli.CanWrite(string(f.Output)))
	}
	if f.Report != "" {
		wrong.In("--report", cli.CanWrite(string(f.Report)))
	}
	s, learned, err := scenario.ReadLearned(string(f.World))
	wrong.Add(cli.CannotRead(err))
	if err == nil {
		t.facts, err = factsOf(s, learned)
		wrong.In(string(f.World), err)
	}
	if f.Policy != "" {
		t.file, err = config.ReadPolicyFile(string(f.Policy))
		wrong.Add(cli.CannotRead(err))
	}
	if len(wrong) > 0 {
		return t, wrong
	}
	service := s.Services[t.facts.service].Name
	if f.Policy == "" {
		t.file.Dependencies = []config.Dependency{{Name: service}}
	}
	names := choice.Each(t.file.Dependencies, func(d config.Dependency) string { return d.Name })
	wanted := cmp.Or(string(f.Dependency), service)
	if f.Dependency == "" && len(names) == 1 {
		wanted = names[0]
	}
	if t.dependency = slices.Index(names, wanted); t.dependency < 0 {
		wrong.In("--dependency", fmt.Errorf("%q is none of the policy file: want one of %q", wanted, names))
		return t, wrong
	}
	t.present = t.file.Dependencies[t.dependency].Policy
	t.bench.InTime, t.bench.Patience = t.goals.slo, t.facts.patience
	return t, nil
}

// share reads a percentage.
func share(l *problem.List, flag string, v cli.Text, least, most float64) float64 {
	n, ok := scenario.Number(string(v))
	l.Check(ok && strings.HasSuffix(string(v), "%") && n >= least && n <= most, flag, v.Quoted(), fmt.Sprintf("%s to %s, such as 0.5%%", percent(least), percent(most)))
	return n
}

// parseSLO reads a time and a percentage, such as 800ms@99.9.
func parseSLO(text string) (time.Duration, float64, error) {
	before, after, _ := strings.Cut(text, "@")
	d, err := time.ParseDuration(before)
	share, ok := scenario.Number(strings.TrimSuffix(after, "%") + "%")
	if err != nil || !ok || d < time.Millisecond || d > time.Hour || share < 0.5 || share >= 1 {
		return 0, 0, errors.New("no SLO")
	}
	return d, share, nil
}

// Run proposes, flies and prints.
func (f Command) Run(env cli.Env) error {
	t, err := f.task()
	if err != nil {
		return err
	}
	if f.Check {
		return t.check(env.Stdout)
	}
	worlds, shown, notes, err := t.facts.around()
	if err != nil {
		return fmt.Errorf("%s: %w", f.World, err)
	}
	t.bench.Worlds, t.shown = worlds, shown
	p := term.NewProgress(env.Stderr, env.Getenv, f.Quiet)
	t.bench.progress = func(flights int, what string) {
		p.Show(func(time.Duration) string { return fmt.Sprintf("%d flights flown, now %s", flights, what) })
	}
	var rows [][]string
	var page bytes.Buffer
	var policy []byte
	if t.decision, err = t.bench.decide(env.Context, t.present, &t.facts, t.goals); err == nil {
		t.notes = append(notes, t.notes...)
		rows, err = t.table(env.Context)
	}
	if err == nil && f.Report != "" {
		err = t.writePage(env.Context, &page, rows)
	}
	p.End()
	if err == nil {
		policy, err = t.policyFile()
	}
	if err != nil {
		return err
	}
	t.print(env.Stdout, rows)
	for _, x := range []struct {
		what string
		name cli.Text
		data []byte
	}{{"page", f.Report, page.Bytes()}, {"policy", f.Output, policy}} {
		if x.name != "" {
			if err := cli.WriteWhole(string(x.name), x.data); err != nil {
				return err
			}
			fmt.Fprintf(env.Stdout, "\nThe %s is in %s.\n", x.what, x.name)
		}
	}
	return nil
}
