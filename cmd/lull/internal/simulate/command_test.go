package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/rivals"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// lullProgram runs the program and returns what it printed.
func lullProgram(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return clitest.Run[Command](cli.Env{Context: ctx}, "simulate", args...)
}

const tiny = "testdata/tiny.yaml"

// simulate runs lull simulate and wants it to succeed. It asks for no progress, because a run
// that takes ten seconds, as one does beside other work, would print some.
func simulate(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := lullProgram(t.Context(), append([]string{"--quiet"}, args...)...)
	if code != cli.OK || stderr != "" {
		t.Fatalf("%v: exit code %d, stderr\n%s", args, code, stderr)
	}
	return stdout
}

// The policies of these runs are presets, so that the files change only if package sim
// does.
func TestSimulateTiny(t *testing.T) {
	both := []string{tiny, "--policy=none,naive-3"}
	golden.File(t, "testdata/tiny.txt", simulate(t, both...))
	golden.File(t, "testdata/tiny-seeds.txt", simulate(t, append(both, "--seeds=3")...))
	golden.File(t, "testdata/tiny-sweep.txt", simulate(t, append(both, "--sweep=services.api.faults.0.for=1s,2s", "--sweep=clients=1..7/3")...))
	golden.File(t, "testdata/tiny.json", simulate(t, append(both, "--json", "--set=step=5s")...))
	golden.File(t, "testdata/tiny.csv", simulate(t, append(both, "--csv", "--set=step=5s")...))
	golden.File(t, "testdata/tiny-sweep.csv", simulate(t, append(both, "--csv", "--sweep=services.api.faults.0.for=1s,2s")...))
}

func TestSimulateSetAndFiles(t *testing.T) {
	type totals struct {
		Contenders []struct {
			Name string
			Runs []struct {
				Totals struct{ Calls, Attempts int64 }
			}
		}
		Policies []struct {
			Name   string
			Policy struct{ Attempts int }
		}
	}
	read := func(args ...string) (v totals) {
		text := simulate(t, append([]string{tiny, "--json", "--set=services.0.errors=1", "--set=services.0.faults=[]"}, args...)...)
		must.Succeed(json.Unmarshal([]byte(text), &v))
		return v
	}
	v := read("--policy=testdata/policies.yaml,none", "--horizon=10s")
	names := []string{}
	for _, c := range v.Contenders {
		names = append(names, c.Name)
		if n := c.Runs[0].Totals.Calls; n < 500 || n > 700 {
			t.Errorf("%s: %d calls in 10 s at 60 a second", c.Name, n)
		}
	}
	check.Slices(t, names, []string{"twice", "once", "none"}, "contenders: those of the file in its order, then the preset")
	v = read("--policy=testdata/policies.yaml", "--policy=none,lull", "--set=policy.attempts=7")
	for _, p := range v.Policies {
		check.Equal(t, p.Policy.Attempts, map[bool]int{true: 1, false: 7}[p.Name == "none"], "attempts of %s: presets stay as they are", p.Name)
	}
}

func TestSimulateInterruptedBeforeItBegan(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, extra := range []string{"--seeds=2", "--json", "--csv", "--sweep=clients=1,10"} {
		if code, _, stderr := lullProgram(over, tiny, extra); code != cli.Failed || !strings.Contains(stderr, "interrupted") {
			t.Errorf("%s: exit code %d, stderr %q", extra, code, stderr)
		}
	}
}

func TestSimulateReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.html")
	must.Succeed(os.WriteFile(path, bytes.Repeat([]byte("old "), 1<<20), 0o644))
	for _, extra := range []string{"--seeds=2", "--sweep=clients=1,10", "--json"} {
		out := simulate(t, tiny, "--report="+path, "--policy=none,lull", extra)
		page, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(page), "lull simulate "+tiny+" --policy none,lull") || strings.Contains(string(page), "old old") {
			t.Errorf("%s: the page lacks its command, or has remains of another (%v)", extra, err)
		}
		if said := strings.Contains(out, path); said == (extra == "--json") {
			t.Errorf("%s: names the page: %v", extra, said)
		}
	}
	fresh := filepath.Join(t.TempDir(), "fresh.html")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	lullProgram(over, tiny, "--report="+fresh)
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("an interrupted run has a page, too: %v", err)
	}
}

func TestSimulateList(t *testing.T) {
	list := simulate(t, "--list")
	clitest.Width(t, list, 80)
	for _, s := range scenario.BuiltIn() {
		if !strings.Contains(list, "\n  "+s.Name+" ") {
			t.Errorf("scenario %s is not listed", s.Name)
		}
	}
	for _, p := range rivals.All() {
		if !strings.Contains(list, "\n  "+p.Name+" ") {
			t.Errorf("preset %s is not listed", p.Name)
		}
	}
}

