package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cells"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/lab/rivals"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

const (
	defaultScenario = "metastable-stall"
	mostSeeds       = 1000
	mostCells       = 2500 // of a sweep
	longestHorizon  = 10_000 * time.Hour
)

type simulation struct {
	world
	named []cells.Contender // policies that fleets and hops name
	seed  uint64
	seeds int
	where *cells.Where
	axes  []sweepAxis
	cells []world // the world itself, or one for each pair of values of the axes
}

// A world is a scenario and the policies that are flown through it.
type world struct {
	scenario   sim.Scenario
	contenders []contender
}

func (w *world) change(assignment string) error {
	path, value, assigned := strings.Cut(assignment, "=")
	switch {
	case !assigned:
		return fmt.Errorf("want PATH=VALUE, such as fleets.0.arrivals.rate=900")
	case path == "clients":
		n, err := processes(value)
		if err != nil {
			return err
		}
		w.scenario = w.scenario.WithProcesses(n)
		return nil
	case strings.HasPrefix(path, "policy."):
		return w.changePolicies(strings.TrimPrefix(assignment, "policy."))
	}
	return scenario.Set(&w.scenario, assignment)
}

func (w *world) changePolicies(assignment string) error {
	changed := false
	for i := range w.contenders {
		if w.contenders[i].preset {
			continue
		}
		changed = true
		if err := config.SetPolicy(&w.contenders[i].Policy, assignment); err != nil {
			return err
		}
	}
	if !changed {
		return fmt.Errorf("want lull or a policy file in --policy: presets stay as they are")
	}
	return nil
}

func (w *world) validate() error {
	var l problem.List
	for _, c := range w.contenders {
		l.In("policy "+c.Name, c.Policy.Validate())
	}
	var m cli.Mistakes
	m.Add(inFileTerms(w.scenario.Validate()))
	m.Add(l.Err())
	return m.Err()
}

// inFileTerms renames the fields of problems as in files: Services[0].Queue.Limit becomes services.0.queue.limit.
func inFileTerms(err error) error {
	var l problem.List
	if !errors.As(err, &l) {
		return err
	}
	l = slices.Clone(l)
	for i := range l {
		l[i].Field = codec.Path(l[i].Field)
	}
	return l
}

func (f Command) simulation() (simulation, error) {
	var wrong cli.Mistakes
	var l problem.List
	s := simulation{seed: cli.Seed(&l, f.Seed), seeds: cli.Whole(&l, "--seeds", f.Seeds, 1, mostSeeds)}
	var err error
	s.where, err = f.Flags.Read(&l)
	wrong.Add(err)
	l.Check(f.Cells == "" || !f.JSON && !f.CSV && f.Report == "", "--cells", "with --json, --csv or --report", "none of these, but with --merge")
	l.Check(!f.JSON || !f.CSV, "--json with --csv", "both on standard output", "one of them")
	l.Check(!f.Map || len(f.Sweep) == 0 && !f.CSV && s.seeds == 1, "--map", "with --sweep, --csv or --seeds", "none of these")
	switch {
	case strings.HasPrefix(string(f.Report), "-"):
		l.Add("--report", f.Report.Quoted(), "the name of a file, such as out.html")
	case f.Report != "":
		if err := cli.CanWrite(string(f.Report)); err != nil { // which should not cost a run
			l.Add("--report", f.Report.Quoted(), "a file that can be written ("+errors.Unwrap(err).Error()+")")
		}
	}

	base, err := scenarioNamed(string(f.Scenario))
	noScenario := err != nil
	wrong.Add(err)
	asked := f.Policy.Split()
	if f.Map && len(asked) == 0 {
		asked = mapContenders
	}
	contenders, err := contendersOf(asked, base)
	wrong.Add(err)
	s.axes = axes(&l, f.Sweep)
	changes := f.changes(&l)
	wrong.Add(l.Err())
	if noScenario || contenders == nil {
		return s, wrong.Err() // what follows depends on these
	}

	build := func(m *cli.Mistakes, more ...change) world {
		w := world{scenario: base, contenders: slices.Clone(contenders)} // config.Set copies what it changes
		before := len(*m)
		for _, c := range slices.Concat(changes, more) {
			m.In(c.flag+" "+c.assignment, w.change(c.assignment))
		}
		if len(*m) == before {
			m.Add(w.validate())
		}
		return w
	}
	s.world = build(&wrong)
	named, err := namedPolicies(s.scenario, contenders)
	wrong.Add(err)
	s.named = named
	if len(wrong) > 0 {
		return s, wrong
	}
	for _, values := range cellsOf(s.axes) {
		s.cells = append(s.cells, build(&wrong, values...))
	}
	return s, wrong.Err()
}

type change struct{ flag, assignment string }

// changes returns the changes of all flags, in the order in which they are made.
func (f Command) changes(l *problem.List) []change {
	var all []change
	if f.Horizon != "" {
		before := len(*l)
		d := cli.Duration(l, "--horizon", f.Horizon, time.Millisecond, longestHorizon)
		if len(*l) == before {
			all = append(all, change{"--horizon", "horizon=" + d.String()})
		}
	}
	if f.Clients != "" {
		_, err := processes(string(f.Clients))
		l.Check(err == nil, "--clients", f.Clients.Quoted(), wantedProcesses)
		if err == nil {
			all = append(all, change{"--clients", "clients=" + string(f.Clients)})
		}
	}
	for _, t := range f.Set {
		all = append(all, change{"--set", string(t)})
	}
	return all
}

