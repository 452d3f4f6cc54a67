// Package battery is the command lull battery: it simulates a policy in every world of the
// battery, in outage and in peace, and prints where another policy is better, and by how much.
package battery

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/cmd/lull/internal/cells"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/queue"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/rivals"
	"github.com/lullgo/lull/lab/sim"
)

// Command is lull battery. Its flags are text, so that all mistakes are reported at once.
type Command struct {
	Family  cli.Texts `placeholder:"FAMILY,..." help:"Only these families of worlds. --list shows them."`
	World   cli.Texts `placeholder:"WORLD,..." help:"Only these worlds. * matches any text, as in bh300-*."`
	Policy  cli.Text  `placeholder:"POLICY" default:"lull" help:"The policy to judge: a preset, or a YAML file, whose first policy is used. Default: lull, the zero Policy."`
	Rivals  cli.Texts `placeholder:"PRESET,..." help:"The policies to compare it with. all: every preset. Default: none, aws-standard-2.1, breaker-5s, token-bucket, envoy-retry-budget, finagle, full-jitter, grpc, budget10+breaker5s and dotnet-standard."`
	Seeds   cli.Texts `sep:"none" placeholder:"5" help:"Runs of each policy in each world: 1 to 100. Default: 5, or 1 with --quick."`
	Against cli.Text  `placeholder:"FILE" help:"A file with the output of an earlier run with --json. Runs of the rivals with the same world and seed are taken from there, and only missing runs are made."`
	Quick   bool      `help:"Shorter worlds, without the largest fleets, for a first look."`
	Whole   bool      `help:"All thousand worlds of the family grid, instead of forty."`
	Fresh   cli.Text  `placeholder:"N" help:"N worlds that are drawn from the families instead: rates, processes, timeouts, lengths of outages and so on. 1 to 10000."`
	Seed    cli.Text  `placeholder:"SEED" help:"What --fresh draws with. The output names it. Default: an even number, by chance. The tests of lull draw with odd ones only, so nothing was tuned to even ones."`
	All     bool      `help:"Print a line for every world, not only for those where the policy is beaten."`
	JSON    bool      `name:"json" help:"Print all figures as JSON on standard output."`
	List    bool      `help:"List the families and their worlds."`
	cells.Flags
}

func (Command) Help() string {
	return fmt.Sprintf(`Simulates a policy and its rivals in a battery of worlds. Each world is simulated
with its outage and without ("in peace"). The output lists the demands that the
policy does not meet, and the worlds where a rival does better, and by how much.

The demands, in every world, with its outage and in peace:

  - success: no fewer successes than without retries.
  - back: back after an outage no later than without retries.
  - held: while a dependency hangs, callers hold at most 1.3 times as much as
    without retries, in calls that are in progress.
  - undominated: no rival that retries is better in one of successes, time to
    recover, what callers hold and attempts, and worse in none.
  - attempts: in a total outage, at most 1.1 attempts for each call, and %d more
    for each process.

With --fresh the worlds are drawn by a seed. A policy that was tuned to the points of
the battery is not tuned to these.

Differences count if they are more than chance, and more than 0.2 points of
success, 2 s or 2 %% of the outage, 3 %% of the attempts, 10 %% of what is held
and 2 %% of the attempt timeout for each call.

Examples:

  lull battery --quick
      the zero Policy, in a minute or two
  lull battery --quick --fresh 60
      the same in sixty worlds that nobody has seen
  lull battery --family hangs,gateways --policy mine.yaml
      your own policy, where dependencies hang`, budget.DefaultStock)
}

type task struct {
	plan   battery.Plan
	seeds  int
	drawn  *uint64 // the seed of --fresh
	preset string  // whose options the judged policy has, if any
	where  *cells.Where
}

func (f Command) Check() error { _, err := f.task(); return err }

func (Command) Complete() map[string][]string {
	presets := slices.DeleteFunc(choice.Each(rivals.All(), func(p rivals.Preset) string { return p.Name }), func(name string) bool { return name == "lull" })
	return map[string][]string{"family": families(), "policy": append([]string{"lull"}, presets...), "rivals": append([]string{"all"}, presets...)}
}

func families() []string {
	return choice.Each(battery.Families, func(f battery.Family) string { return f.Name })
}

// Run simulates the worlds and prints the figures.
func (f Command) Run(env cli.Env, ctx *kong.Context) error {
	if f.Remote() && f.Away == nil {
		return queue.Start(env, ctx.Args)
	}
	t, err := f.task()
	if err != nil {
		return err
	}
	t.where.Env = env
	if f.List {
		return printList(env.Stdout, t)
	}
	p := term.NewProgress(env.Stderr, env.Getenv, f.Quiet)
	t.plan.Progress = func(done, of int) {
		p.Show(func(took time.Duration) string {
			left := time.Duration(float64(took) * float64(of-done) / float64(done)).Round(time.Second)
			return fmt.Sprintf("flying: %d of %d flights, at most %v left", done, of, left)
		})
	}
	t.plan.Fly = t.fly
	flown, err := battery.Fly(env.Context, t.plan)
	p.End()
	if err != nil {
		return err
	}
	switch {
	case t.where.Part:
		return nil
	case f.JSON:
		return printJSON(env.Stdout, t, flown)
	}
	return printText(env.Stdout, t, flown, f.All)
}

