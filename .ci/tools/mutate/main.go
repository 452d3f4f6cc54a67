// Command mutate changes Go code in small mechanical ways, one at a time (a condition negated, < for <=,
// a statement dropped, a constant off by one), runs the tests over each change, and prints the changes
// that no test noticed: each is a gap in the tests, code that is not needed, or a change that makes no
// difference.
//
//	GOWORK=off go -C .ci/tools build -o /tmp/mutate ./mutate && /tmp/mutate -n 200 -seed 1
//
// Run it in the root of the repository. It changes no file: the go command is given an overlay.
//
// All changes are built into one test binary of each package. A place that changes becomes a branch that
// asks for the number of the change, which is read once from the environment. The few changes that cannot
// be written so are built one by one. Tests run first without any change: that shows how long each takes
// and which changes it reaches. A change is then tried by the tests that reach it, the quick ones first.
//
// equivalent.txt, beside this file, lists the changes that are known to make no difference, each with the
// reason. They are counted, but neither as killed nor as survivors.
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/must"
)

// What is changed, and whose tests run beside those of the changed packages.
const (
	changed = ". ./engine ./backoff ./breaker ./budget ./bulkhead ./hedge ./throttle ./outlier ./lullhttp ./server/idempotency ./queue"
	beside  = "./server/admission ./lab/rivals ./queue/queuetest ./lab/sim"
)

func main() {
	c := config{log: os.Stdout, slack: 5 * time.Second}
	flag.IntVar(&c.n, "n", 200, "how many changes to try")
	flag.Uint64Var(&c.seed, "seed", 1, "which ones are drawn; tests draw from it too (LULL_SEED)")
	flag.StringVar(&c.at, "at", "", "try only what is at FILE, FILE:LINE or FILE:FROM-TO, all of it")
	tests := flag.String("beside", beside, "packages whose tests run beside those of the changed ones")
	flag.StringVar(&c.known, "equivalent", ".ci/tools/mutate/equivalent.txt", "the changes that make no difference")
	flag.DurationVar(&c.longest, "longest", 15*time.Second, "leave out tests that take longer")
	flag.BoolVar(&c.verbose, "v", false, "print every change and what killed it")
	flag.Parse()
	c.packages = flag.Args()
	if len(c.packages) == 0 {
		c.packages = strings.Fields(changed)
	}
	c.beside = strings.Fields(*tests)
	must.Main("mutate", 2, func() error {
		_, err := run(c)
		return err
	})
}

type config struct {
	n                int
	seed             uint64
	at, known        string
	packages, beside []string
	longest          time.Duration
	slack            time.Duration // which tests get on top of five times what they took without a change
	verbose          bool
	log              io.Writer
}

// run returns the survivors.
func run(c config) (survivors []*mutant, err error) {
	defer must.Catch(&err)
	dir, remove := tool.TempDir("mutate")
	defer remove()
	known := equivalents(c.known)
	packages := load(c.packages)
	drawn, possible, invalid := draw(c, packages)
	r := &runner{config: c, dir: dir, overlay: writeAll(packages, drawn, dir)}
	r.prepare(slices.Concat(c.packages, c.beside), drawn)
	killed, hung, same := 0, 0, 0
	for i, m := range drawn {
		if known[m.key()] != "" && c.at == "" {
			same++
			continue
		}
		by, timedOut := r.try(m)
		if by == "" {
			survivors = append(survivors, m)
			fmt.Fprintf(c.log, "%s%s\n", m, known[m.key()])
			continue
		}
		killed++
		if timedOut {
			hung++
		}
		if c.verbose {
			fmt.Fprintf(c.log, "  %d of %d: %s: killed by %s\n", i+1, len(drawn), m, by)
		}
	}
	fmt.Fprintf(c.log, "%d changes: %d killed (%d by a test that took too long), %d make no difference, %d survived: %.1f %% (seed %d; %d more did not compile; %d are possible)\n",
		len(drawn), killed, hung, same, len(survivors), 100*float64(killed+same)/float64(max(1, len(drawn))), c.seed, invalid, possible)
	return survivors, nil
}

// draw picks c.n mutants of all that are possible and compile.
func draw(c config, packages []*pkg) (drawn []*mutant, possible, invalid int) {
	var all []*mutant
	for _, p := range packages {
		all = append(all, p.mutants()...)
	}
	possible = len(all)
	if c.at != "" {
		file, lines, _ := strings.Cut(c.at, ":")
		first, last, isRange := strings.Cut(lines, "-")
		from, _ := strconv.Atoi(first)
		to, _ := strconv.Atoi(last)
		if !isRange {
			to = from
		}
		all = slices.DeleteFunc(all, func(m *mutant) bool {
			return m.name() != filepath.Clean(file) || lines != "" && (m.line < from || m.line > to)
		})
		c.n = len(all)
	} else {
		rand.New(rand.NewPCG(c.seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	for _, m := range all {
		if len(drawn) == c.n {
			break
		}
		if m.alone = !m.pkg.compiles([]*mutant{m}); m.alone && !m.pkg.compilesPlain(m) {
			invalid++
			continue
		}
		drawn = append(drawn, m)
		m.id = len(drawn)
	}
	if len(drawn) == 0 {
		must.Fail("nothing to change in %v %s", c.packages, c.at)
	}
	return drawn, possible, invalid
}

// equivalents reads the list of changes that make no difference: what they are, and why.
func equivalents(file string) map[string]string {
	known := map[string]string{}
	if file == "" {
		return known
	}
	for line := range strings.Lines(tool.ReadFile(file)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		what, why, ok := strings.Cut(line, " -- ")
		if !ok {
			must.Fail("%s: %q has no reason after --", file, line)
		}
		known[what] = why
	}
	return known
}

// goCommand runs the go command, and returns what it printed.
func goCommand(args ...string) string { return must.Have(tool.Output(exec.Command("go", args...))) }