func TestSimulateExplain(t *testing.T) {
	for _, s := range scenario.BuiltIn() {
		text := simulate(t, s.Name, "--explain")
		words, file, ok := strings.Cut(text, "given to lull simulate:\n\n")
		if !ok {
			t.Errorf("%s: no file in\n%s", s.Name, text)
			continue
		}
		clitest.Width(t, words, 80)
		for _, part := range []string{s.Name, s.Title, "time ", "teaches", "source"} {
			if !strings.Contains(strings.Join(strings.Fields(words), " ")+" ", strings.TrimSpace(part)) {
				t.Errorf("%s: %q is not explained:\n%s", s.Name, part, words)
			}
		}
		for _, service := range s.Services {
			if !strings.Contains(words, "  "+service.Name) {
				t.Errorf("%s: service %s is not explained", s.Name, service.Name)
			}
		}
		if _, err := scenario.Parse(s.Name, []byte(file)); err != nil {
			t.Errorf("%s: the file cannot be read again: %v", s.Name, err)
		}
	}
	if text := simulate(t, tiny, "--explain", "--clients=12k"); !strings.Contains(text, "12,000 processes") {
		t.Errorf("--explain does not show what --clients changes:\n%s", text)
	}
}

// A map of the tiny scenario, with the boundary of theory, on a terminal, as JSON and as a page.
func TestSimulateMap(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: some two hundred runs")
	}
	args := []string{tiny, "--map", "--policy=none,naive-3"}
	golden.File(t, "testdata/tiny-map.txt", simulate(t, append(args, "--workers=2")...))
	golden.File(t, "testdata/tiny-map.json", simulate(t, append(args, "--json", "--workers=1")...))
	page := filepath.Join(t.TempDir(), "map.html")
	const several = "from the beginning of the first fault to the end of the last"
	text := simulate(t, append(args, "--set=services.0.faults=[{kind: stall, at: 10s, for: 1s}, {kind: stall, at: 12s, for: 1s}]", "--report="+page)...)
	if !strings.Contains(strings.Join(strings.Fields(text), " "), several) {
		t.Errorf("it does not say what the rows are, of several faults:\n%s", text)
	}
	html := must.Have(os.ReadFile(page))
	for _, want := range []string{`class="never"`, `class="back"`, "lull simulate testdata/tiny.yaml --policy none,naive-3",
		several, "naive-3, ", "seed 1", "outage&nbsp;↓", "calls a second&nbsp;→", "or it cannot bear that load in peace"} {
		if !strings.Contains(string(html), want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

func TestSimulateMapOfNothing(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--map --csv", "--map is with --sweep, --csv or --seeds: want none of these"},
		{"--map --set=services.0.faults=[]", "services.faults is none that ends: want an outage that ends before the horizon, for a map"},
	} {
		code, stdout, stderr := lullProgram(t.Context(), append([]string{tiny}, strings.Fields(c.args)...)...)
		if code == cli.OK || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit code %d\n%s%s", c.args, code, stdout, stderr)
		}
	}
}

func TestProgressIsPlainAndRareWhereThereIsNoTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := term.NewProgress(&out, func(string) string { return "" }, false)
		for second := range 35 {
			p.Show((&tally{done: second / 10, of: make([]sim.Progress, 5), share: float64(second) / 50, events: int64(second) * 2_000_000}).line)
			time.Sleep(time.Second)
		}
		p.End()
		const want = `simulating: 20.0 %, 1 of 5 runs, 2M events/s, 40 s left
simulating: 40.0 %, 2 of 5 runs, 2M events/s, 30 s left
simulating: 60.0 %, 3 of 5 runs, 2M events/s, 20 s left
`
		check.Equal(t, out.String(), want, "printed")
	})
}

// What is merged of three parts is byte for byte what one run prints, in every form.
func TestMergedPartsAreOneRun(t *testing.T) {
	for _, c := range []struct{ args, forms []string }{
		{[]string{tiny, "--policy=none,grpc,testdata/policies.yaml", "--seeds=2"}, []string{"", "--json", "--csv"}},
		{[]string{tiny, "--policy=none,lull", "--sweep=clients=1,10", "--sweep=services.api.faults.0.for=1s,2s", "--set=policy.attempts=2"}, []string{"", "--json", "--csv"}},
		{[]string{tiny, "--policy=none,lull", "--map"}, []string{"", "--json"}},
	} {
		folder := t.TempDir()
		for part := range 3 {
			text := simulate(t, append(c.args, fmt.Sprintf("--cells=%d/3", part))...)
			clitest.Write(t, filepath.Join(folder, fmt.Sprint(part, ".part")), text)
		}
		for _, form := range c.forms {
			args := c.args
			if form != "" {
				args = append(args[:len(args):len(args)], form)
			}
			want := simulate(t, args...)
			merged := append(args[:len(args):len(args)], "--merge="+folder+"/*.part")
			check.Equal(t, simulate(t, merged...), want, "%v: merged", args)
			if code, out, errs := lullProgram(t.Context(), append(merged, "--seed=2")...); code != cli.Failed || out != "" || !strings.Contains(errs, "are in none of the files") {
				t.Errorf("%v with another seed: exit code %d, printed %q and %q", args, code, out, errs)
			}
		}
	}
}
