package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lullgo/lull/internal/problem"
)

// A Position is a place in a file. Lines and columns count from 1, columns in characters. The zero
// Position is no place; values that were made in code have it.
type Position struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// String returns "file:3:15", and "-" for no place.
func (p Position) String() string {
	if p.Line == 0 {
		return "-"
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// A Mistake is one thing that is wrong in a text.
type Mistake struct {
	// Position is where. A text without a name, as of a service config, has no File.
	Position
	// Path is the field, such as "services.0.queue.limit". Empty: the text as a whole.
	Path string
	// Found is what the file has, as a phrase that follows "is":
	// "unknown", "a list", or the value in quotes.
	Found string
	// Allowed is what would be right: a noun phrase.
	Allowed string
	// Suggestion is what was probably meant. Empty: nothing is similar.
	Suggestion string
}

// Error returns the whole mistake, in a form that editors turn into a link:
//
//	retry.yaml:3:15: dependencies.api.deadline is "3 sec": want a duration such as 250ms, 1.5s or 2m; did you mean 3s?
//
// Without a file it begins with the line: "line 3: ".
func (m Mistake) Error() string {
	var b strings.Builder
	switch {
	case m.File != "" && m.Line > 0:
		b.WriteString(m.Position.String() + ": ")
	case m.File != "":
		b.WriteString(m.File + ": ")
	case m.Line > 0:
		fmt.Fprintf(&b, "line %d: ", m.Line)
	}
	if m.Path != "" {
		b.WriteString(m.Path + " is ")
	}
	b.WriteString(m.Found)
	if m.Allowed != "" {
		b.WriteString(": want " + m.Allowed)
	}
	if m.Suggestion != "" {
		b.WriteString("; did you mean " + m.Suggestion + "?")
	}
	return b.String()
}

// String returns the same as Error. Without it, a Mistake would have the String of its Position.
func (m Mistake) String() string { return m.Error() }

// As lets errors.As find an engine.Problem: field, value and what is allowed.
func (m Mistake) As(target any) bool {
	to, ok := target.(*problem.Problem)
	if ok {
		*to = problem.Problem{Field: m.Path, Value: m.Found, Allowed: m.Allowed}
	}
	return ok
}

// Mistakes is everything that is wrong with a text. It is an error. errors.As finds it, each
// [Mistake] in it, and all of them as an engine.Problems.
type Mistakes []Mistake

// Error lists the mistakes, one a line.
func (l Mistakes) Error() string {
	lines := make([]string, len(l))
	for i, m := range l {
		lines[i] = m.Error()
	}
	return strings.Join(lines, "\n")
}

// As lets errors.As find an engine.Problems, for programs that treat mistakes in code and in files
// alike.
func (l Mistakes) As(target any) bool {
	to, ok := target.(*problem.List)
	if ok {
		*to = make(problem.List, len(l))
		for i, m := range l {
			m.As(&(*to)[i])
		}
	}
	return ok
}

// Unwrap returns the mistakes one by one, for errors.As.
func (l Mistakes) Unwrap() []error {
	errs := make([]error, len(l))
	for i, m := range l {
		errs[i] = m
	}
	return errs
}

// Err returns l in the order of the text; nil if it is empty.
func (l Mistakes) Err() error {
	if len(l) == 0 {
		return nil
	}
	slices.SortStableFunc(l, func(a, b Mistake) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	return l
}
