package main

import (
	"strings"

	"github.com/lullgo/lull/internal/problem"
)

// mistakes are all that is wrong with what was typed and with the files that it
// names: problems of flags, and errors that say a file and a line.
type mistakes []error

// add appends err, if it is one.
func (m *mistakes) add(err error) {
	if err != nil {
		*m = append(*m, err)
	}
}

// in appends err as one of a flag, if it is one.
func (m *mistakes) in(flag string, err error) {
	if err != nil {
		*m = append(*m, badValue{flag, err})
	}
}

// Err is m, or nil when nothing is wrong.
func (m mistakes) Err() error {
	if len(m) == 0 {
		return nil
	}
	return m
}

// Error lists them, one a line. What several cells of a sweep have in common is
// said once.
func (m mistakes) Error() string {
	var lines []string
	said := map[string]bool{}
	for _, err := range m {
		if text := err.Error(); !said[text] {
			said[text] = true
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives them one by one, for errors.As.
func (m mistakes) Unwrap() []error { return m }

// As makes them what program answers with the exit code of a usage error.
func (m mistakes) As(target any) bool {
	l, ok := target.(*problem.List)
	if ok {
		*l = problem.List{{Field: "arguments", Value: m, Allowed: "what the messages say"}}
	}
	return ok
}

// badValue is what something else has to say against the value of a flag.
type badValue struct {
	flag string
	err  error
}

func (b badValue) Error() string { return b.flag + ": " + b.err.Error() }
func (b badValue) Unwrap() error { return b.err }
