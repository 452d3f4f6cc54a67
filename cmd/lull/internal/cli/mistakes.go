package cli

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
)

// Mistakes are all errors in a command line and in the files that it names. The exit code for them is Misused.
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

// allMistakes returns all mistakes, of which kong found the first: it leaves each bad argument out and parses again. If the rest is
// clear, the command checks the values, too.
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

// reworded joins the errors of a command line, and adds to those of kong what is allowed. first knows the command.
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

// firstBadArgument returns the index of the first argument that cannot be parsed, and the context with the error; nil: there is none.
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

// Text is a flag as it was typed: so a command reports all mistakes at once, and can say what "--load -1" may be.
type Text string

// Decode implements kong's MapperValue.
func (t *Text) Decode(ctx *kong.DecodeContext) error {
	token := ctx.Scan.Pop()
	if token.IsEOL() {
		return fmt.Errorf("a value is missing")
	}
	*t = Text(fmt.Sprint(token.Value))
	return nil
}

// Quoted returns the text in quotes, for messages.
func (t Text) Quoted() string { return strconv.Quote(string(t)) }

// Texts are the values of a flag that may be given several times.
type Texts []Text

// Decode implements kong's MapperValue.
func (t *Texts) Decode(ctx *kong.DecodeContext) error {
	var one Text
	if err := one.Decode(ctx); err != nil {
		return err
	}
	*t = append(*t, one)
	return nil
}

// Split returns every part between commas, in order.
func (t Texts) Split() []string {
	var parts []string
	for _, one := range t {
		for part := range strings.SplitSeq(string(one), ",") {
			parts = append(parts, strings.TrimSpace(part))
		}
	}
	return parts
}

// Or returns the last value, or the default if the flag was not given. An empty value ("--load=") was given.
func (t Texts) Or(otherwise Text) Text {
	if len(t) == 0 {
		return otherwise
	}
	return t[len(t)-1]
}

// Duration reads a duration between two bounds. Like the other readers it adds a problem to the list if the text is none.
func Duration(l *problem.List, flag string, v Text, least, most time.Duration) time.Duration {
	d, err := time.ParseDuration(string(v))
	l.Check(err == nil && d >= least && d <= most, flag, v.Quoted(),
		fmt.Sprintf("a duration from %v to %v, such as 500ms or 1.5s", least, most))
	return d
}

// Whole reads a whole number between two bounds.
func Whole(l *problem.List, flag string, v Text, least, most int) int {
	n, err := strconv.Atoi(string(v))
	l.Check(err == nil && n >= least && n <= most, flag, v.Quoted(), fmt.Sprintf("a whole number from %d to %d", least, most))
	return n
}

// Number reads a number between two bounds; what describes it in the message.
func Number(l *problem.List, flag string, v Text, least, most float64, what string) float64 {
	n, err := strconv.ParseFloat(string(v), 64)
	l.Check(err == nil && !math.IsNaN(n) && n >= least && n <= most, flag, v.Quoted(), fmt.Sprintf("a number from %v to %v, %s", least, most, what))
	return n
}

// Seed reads the flag --seed.
func Seed(l *problem.List, v Text) uint64 {
	seed, err := strconv.ParseUint(string(v), 10, 64)
	l.Check(err == nil, "--seed", v.Quoted(), "a whole number from 0 to 18446744073709551615")
	return seed
}
