package config

import (
	"fmt"
	"strings"
)

// A Mistake is one thing that is wrong in a file or in an assignment (see [Set]).
type Mistake struct {
	// File, Line and Column say where; lines and columns count from 1, columns in
	// characters. An assignment has no place: File is empty and Line is 0.
	File         string
	Line, Column int
	// Path is the field, such as "services.0.queue.limit". Empty: the text is no
	// YAML, so that there are no fields yet.
	Path string
	// Found is what is there instead of what is allowed, as a phrase that follows
	// "is": "unknown", "a list", or the value in quotes.
	Found string
	// Allowed is what would be right: a noun phrase.
	Allowed string
	// Suggestion is what was probably meant. Empty: nothing comes near.
	Suggestion string
}

// Error says all of it, in the form that editors turn into a link:
//
//	retry.yaml:3:15: policies.api.deadline is "3 sec": want a duration such as 250ms, 1.5s or 2m; did you mean 3s?
func (m Mistake) Error() string {
	var b strings.Builder
	if m.File != "" {
		b.WriteString(m.File + ":")
	}
	if m.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", m.Line, m.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
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

// Mistakes is everything that is wrong with a file, in the order of its lines. It
// is an error; errors.As finds it, and each [Mistake] in it.
type Mistakes []Mistake

// Error lists the mistakes, one a line.
func (l Mistakes) Error() string {
	lines := make([]string, len(l))
	for i, m := range l {
		lines[i] = m.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the mistakes one by one, for errors.As.
func (l Mistakes) Unwrap() []error {
	errs := make([]error, len(l))
	for i, m := range l {
		errs[i] = m
	}
	return errs
}
