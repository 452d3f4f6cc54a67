//go:build servers

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
)

// inBash returns what bash offers for each command line, of which the last word is being typed. A
// line ends with a blank if nothing of that word is there yet. Bash has = as a word of its own.
func inBash(t *testing.T, folder string, lines ...string) [][]string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there is no bash here")
	}
	code, script, errs := lullProgram(t.Context(), "completion", "bash")
	if code != cli.OK || errs != "" {
		t.Fatalf("exit code %d, printed %q", code, errs)
	}
	var b strings.Builder
	b.WriteString(script)
	b.WriteString("complete -p lull >/dev/null || echo 'lull is not completed'\n")
	for _, line := range lines {
		words := strings.Split(strings.ReplaceAll(line, "=", " = "), " ")
		fmt.Fprintf(&b, "COMP_WORDS=(lull")
		for _, w := range words {
			fmt.Fprintf(&b, " '%s'", w)
		}
		fmt.Fprintf(&b, "); COMP_CWORD=%d; _lull; echo \"${COMPREPLY[*]}\"\n", len(words))
	}
	c := exec.CommandContext(t.Context(), "bash", "--norc", "-u")
	c.Dir, c.Stdin = folder, strings.NewReader(b.String())
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(got) != len(lines) {
		t.Fatalf("%d lines for %d:\n%s", len(got), len(lines), out)
	}
	all := make([][]string, len(got))
	for i, line := range got {
		all[i] = strings.Fields(line)
	}
	return all
}

func TestCompletionInBash(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"retry.yaml", "retry.json", "other.yaml"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct{ line, want string }{
		{"li", "lint"},
		{"--v", "--version"},
		{"lint --fo", "--format"},
		{"lint --format ", "text json sarif github gitlab junit"},
		{"lint --format j", "json junit"},
		{"lint --format=j", "json junit"},
		{"lint --format=", "text json sarif github gitlab junit"},
		{"lint a.yaml --threshold n", "note never"},
		{"lint --off ", ""},
		{"lint ret", "retry.json retry.yaml"},
		{"convert oth", "other.yaml"},
		{"convert --to e", "envoy envoy-gateway"},
		{"convert -o ret", "retry.json retry.yaml"},
		{"simulate metastable-s", "metastable-stall"},
		{"simulate --policy go-r", "go-retryablehttp"},
		{"simulate --policy none,go-r", "none,go-retryablehttp"},
		{"simulate --policy ret", "retry.json retry.yaml"},
		{"simulate --policy none,oth", "none,other.yaml"},
		{"battery --family grid,mi", "grid,mixed"},
		{"completion z", "zsh"},
		{"help ji", "jitter"},
		{"help lin", "lint"},
		{"exec --attempts ", ""},
		{"exec --att", "--attempts"},
		{"exec -- cat ret", "retry.json retry.yaml"},
		{"nothing ", ""},
		{"queue ", "inspect redrive"},
		{"queue red", "redrive"},
		{"queue --", "--help"},
		{"queue redrive --d", "--dry-run"},
		{"queue --help inspect --bo", "--body"},
		{"queue inspect --dr", ""},
		{"queue inspect --reason pe", "permanent"},
		{"queue inspect --reason=cr", "crashed"},
		{"queue inspect amqp://localhost dead --older-than ", ""},
		{"queue inspect queue ", ""},
		{"queue nothing --", ""},
		{"simulate --policy queue --see", "--seed --seeds"},
		{"worker --w", "--workers"},
	}
	var lines []string
	for _, c := range cases {
		lines = append(lines, c.line)
	}
	for i, got := range inBash(t, folder, append(lines, "exec -- prin")...) {
		if i == len(cases) {
			if !slices.Contains(got, "printf") {
				t.Errorf("no programs: %q", got)
			}
			continue
		}
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(strings.FieldsSeq(cases[i].want))) {
			t.Errorf("%q: got %q, want %q", cases[i].line, got, cases[i].want)
		}
	}
}

// Every command and every flag is offered.
func TestCompletionIsComplete(t *testing.T) {
	root := model(t).Model.Node
	lines, want := []string{""}, [][]string{nil}
	for _, n := range root.Children {
		want[0] = append(want[0], n.Name)
	}
	below(root, func(name string, n *kong.Node) {
		lines, want = append(lines, name+" --"), append(want, typed(n))
		if len(n.Children) > 0 {
			names := []string{}
			for _, c := range n.Children {
				names = append(names, c.Name)
			}
			lines, want = append(lines, name+" "), append(want, names)
		}
	})
	for i, got := range inBash(t, t.TempDir(), lines...) {
		if !slices.Equal(got, want[i]) {
			t.Errorf("%q: got %q, want %q", lines[i], got, want[i])
		}
	}
}

// What lull completes of lull queue and lull worker is what the program lull-queue accepts: after a flag
// that it does not have, it lists the flags that it has.
func TestCompletionIsThatOfLullQueue(t *testing.T) {
	program := filepath.Join(t.TempDir(), "lull-queue")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./lull-queue").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var lines []string
	var want [][]string
	for args, command := range map[string]string{"": "queue", "inspect": "queue inspect", "redrive": "queue redrive", "worker": "worker"} {
		c := exec.CommandContext(t.Context(), program, append(strings.Fields(args), "--no-such-flag")...)
		out, err := c.CombinedOutput()
		if c.ProcessState == nil || c.ProcessState.ExitCode() != cli.Misused {
			t.Fatalf("lull-queue %s: %v\n%s", args, err, out)
		}
		before, accepted, _ := strings.Cut(string(out), " of "+command+": ")
		accepted, _, _ = strings.Cut(accepted, ".\n")
		names := strings.Split(accepted, ", ")
		if strings.HasSuffix(before, "\nCommands") {
			lines = append(lines, command+" ")
		} else {
			lines = append(lines, command+" --")
			offeredElsewhere(t, command, names)
		}
		want = append(want, names)
	}
	for i, got := range inBash(t, t.TempDir(), lines...) {
		if !slices.Equal(got, want[i]) || len(got) < 2 {
			t.Errorf("%q: got %q, lull-queue accepts %q", lines[i], got, want[i])
		}
	}
}
