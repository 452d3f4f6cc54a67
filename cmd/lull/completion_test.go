package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
)

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

// Every command and every flag is in the scripts of the other shells and in the manual page.
func TestOtherShellsAndTheManualAreComplete(t *testing.T) {
	below(model(t).Model.Node, func(name string, n *kong.Node) { offeredElsewhere(t, name, typed(n)) })
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
