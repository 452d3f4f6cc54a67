package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// model returns the commands of the program.
func model(t *testing.T) *kong.Kong {
	t.Helper()
	parser := must.Have(kong.New(&commands{}, kong.Name("lull")))
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

// offers returns what is offered for a command line, of which the last word is being typed. The line ends with a blank if
// nothing of that word is there yet.
func offers(t *testing.T, line string) (words []string) {
	t.Helper()
	code, out, errs := lullProgram(t.Context(), append([]string{"--offer"}, strings.Split(line, " ")...)...)
	if code != cli.OK || errs != "" {
		t.Fatalf("%s: exit code %d, printed %q", line, code, errs)
	}
	for offer := range strings.Lines(out) {
		word, _, _ := strings.Cut(strings.TrimSuffix(offer, "\n"), "\t")
		words = append(words, word)
	}
	return words
}

func TestOffers(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"li", "lint"},
		{"--v", "--version"},
		{"lint --fo", "--format"},
		{"lint -h", ""},
		{"convert -", "-h --help --to --from -o --output --strict --dependency --base --gapic --json --report-json --quiet --list"},
		{"lint --format ", "text json sarif github gitlab junit"},
		{"lint --format=j", "--format=json --format=junit"},
		{"lint --format = j", "json junit"},
		{"lint --format =", "text json sarif github gitlab junit"},
		{"lint a.yaml --threshold n", "note never"},
		{"lint --off ", ""},
		{"lint ret", ":files"},
		{"convert --to e", "envoy envoy-gateway"},
		{"convert -o ret", ":files"},
		{"simulate metastable-s", "metastable-stall :files"},
		{"simulate --policy go-r", "go-retryablehttp :files"},
		{"simulate --policy none,go-r", "none,go-retryablehttp :filesnone,"},
		{"simulate --policy=none,go-r", "--policy=none,go-retryablehttp :files--policy=none,"},
		{"battery --family grid,mi", "grid,mixed"},
		{"completion z", "zsh"},
		{"help ji", "jitter"},
		{"help lin", "lint"},
		{"exec --attempts ", ""},
		{"exec --att", "--attempts"},
		{"exec --attempts 2 --quiet -- cat ret", ":program6"},
		{"exec --attempts 2 -- ", ":program5"},
		{"exec cat -", ":program2"},
		{"nothing ", ""},
		{"queue ", "inspect redrive"},
		{"queue --", "--help"},
		{"queue redrive --d", "--dry-run"},
		{"queue --help inspect --bo", "--body"},
		{"queue inspect --dr", ""},
		{"queue inspect --reason=cr", "--reason=crashed"},
		{"queue inspect amqp://localhost dead --older-than ", ""},
		{"queue inspect queue ", ""},
		{"queue nothing --", ""},
		{"simulate --policy queue --see", "--seed --seeds"},
	} {
		check.Slices(t, offers(t, c.line), strings.Fields(c.want), "%q", c.line)
	}
	if code, out, _ := lullProgram(t.Context(), "--offer"); code != cli.OK || out != "" {
		t.Errorf("of no word: exit code %d, printed %q", code, out)
	}
}

// Every command and every flag is offered, and is in the manual page.
func TestOffersAndTheManualAreComplete(t *testing.T) {
	_, manual, _ := lullProgram(t.Context(), "man")
	root := model(t).Model.Node
	commands := func(n *kong.Node) (names []string) {
		for _, c := range n.Children {
			names = append(names, c.Name)
		}
		return names
	}
	check.Slices(t, offers(t, ""), commands(root), "offers(t, \"\")")
	below(root, func(name string, n *kong.Node) {
		check.Slices(t, offers(t, name+" --"), typed(n), "%s", name)
		if got := offers(t, name+" "); len(n.Children) > 0 && !slices.Equal(got, commands(n)) {
			t.Errorf("%s: got %q, want %q", name, got, commands(n))
		}
		_, page, _ := strings.Cut(manual, "\n.SS \"lull "+name)
		page, _, _ = strings.Cut(page, "\n.SS")
		for _, flag := range typed(n) {
			if want := strings.ReplaceAll(flag, "-", `\-`) + `"`; flag != "--help" && !strings.Contains(page, want) {
				t.Errorf("the manual page does not have lull %s %s", name, flag)
			}
		}
	})
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
