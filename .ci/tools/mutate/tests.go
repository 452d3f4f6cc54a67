package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/must"
)

// runner runs tests.
type runner struct {
	config
	dir, overlay string
	groups       []*group // the quick ones first
}

// binary is the tests of a package.
type binary struct {
	pkg, dir, path string
}

// group is tests that run in one process: one that is slow, or all quick ones of a package.
type group struct {
	*binary
	tests         []string
	took          time.Duration
	reaches       map[int]bool // nil: not known yet
	binaryReaches map[int]bool // with all its tests
	broken        bool
}

// quick is how long a test may take and still run together with others.
const quick = 200 * time.Millisecond

var verdictLine = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (\S+) \(([0-9.]+)s\)`)

// prepare builds the tests, and runs all of them without a change.
func (r *runner) prepare(patterns []string, drawn []*mutant) {
	need := map[string]bool{}
	for _, m := range drawn {
		need[m.pkg.path] = true
	}
	list := "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}\t{{.Dir}}{{end}}"
	for line := range strings.Lines(goCommand(append([]string{"list", "-f", list}, patterns...)...)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		deps := strings.Split(goCommand("list", "-deps", "-test", path), "\n")
		if !slices.ContainsFunc(deps, func(d string) bool { return need[d] }) {
			continue
		}
		b := &binary{pkg: path, dir: dir, path: filepath.Join(r.dir, fmt.Sprintf("%d.test", len(r.groups)))}
		b.build(r.overlay)
		r.split(b)
	}
	slices.SortStableFunc(r.groups, func(a, b *group) int { return int(a.took - b.took) })
}

func (b *binary) build(overlay string) {
	goCommand("test", "-c", "-vet=off", "-overlay", overlay, "-o", b.path, b.pkg)
}

// split puts the tests of b into groups, by how long they take.
func (r *runner) split(b *binary) {
	log := b.path + ".reached"
	began := time.Now()
	out, used, _, err := r.execute(b, 0, log, 10*time.Minute, "-test.v")
	if !errors.As(err, new(*exec.ExitError)) {
		must.Succeed(err)
	}
	all := &group{binary: b, reaches: reached(log)}
	groups := []*group{all}
	all.took = time.Since(began)
	busy := float64(used) / float64(all.took) // of the time, the tests had the processor for so much
	for _, v := range verdictLine.FindAllStringSubmatch(out, -1) {
		seconds, _ := strconv.ParseFloat(v[3], 64)
		took := time.Duration(seconds * float64(time.Second))
		cost := time.Duration(float64(took) * busy)
		switch {
		case v[1] == "SKIP":
		case v[1] == "FAIL":
			fmt.Fprintf(r.log, "%s %s fails without a change; left out\n", b.pkg, v[2])
		case cost > r.longest:
			fmt.Fprintf(r.log, "%s %s takes %v; left out\n", b.pkg, v[2], cost)
			all.took -= took
		case cost > quick:
			groups = append(groups, &group{binary: b, tests: []string{v[2]}, took: took})
			all.took -= took
		default:
			all.tests = append(all.tests, v[2])
		}
	}
	all.took = max(all.took, 0) // less than nothing, if slow ones ran beside one another
	if len(all.tests) == 0 {
		groups = groups[1:]
	}
	for _, g := range groups {
		g.binaryReaches = all.reaches
	}
	r.groups = append(r.groups, groups...)
}

// reached is the changes that a log names.
func reached(log string) map[int]bool {
	ids := map[int]bool{}
	text, _ := os.ReadFile(log)
	for _, id := range strings.Fields(string(text)) {
		if n, err := strconv.Atoi(id); err == nil {
			ids[n] = true
		}
	}
	os.Remove(log)
	return ids
}

// mayKill reports whether g reaches m, for which a slow test runs once without a change.
func (r *runner) mayKill(g *group, m *mutant) bool {
	if !g.binaryReaches[m.id] {
		return false
	}
	if g.reaches == nil {
		log := g.path + ".reached"
		began := time.Now()
		out, _, _, err := r.execute(g.binary, 0, log, 10*time.Minute, "-test.run", g.run())
		g.took, g.reaches, g.broken = max(g.took, time.Since(began)), reached(log), err != nil
		if g.broken {
			fmt.Fprintf(r.log, "%s fails without a change; left out:\n%s", g, out)
			return false
		}
	}
	return g.reaches[m.id]
}

func (g *group) run() string { return "^(" + strings.Join(g.tests, "|") + ")$" }

func (g *group) String() string {
	if len(g.tests) == 1 {
		return g.pkg + " " + g.tests[0]
	}
	return g.pkg
}

// try returns what killed m, and whether that was because it took too long. The tests of its own package come first. A change that cannot
// be built with others is built alone.
func (r *runner) try(m *mutant) (by string, timedOut bool) {
	overlay, built := "", map[*binary]*binary{}
	if m.alone {
		file := filepath.Join(r.dir, "alone.go")
		tool.WriteFile(file, m.plain())
		overlay = writeOverlay(filepath.Join(r.dir, "alone.json"), map[string]string{m.file.path: file})
	}
	defer func() {
		for _, b := range built {
			os.Remove(b.path)
		}
	}()
	for _, own := range []bool{true, false} {
		for _, g := range r.groups {
			if own != (g.pkg == m.pkg.path) || g.broken || !m.alone && !r.mayKill(g, m) {
				continue
			}
			b, id := g.binary, m.id
			if m.alone {
				if built[g.binary] == nil {
					built[g.binary] = &binary{g.pkg, g.dir, g.path + ".alone"}
					built[g.binary].build(overlay)
				}
				b, id = built[g.binary], 0
			}
			if out, timedOut, err := r.killedBy(g, b, id); err != nil {
				return fmt.Sprint(g, firstFailure(out)), timedOut
			}
		}
	}
	return "", false
}

// killedBy runs g with a change; the error means that a test failed. If they take too long they
// run once more with a longer limit, and a test that fails must fail twice, or the rest decide:
// the machine may be busy.
func (r *runner) killedBy(g *group, b *binary, id int) (out string, timedOut bool, err error) {
	limit, flaky := 5*g.took+r.slack, []string{"-"} // which is no test's name
	for timedOut = true; timedOut || err != nil; {
		run := func(tests string) (string, bool, error) {
			out, _, timedOut, err := r.execute(b, id, "", limit, "-test.failfast", "-test.run", tests, "-test.skip", "^("+strings.Join(flaky, "|")+")$")
			return out, timedOut, err
		}
		if out, timedOut, err = run(g.run()); timedOut && limit < 15*g.took+3*r.slack {
			limit *= 3
			continue
		}
		failed := failedTest.FindStringSubmatch(out)
		if timedOut || err == nil || failed == nil {
			break
		}
		if out, timedOut, err := run("^" + failed[1] + "$"); err != nil {
			return out, timedOut, err
		}
		flaky = append(flaky, failed[1])
	}
	return out, timedOut, err
}

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// execute runs a test binary, with the change of that number.
func (r *runner) execute(b *binary, id int, log string, limit time.Duration, args ...string) (out string, used time.Duration, timedOut bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit+10*time.Second)
	defer cancel()
	args = append(args, "-test.short", "-test.timeout", limit.String())
	cmd := exec.CommandContext(ctx, b.path, args...)
	cmd.Dir = b.dir
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "LULL_SEED="+strconv.FormatUint(r.seed, 10), "LULL_MUTANT="+strconv.Itoa(id), "LULL_MUTANT_LOG="+log)
	text, err := cmd.CombinedOutput()
	timedOut = ctx.Err() != nil || bytes.Contains(text, []byte("panic: test timed out after"))
	if cmd.ProcessState != nil {
		used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return string(text), used, timedOut, err
}

var failedLine = regexp.MustCompile(`--- FAIL: \S+|panic: .*|fatal error: .*`)

// firstFailure returns the line of a failure that is printed.
func firstFailure(out string) string {
	if s := failedLine.FindString(out); s != "" {
		return ": " + s
	}
	return ""
}