// fly runs the flights as cells. The figures of a flight do not depend on where it runs.
func (t *task) fly(ctx context.Context, all []battery.Flight, done func(i int, f battery.Figures)) error {
	fly := make([]cells.Cell, len(all))
	for i, n := range all {
		preset := n.Contender.Name
		if preset == t.plan.Judged.Name {
			preset = t.preset
		}
		fly[i] = cells.Cell{Wanted: cells.Figures, Scenario: n.Scenario, Contender: cells.ContenderOf(n.Contender, preset), Seed: n.Seed}
		for _, c := range n.Named {
			fly[i].Named = append(fly[i].Named, cells.ContenderOf(c, c.Name))
		}
	}
	return t.where.Fly(ctx, fly, cells.Watcher{Done: func(i int, r cells.Result) {
		if ctx.Err() == nil {
			done(i, *r.Figures)
		}
	}})
}

func (f Command) task() (task, error) {
	var l problem.List
	var wrong cli.Mistakes
	size, seeds := battery.Full, cli.Text("5")
	if f.Quick {
		size, seeds = battery.Quick, "1"
	}
	size.Whole = f.Whole
	t := task{seeds: cli.Whole(&l, "--seeds", f.Seeds.Or(seeds), 1, 100)}
	t.plan.Seeds = t.seeds
	var err error
	t.where, err = f.Flags.Read(&l)
	wrong.Add(err)
	l.Check(f.Cells == "" || !f.JSON, "--cells", "with --json", "one of them")
	asked, known := f.Family.Split(), families()
	for _, name := range asked {
		l.Check(slices.Contains(known, name), "--family", strconv.Quote(name), strings.Join(known, ", "))
	}
	worlds := battery.Worlds(size)
	if f.Fresh != "" {
		seed := 2 * rand.N[uint64](500_000_000)
		if f.Seed != "" {
			seed = cli.Seed(&l, f.Seed)
		}
		l.Check(f.Seed != "" || f.Cells == "" && len(f.Merge) == 0, "--seed", "missing", "the same one for all parts")
		worlds, t.drawn = battery.Fresh(size, seed, cli.Whole(&l, "--fresh", f.Fresh, 1, 10_000)), &seed
	}
	l.Check(f.Fresh != "" || f.Seed == "", "--seed", "without --fresh", "both or none")
	t.plan.Worlds = slices.DeleteFunc(worlds, func(w battery.World) bool {
		return len(asked) > 0 && !slices.Contains(asked, w.Family)
	})
	if patterns := f.World.Split(); len(patterns) > 0 {
		matches := func(pattern, name string) bool { ok, err := path.Match(pattern, name); return ok && err == nil }
		for _, p := range patterns {
			l.Check(slices.ContainsFunc(t.plan.Worlds, func(w battery.World) bool { return matches(p, w.Name) }),
				"--world", strconv.Quote(p), "a world that --list names, with the same --family and --quick; * stands for anything")
		}
		t.plan.Worlds = slices.DeleteFunc(t.plan.Worlds, func(w battery.World) bool {
			return !slices.ContainsFunc(patterns, func(p string) bool { return matches(p, w.Name) })
		})
	}
	rivals := f.Rivals.Split()
	if len(rivals) == 0 {
		rivals = battery.Rivals
	}
	if slices.Equal(rivals, []string{"all"}) {
		rivals, t.plan.Rivals = nil, battery.Presets()
	}
	for _, name := range rivals {
		c, err := battery.Preset(name)
		wrong.In("--rivals", err)
		t.plan.Rivals = append(t.plan.Rivals, c)
	}
	t.plan.Judged, t.preset, err = judged(string(f.Policy))
	wrong.In("--policy", err)
	if f.Against != "" {
		t.plan.Known, err = readKnown(string(f.Against))
		wrong.In("--against", err)
	}
	t.plan.Rivals = slices.DeleteFunc(t.plan.Rivals, func(c sim.Contender) bool { return c.Name == t.plan.Judged.Name })
	wrong.Add(l.Err())
	if len(wrong) == 0 { // what is flown in a world depends on nothing outside of it
		t.plan.Worlds, _ = cells.OfPart(t.where, t.plan.Worlds)
	}
	return t, wrong.Err()
}

// judged returns the policy of that name or file, and the preset that it is, if it is one.
func judged(v string) (c sim.Contender, preset string, err error) {
	if v == "lull" {
		return sim.Contender{Name: v, Policy: lull.Policy{}}, "", nil
	}
	if !strings.HasSuffix(v, ".yaml") && !strings.HasSuffix(v, ".yml") {
		c, err = battery.Preset(v)
		return c, c.Name, err
	}
	all, err := config.ReadPolicies(v)
	if err != nil {
		return c, "", cli.CannotRead(err)
	}
	return sim.Contender{Name: all[0].Name, Policy: all[0].Policy}, "", nil
}
