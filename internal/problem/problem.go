// Package problem collects what is wrong with a configuration: every mistake
// at once, each naming its field, the value found there and what is allowed.
// The leaves report problems under their own field names; the root package
// puts the name of the section in front (List.In).
package problem

import (
	"errors"
	"fmt"
	"strings"
)

// A Problem is one mistake in a configuration.
type Problem struct {
	Field   string // path of the field as written in Go, such as "Backoff.Base"
	Value   any    // what was found there
	Allowed string // what would be right: a noun phrase, such as "zero or a positive duration"
}

// Error says all three: "Backoff.Base is -1s: want zero or a positive duration".
func (p Problem) Error() string {
	return fmt.Sprintf("%s is %v: want %s", p.Field, p.Value, p.Allowed)
}

// A List is every problem found. It is an error when it is not empty; use Err
// to get a nil error from an empty one.
type List []Problem

// Add appends a problem.
func (l *List) Add(field string, value any, allowed string) {
	*l = append(*l, Problem{Field: field, Value: value, Allowed: allowed})
}

// Check adds a problem unless ok holds.
func (l *List) Check(ok bool, field string, value any, allowed string) {
	if !ok {
		l.Add(field, value, allowed)
	}
}

// In appends the problems of err, which a part's Validate returned, each field
// prefixed with the name of that part. An err that is no List is kept whole,
// as the value of the section.
func (l *List) In(section string, err error) {
	if err == nil {
		return
	}
	var sub List
	if !errors.As(err, &sub) {
		l.Add(section, err, "a valid "+section)
		return
	}
	for _, p := range sub {
		l.Add(section+"."+p.Field, p.Value, p.Allowed)
	}
}

// Err returns l, or nil when nothing is wrong.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

// Error lists the problems, one a line when there are several.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, p := range l {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the problems one by one, for errors.As.
func (l List) Unwrap() []error {
	errs := make([]error, len(l))
	for i, p := range l {
		errs[i] = p
	}
	return errs
}

// Fields names the fields that err complains of, in its order: one name for each
// problem, and none if err is nil. An err that is no List gives one that no
// configuration has, its own text.
func Fields(err error) []string {
	if err == nil {
		return nil
	}
	var l List
	if !errors.As(err, &l) {
		return []string{"(" + err.Error() + ")"}
	}
	fields := make([]string, len(l))
	for i, p := range l {
		fields[i] = p.Field
	}
	return fields
}
