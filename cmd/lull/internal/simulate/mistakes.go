package simulate

import (
	"slices"
	"strings"

	"github.com/lullgo/lull/internal/problem"
)

// mistakes are all errors in the command line and in the files that it names: problems of
// flags, and errors with a file and a line.
type mistakes []error

// add appends err unless it is nil.
func (m *mistakes) add(err error) {
	if err != nil {
		*m = append(*m, err)
	}
}

// in appends err under the name of a flag, unless it is nil.
func (m *mistakes) in(flag string, err error) {
	if err != nil {
		*m = append(*m, badValue{flag, err})
	}
}

// Err returns m, or nil if it is empty.
func (m mistakes) Err() error {
	if len(m) == 0 {
		return nil
	}
	return m
}

// Error lists them, one a line. A mistake that several cells of a sweep have is listed
// once.
func (m mistakes) Error() string {
	var lines []string
	for _, err := range m {
		if text := err.Error(); !slices.Contains(lines, text) {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns them, for errors.As.
func (m mistakes) Unwrap() []error { return m }

// As makes them a problem.List, so that the exit code is cli.Misused.
func (m mistakes) As(target any) bool {
	l, ok := target.(*problem.List)
	if ok {
		*l = problem.List{{Field: "arguments", Value: m, Allowed: "what the messages say"}}
	}
	return ok
}

// badValue is an error of another package about the value of a flag.
type badValue struct {
	flag string
	err  error
}

func (b badValue) Error() string { return b.flag + ": " + b.err.Error() }
func (b badValue) Unwrap() error { return b.err }
