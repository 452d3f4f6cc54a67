package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
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

// Unwrap returns them, for errors.As.
func (m Mistakes) Unwrap() []error { return m }

// A checker is a command that can check the values of its flags without doing anything.
type checker interface{ Check() error }

// allMistakes returns all that is wrong with a command line, of which kong found only the first
// mistake: each argument that cannot be parsed is left out, and the others are parsed again. If
// what remains is clear, the command checks the values, too.
func allMistakes(parser *kong.Kong, args []string, first error) error {
	all := []error{first}
	clear := true
	for {
		i, ctx := culprit(parser, args)
		if ctx == nil {
			break
		}
		if node := ctx.Selected(); node == nil || len(node.Children) > 0 {
			return first // without a command nothing is known of its flags
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
		return errors.Join(all...)
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		if err.Error() != first.Error() {
			all = append(all, err)
		}
		return errors.Join(all...)
	}
	if command, ok := parsed.Selected().Target.Interface().(checker); ok {
		all = append(all, command.Check())
	}
	return errors.Join(all...)
}

// culprit returns the index of the first argument that cannot be parsed, and the context whose Error
// says why. The context is nil if all can be parsed; other things may be wrong then, such as an
// argument that is missing.
func culprit(parser *kong.Kong, args []string) (int, *kong.Context) {
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