const wantedProcesses = "a number of processes from 1 to 1000G, such as 500, 100k or 25M"

// processes reads a number that may end in k, M or G.
func processes(v string) (int, error) {
	digits, factor := v, 1.0
	for suffix, by := range map[string]float64{"k": 1e3, "K": 1e3, "m": 1e6, "M": 1e6, "g": 1e9, "G": 1e9} {
		if rest, ok := strings.CutSuffix(v, suffix); ok {
			digits, factor = rest, by
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	n = math.Round(n*factor*1e6) / 1e6 // 0.1 is not exact in binary
	if err != nil || !(n >= 1 && n <= 1e12) || n != math.Trunc(n) || n > math.MaxInt {
		return 0, fmt.Errorf("want %s", wantedProcesses)
	}
	return int(n), nil
}

func scenarioNamed(v string) (sim.Scenario, error) {
	v = cmp.Or(v, defaultScenario)
	if isPath(v) {
		s, err := scenario.Read(v)
		return s, cli.CannotRead(err)
	}
	s, err := scenario.Find(v)
	if err != nil {
		return s, fmt.Errorf("SCENARIO: %w", noName(v, err))
	}
	return s, nil
}

// noName returns the error for v, which is no known name and does not look like a path: err, or what is wrong with the file that it names.
func noName(v string, err error) error {
	info, failed := os.Stat(v)
	switch {
	case failed != nil:
		return fmt.Errorf("%w; or give the path of a file that ends in .yaml", err)
	case info.IsDir():
		return fmt.Errorf("%s is a directory: want a file that ends in .yaml", v)
	}
	return fmt.Errorf("%s is a file whose name does not end in .yaml: write ./%[1]s to read it", v)
}

// isPath reports whether v is the path of a file, and not a name.
func isPath(v string) bool {
	return strings.ContainsAny(v, `/\`) || strings.HasSuffix(v, ".yaml") || strings.HasSuffix(v, ".yml")
}

// lullName is the preset of the zero Policy, the only one that --set policy.KEY changes.
const lullName = "lull"

var (
	defaultContenders = []string{"none", "full-jitter", "aws-legacy-standard", "grpc", lullName}
	defaultConsumers  = []string{"nack", "watermill", "spring-kafka", "queue"} // of topics
)

type contender struct {
	sim.Contender
	preset bool // --set policy.KEY does not change it
}

func (c contender) data() cells.Contender {
	if c.preset {
		return cells.ContenderOf(c.Contender, c.Name)
	}
	return cells.ContenderOf(c.Contender, "")
}

// contendersOf returns the policies of names and files, or those that the scenario is for; nil if any is wrong.
func contendersOf(asked []string, s sim.Scenario) ([]contender, error) {
	switch {
	case len(asked) > 0:
	case onlyMessages(s):
		asked = defaultConsumers
	default:
		asked = defaultContenders
	}
	var wrong cli.Mistakes
	var all []contender
	for _, v := range asked {
		found, err := contendersNamed(v)
		wrong.Add(err)
		all = append(all, found...)
	}
	seen := map[string]bool{}
	var l problem.List
	for _, c := range all {
		l.Check(!seen[c.Name], "--policy", strconv.Quote(c.Name)+" twice", "names that differ")
		seen[c.Name] = true
	}
	wrong.Add(l.Err())
	if len(wrong) > 0 {
		return nil, wrong
	}
	return all, nil
}

func contendersNamed(v string) ([]contender, error) {
	if !isPath(v) {
		c, err := presetContender(v)
		if err != nil {
			return nil, fmt.Errorf("--policy: %w", noName(v, err))
		}
		return []contender{{Contender: c, preset: c.Name != lullName}}, nil
	}
	policies, err := config.ReadPolicies(v)
	if err != nil {
		return nil, cli.CannotRead(err)
	}
	return choice.Each(policies, func(p config.NamedPolicy) contender {
		return contender{Contender: sim.Contender{Name: p.Name, Title: "of " + v, Policy: p.Policy}}
	}), nil
}

func presetContender(name string) (sim.Contender, error) {
	p, err := rivals.Find(name)
	return sim.Contender{Name: p.Name, Title: p.Title, Policy: p.Policy, Options: p.Options(), Verdict: p.Reads.Verdict, Holds: p.Holds}, err
}

// namedPolicies are those that fleets and hops name, of the contenders or else of the presets; sim knows "none".
func namedPolicies(s sim.Scenario, contenders []contender) ([]cells.Contender, error) {
	known := map[string]bool{"": true, "none": true}
	var named []cells.Contender
	var wrong cli.Mistakes
	add := func(name string) {
		if known[name] {
			return
		}
		known[name] = true
		for _, c := range contenders {
			if c.Name == name {
				named = append(named, c.data())
				return
			}
		}
		c, err := presetContender(name)
		if err != nil {
			wrong.In("policy of the scenario", fmt.Errorf("%w; or give a policy of that name with --policy", err))
			return
		}
		named = append(named, cells.ContenderOf(c, c.Name))
	}
	for _, f := range s.Fleets {
		add(f.Policy)
	}
	for _, t := range s.Topics {
		add(t.Policy)
	}
	for _, service := range s.Services {
		for _, h := range service.Calls {
			add(h.Policy)
		}
	}
	return named, wrong.Err()
}
