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

// model returns the commands of the program.
func model(t *testing.T) *kong.Kong {
	t.Helper()
	parser, err := kong.New(&commands{}, kong.Name("lull"))
	if err != nil {
		t.Fatal(err)
	}
	return parser
}

// below calls f with each command under n, and with its name as it is typed.
func below(n *kong.Node, f func(name string, n *kong.Node)) {
	for _, c := range n.Children {
		f(c.Path(), c)
		below(c, f)
	}
}

// typed returns the flags of a command as they are typed.
func typed(n *kong.Node) (flags []string) {
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			flags = append(flags, "--"+f.Name)
		}
	}
	return flags
}

// offeredElsewhere fails unless the scripts for zsh and fish and the manual page have these flags of a command.
func offeredElsewhere(t *testing.T, command string, flags []string) {
	t.Helper()
	_, zsh, _ := lullProgram(t.Context(), "completion", "zsh")
	_, fish, _ := lullProgram(t.Context(), "completion", "fish")
	_, page, _ := lullProgram(t.Context(), "man")
	_, page, _ = strings.Cut(page, "\n.SS \"lull "+command)
	page, _, _ = strings.Cut(page, "\n.SS")
	words := strings.Fields(command)
	for i, word := range words {
		_, after, ok := strings.Cut(zsh, "\n"+strings.Repeat(" ", 8+8*i)+word+")\n")
		if !ok {
			t.Errorf("zsh does not complete lull %s", command)
		}
		zsh, _, _ = strings.Cut(after, "\n"+strings.Repeat(" ", 10+8*i)+";;\n")
	}
	for _, flag := range flags {
		if !strings.Contains(zsh, flag+"[") && !strings.Contains(zsh, flag+"=[") {
			t.Errorf("zsh does not complete lull %s %s", command, flag)
		}
		if want := "'__lull_at " + command + "' -l " + strings.TrimPrefix(flag, "--") + " "; !strings.Contains(fish, want) {
			t.Errorf("fish does not complete lull %s %s", command, flag)
		}
		if want := strings.ReplaceAll(flag, "-", `\-`) + `"`; flag != "--help" && !strings.Contains(page, want) {
			t.Errorf("the manual page does not have lull %s %s", command, flag)
		}
	}
}

// Every command and every flag is offered, and is in the other scripts and in the manual page.
func TestCompletionIsComplete(t *testing.T) {
	root := model(t).Model.Node
	lines, want := []string{""}, [][]string{nil}
	for _, n := range root.Children {
		want[0] = append(want[0], n.Name)
	}
	below(root, func(name string, n *kong.Node) {
		lines, want = append(lines, name+" --"), append(want, typed(n))
		offeredElsewhere(t, name, typed(n))
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

// What is offered as the value of a flag is accepted there.
func TestCompletedValuesAreAccepted(t *testing.T) {
	values := 0
	below(model(t).Model.Node, func(command string, n *kong.Node) {
		known, ok := n.Target.Interface().(interface{ Complete() map[string][]string })
		if !ok {
			return
		}
		for name, all := range known.Complete() {
			isFlag := slices.ContainsFunc(n.Flags, func(f *kong.Flag) bool { return f.Name == name })
			isArgument := slices.ContainsFunc(n.Positional, func(p *kong.Positional) bool { return p.Name == name })
			if !isFlag && !isArgument {
				t.Errorf("lull %s has no %s", command, name)
			}
			for _, v := range all {
				args := append(strings.Fields(command), v)
				if isFlag {
					args[len(args)-1] = "--" + name + "=" + v
					for _, p := range n.Positional {
						if p.Required {
							args = append(args, "x")
						}
					}
					for _, f := range n.Flags {
						if f.Required {
							args = append(args, "--"+f.Name+"=x")
						}
					}
				}
				ctx, err := model(t).Parse(args)
				if err != nil {
					t.Errorf("lull %s: %v", args, err)
					continue
				}
				values++
				check, ok := ctx.Selected().Target.Interface().(interface{ Check() error })
				if !ok {
					continue
				}
				if err := check.Check(); err != nil && strings.Contains(err.Error(), "--"+name) {
					t.Errorf("lull %s: %v", args, err)
				}
			}
		}
	})
	if values < 150 {
		t.Errorf("only %d values", values)
	}
}

func TestUnknownShell(t *testing.T) {
	code, out, errs := lullProgram(t.Context(), "completion", "csh")
	if code != cli.Misused || out != "" || errs != "lull: SHELL is \"csh\": want bash, zsh or fish\n" {
		t.Errorf("exit code %d, printed %q and %q", code, out, errs)
	}
}

// No line of the manual page is taken for a macro that it is not.
func TestManualPage(t *testing.T) {
	code, page, errs := lullProgram(t.Context(), "man")
	if code != cli.OK || errs != "" {
		t.Fatalf("exit code %d, printed %q", code, errs)
	}
	known := []string{`.\"`, ".TH", ".SH", ".SS", ".B", ".I", ".RI", ".BI", ".br", ".PP", ".TP", ".RS", ".RE", ".nf", ".fi"}
	depth := 0
	for line := range strings.Lines(page) {
		macro := strings.Fields(line)
		switch {
		case len(macro) == 0:
			continue
		case line[0] == '\'', line[0] == '.' && !slices.Contains(known, macro[0]):
			t.Errorf("a macro? %s", line)
		case macro[0] == ".nf":
			depth++
		case macro[0] == ".fi":
			depth--
		}
		if depth < 0 || depth > 1 {
			t.Fatalf("at %q", line)
		}
	}
	for _, want := range []string{".SH \"EXIT CODES\"\n", ".SS \"lull lint [<file> ...] [flags]\"\n", ".BI \"\\-o, \\-\\-output\" = \"FILE\"\n", "lull lint deploy/ 'teams/**/retry.yaml'"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
}
