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

// Every command and every flag is offered, and is in the other scripts and in the manual page.
func TestCompletionIsComplete(t *testing.T) {
	var lines []string
	var want [][]string
	var names []string
	texts := map[string]string{}
	for _, args := range [][]string{{"completion", "zsh"}, {"completion", "fish"}, {"man"}} {
		_, texts[strings.Join(args, " ")], _ = lullProgram(t.Context(), args...)
	}
	for _, n := range model(t).Model.Children {
		names = append(names, n.Name)
		flags := []string{}
		for _, group := range n.AllFlags(true) {
			for _, f := range group {
				flags = append(flags, "--"+f.Name)
				for what, mark := range map[string]string{"completion zsh": "--" + f.Name, "completion fish": "seen_subcommand_from " + n.Name + "' -l " + f.Name + " ", "man": `\-\-` + strings.ReplaceAll(f.Name, "-", `\-`)} {
					if f.Name != "help" && !strings.Contains(texts[what], mark) {
						t.Errorf("lull %s has no %s of lull %s", what, mark, n.Name)
					}
				}
			}
		}
		lines, want = append(lines, n.Name+" --"), append(want, flags)
	}
	lines, want = append(lines, ""), append(want, names)
	for i, got := range inBash(t, t.TempDir(), lines...) {
		if !slices.Equal(got, want[i]) {
			t.Errorf("%q: got %q, want %q", lines[i], got, want[i])
		}
	}
}

// What is offered as the value of a flag is accepted there.
func TestCompletedValuesAreAccepted(t *testing.T) {
	values := 0
	for _, n := range model(t).Model.Children {
		known, ok := n.Target.Interface().(interface{ Complete() map[string][]string })
		if !ok {
			continue
		}
		for name, all := range known.Complete() {
			isFlag := slices.ContainsFunc(n.Flags, func(f *kong.Flag) bool { return f.Name == name })
			isArgument := slices.ContainsFunc(n.Positional, func(p *kong.Positional) bool { return p.Name == name })
			if !isFlag && !isArgument {
				t.Errorf("lull %s has no %s", n.Name, name)
			}
			for _, v := range all {
				arg := v
				if isFlag {
					arg = "--" + name + "=" + v
				}
				ctx, err := model(t).Parse([]string{n.Name, arg})
				if err != nil {
					t.Errorf("lull %s %s: %v", n.Name, arg, err)
					continue
				}
				values++
				check, ok := ctx.Selected().Target.Interface().(interface{ Check() error })
				if !ok {
					continue
				}
				if err := check.Check(); err != nil && strings.Contains(err.Error(), "--"+name) {
					t.Errorf("lull %s %s: %v", n.Name, arg, err)
				}
			}
		}
	}
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
