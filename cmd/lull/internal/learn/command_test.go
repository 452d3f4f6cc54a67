package learn

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

func learns(t *testing.T, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	return clitest.Run[Command](cli.Env{Context: t.Context(), Stdin: strings.NewReader(stdin)}, "learn", args...)
}

// accessLog is a log of nginx: 100 requests a second of 20 ms for two minutes, of which all fail from second 60 to 80.
func accessLog(t *testing.T, dir string) string {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	type line struct {
		at   float64
		text string
	}
	var lines []line
	for at := 0.0; at < 120; at += r.ExpFloat64() / 100 {
		took, status := 0.01+0.01*r.ExpFloat64(), 200
		if at > 60 && at < 80 {
			took, status = 0.002, 503
		}
		end := at + took
		when := time.Date(2026, 11, 29, 14, 0, 0, 0, time.UTC).Add(time.Duration(end * 1e9)).Format("02/Jan/2006:15:04:05 -0700")
		lines = append(lines, line{end, fmt.Sprintf("10.0.0.7 - bob [%s] \"GET /orders/%d HTTP/1.1\" %d 512 \"-\" \"curl/8.5.0\" %.3f\n", when, r.IntN(1e6), status, took)})
	}
	slices.SortFunc(lines, func(a, b line) int { return int(1e6 * (a.at - b.at)) })
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text)
	}
	b.WriteString("what is this\n")
	return clitest.Write(t, filepath.Join(dir, "access.log"), b.String())
}

func TestLearn(t *testing.T) {
	dir := t.TempDir()
	log, world, page := accessLog(t, dir), filepath.Join(dir, "world.yaml"), filepath.Join(dir, "page.html")
	code, out, errs := learns(t, "", log, "-o", world, "--report", page)
	if code != cli.OK {
		t.Fatalf("exit code %d, %s%s", code, out, errs)
	}
	for _, want := range []string{"Normal was: service got 101.2 requests a second", "what looks like errors (100%) for 20", "Not known: ", "Problems of the sources:", "The world is in " + world, "The page is in "} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	clitest.Width(t, strings.ReplaceAll(out, dir, ""), 80)
	s, l, err := scenario.ReadLearned(world)
	if err != nil || l == nil {
		t.Fatal(err)
	}
	f := s.Services[0].Faults
	if len(f) != 1 || f[0].Kind != sim.Errors || l.Zero != "2026-11-29T14:00:01Z" {
		t.Errorf("faults %v, zero %s", f, l.Zero)
	}
	if !strings.Contains(string(must.Have(os.ReadFile(page))), "0 s is 2026-11-29T14:00:01Z") {
		t.Error("the page does not say what its times count from")
	}
	text := string(must.Have(os.ReadFile(world))) + string(must.Have(os.ReadFile(page)))
	for _, private := range []string{"orders", "10.0.0.7", "bob", "curl", "what is this", "access.log"} {
		if i := strings.Index(strings.ReplaceAll(text, "lull learn "+log, ""), private); i >= 0 {
			t.Errorf("%q is kept: %s", private, text[max(i-50, 0):i+50])
		}
	}
	if _, err := sim.Run(t.Context(), s, sim.None(), sim.Options{}); err != nil {
		t.Error(err)
	}
}

func TestAsk(t *testing.T) {
	dir := t.TempDir()
	log, world := accessLog(t, dir), filepath.Join(dir, "world.yaml")
	code, out, errs := learns(t, strings.Repeat("many\n8\n", 9), log, "--ask", "-o", world)
	if strings.Contains(out, "how many processes") {
		t.Errorf("what was answered is said not to be known: %s", out)
	}
	if code != cli.OK || !strings.Contains(errs, "How many processes call?") || !strings.Contains(errs, "want a whole number") {
		t.Fatalf("exit code %d, %s%s", code, out, errs)
	}
	s, l, err := scenario.ReadLearned(world)
	if err != nil {
		t.Fatal(err)
	}
	check.Equal(t, s.Fleets[0].Processes, 8, "processes")
	told := slices.IndexFunc(l.Values, func(v scenario.Interval) bool { return v.Path == "fleets.0.processes" })
	check.Equal(t, l.Values[told], scenario.Interval{Path: "fleets.0.processes", Low: "8", High: "8", By: "told by you"}, "what is written")
	if slices.ContainsFunc(l.Unknown, func(q scenario.Question) bool { return q.Path == "fleets.0.processes" }) {
		t.Error("the question is still there")
	}
}

func TestMistakes(t *testing.T) {
	code, _, errs := learns(t, "", "--format", "x", "--from", "now", "--step", "1", "--zone", "Nowhere/", "--field", "a")
	for _, want := range []string{"SOURCE is missing", `--format is "x": want nginx, `, `--from is "now"`, `--step is "1"`, `--zone is "Nowhere/"`, `--field is "a": want KEY=NAME`} {
		if code != cli.Misused || !strings.Contains(errs, want) {
			t.Errorf("exit code %d, no %q in\n%s", code, want, errs)
		}
	}
	if code, _, errs := learns(t, "", "--ask", "-"); code != cli.Misused || !strings.Contains(errs, "--ask is given for standard input") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	short := clitest.Write(t, filepath.Join(t.TempDir(), "a.log"), `::1 - - [29/Nov/2026:14:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "x" 0.010`+"\n")
	if code, _, errs := learns(t, "", short); code != cli.Misused || !strings.Contains(errs, "want at least 10") {
		t.Errorf("of one line: exit code %d, %s", code, errs)
	}
	without := clitest.Write(t, filepath.Join(t.TempDir(), "b.log"), strings.Repeat(`::1 - - [29/Nov/2026:14:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "x"`+"\n", 9))
	if code, _, errs := learns(t, "", without); code != cli.Misused || !strings.Contains(errs, "log_format") {
		t.Errorf("without times: exit code %d, %s", code, errs)
	}
	log := accessLog(t, t.TempDir())
	for want, args := range map[string][]string{
		log + " is a source, and would be written over": {log, "-o", filepath.Join(filepath.Dir(log), ".", "access.log")},
		log + " is named twice":                         {log, log},
		"--from or --to is missing: want both":          {"http://127.0.0.1:1"},
		"field x=y: want time, start":                   {log, "--field", "x=y"},
	} {
		if code, _, errs := learns(t, "", args...); code != cli.Misused || !strings.Contains(errs, want) {
			t.Errorf("%v: exit code %d, no %q in\n%s", args, code, want, errs)
		}
	}
	if code, _, errs := learns(t, "", filepath.Join(t.TempDir(), "none")); code != cli.Failed || !strings.Contains(errs, "none") {
		t.Errorf("a file that is not there: exit code %d, %s", code, errs)
	}
}
