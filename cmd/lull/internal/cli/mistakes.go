package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/lullgo/lull/internal/choice"
)

// Mistakes are all errors in a command line and in the files that it names: problems of flags, and errors with a file and a
// line. The exit code for them is Misused.
type Mistakes []error

// Add appends err unless it is nil.
func (m *Mistakes) Add(err error) {
	if err != nil {
		*m = append(*m, err)
	}
}

// In appends err under the name of a flag, unless it is nil.
func (m *Mistakes) In(flag string, err error) {
	if err != nil {
		*m = append(*m, fmt.Errorf("%s: %w", flag, err))
	}
}

// Err returns m, or nil if it is empty.
func (m Mistakes) Err() error {
	if len(m) == 0 {
		return nil
	}
	return m
}

// Error lists them, one a line, and each once.
func (m Mistakes) Error() string {
	var lines []string
	for _, err := range m {
		if text := err.Error(); !slices.Contains(lines, text) {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, "\n")
}

func (m Mistakes) Unwrap() []error { return m }

type checker interface{ Check() error }

// allMistakes returns all that is wrong with a command line, of which kong found only the first
// mistake: each argument that cannot be parsed is left out, and the others are parsed again. If
// what remains is clear, the command checks the values, too.
func allMistakes(parser *kong.Kong, args []string, first error) error {
	all := []error{first}
	clear := true
	for {
		i, ctx := firstBadArgument(parser, args)
		if ctx == nil {
			break
		}
		if node := ctx.Selected(); node == nil || len(node.Children) > 0 {
			return reworded(first, []error{first}) // without a command nothing is known of its flags
		}
		if ctx.Error.Error() != first.Error() {
			all = append(all, ctx.Error)
		}
		flag := args[i]
		args = slices.Delete(slices.Clone(args), i, i+1)
		if strings.HasPrefix(flag, "-") && !strings.Contains(flag, "=") && i < len(args) && !strings.HasPrefix(args[i], "-") {
			args = slices.Delete(args, i, i+1) // perhaps its value, perhaps an argument
			clear = false
		}
	}
	if !clear || slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		return reworded(first, all)
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		if err.Error() != first.Error() {
			all = append(all, err)
		}
		return reworded(first, all)
	}
	if command, ok := parsed.Selected().Target.Interface().(checker); ok {
		all = append(all, command.Check())
	}
	return reworded(first, all)
}

// A wording is an error of kong in the words of this program.
type wording struct {
	error // of kong
	text  string
}

func (w wording) Error() string { return w.text }
func (w wording) Unwrap() error { return w.error }

// reworded joins the errors of a command line. Those of kong say what is missing, or what does not belong there; reworded adds what
// is allowed. First is the error that knows the command.
func reworded(first error, all []error) error {
	parse, ok := errors.AsType[*kong.ParseError](first)
	if !ok {
		return errors.Join(all...)
	}
	node := namedCommand(parse.Context)
	for i, err := range all {
		if err == nil {
			continue
		}
		text := err.Error()
		unexpected, isUnexpected := strings.CutPrefix(text, "unexpected argument ")
		switch {
		case isUnexpected && len(node.Children) > 0:
			name, _, _ := strings.Cut(unexpected, ", did you mean ")
			text = fmt.Sprintf("no command is called %q", name)
			if near := choice.Nearest(name, children(node)); near != "" {
				text += ": did you mean " + near + "?"
			}
		case isUnexpected:
			text += ", usage: lull " + node.Summary()
		case strings.HasPrefix(text, "unknown flag "):
			text = oneLetter.ReplaceAllString(text, "$1")
		case strings.HasPrefix(text, "missing flags: "), strings.HasPrefix(text, "expected ") && len(node.Children) == 0:
			text = missing(node)
		case strings.HasPrefix(text, "expected "):
			text = "a command is missing"
		}
		all[i] = wording{err, text}
	}
	return errors.Join(all...)
}

// oneLetter is kong's guess for a flag of one letter: any other flag of one letter is as near.
var oneLetter = regexp.MustCompile(`^(unknown flag -\pL), did you mean .*`)

// missing lists the arguments and flags that the command needs and did not get, with the first sentence of their help.
func missing(node *kong.Node) string {
	var lines []string
	add := func(name string, v *kong.Value) {
		if v.Required && !v.Set {
			what, _, _ := strings.Cut(strings.TrimSuffix(v.Help, "."), ". ")
			lines = append(lines, fmt.Sprintf("%s is missing: want %s", name, strings.ToLower(what[:1])+what[1:]))
		}
	}
	for _, p := range node.Positional {
		add(strings.ToUpper(p.Name), p)
	}
	for _, f := range node.Flags {
		add("--"+f.Name, f.Value)
	}
	return strings.Join(lines, "\n")
}

// firstBadArgument returns the index of the first argument that cannot be parsed, and the context whose Error
// says why. The context is nil if all can be parsed; other things may be wrong then, such as an
// argument that is missing.
func firstBadArgument(parser *kong.Kong, args []string) (int, *kong.Context) {
	whole, err := kong.Trace(parser, args)
	if err != nil || whole.Error == nil {
		return 0, nil
	}
	for n := 1; n < len(args); n++ {
		if c, err := kong.Trace(parser, args[:n]); err == nil && c.Error != nil && c.Error.Error() == whole.Error.Error() {
			return n - 1, whole
		}
	}
	return len(args) - 1, whole
}
