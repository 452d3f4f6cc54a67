// Package problem collects what is wrong with a configuration: every mistake
// at once, each naming its field, the value found there and what is allowed.
// The leaves report problems under their own field names; the root package
// puts the name of the section in front (List.In).
package problem

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// A Problem is one mistake in a configuration.
type Problem struct {
	Field   string // path of the field as written in Go, such as "Backoff.Base"
	Value   any    // what was found there
	Allowed string // what would be right: a noun phrase, such as "zero or a positive duration"
}

// Error has all three: "Backoff.Base is -1s: want zero or a positive duration".
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

// Share is Check for a share or a ratio that a user may have written in percent. The
// problem of a number from 5 to 100 names what was probably meant.
func (l *List) Share(ok bool, field string, share float64, allowed string) {
	if !ok && share >= 5 && share <= 100 {
		allowed += fmt.Sprintf(" (%v %% is %v: was that meant?)", share, share/100)
	}
	l.Check(ok, field, share, allowed)
}

// ShortestDuration is the shortest duration that Units takes for one that was meant. No
// timer is as quick, and a number of milliseconds that has lost its unit counts
// nanoseconds: a minute of 60000 is 60µs.
const ShortestDuration = 100 * time.Microsecond

// Units adds a problem for each duration in config, a struct, that is positive and below
// ShortestDuration, and names what was probably meant. It is for what users write; the
// leaves take any duration.
func (l *List) Units(config any) { l.units("", reflect.ValueOf(config)) }

func (l *List) units(path string, v reflect.Value) {
	for i := range v.NumField() {
		field := v.Field(i)
		name := path + v.Type().Field(i).Name
		switch {
		case field.Kind() == reflect.Struct:
			l.units(name+".", field)
		case field.Type() == reflect.TypeFor[time.Duration]():
			if d := time.Duration(field.Int()); d > 0 && d < ShortestDuration {
				l.tooShort(name, d)
			}
		}
	}
}

// tooShort adds the problem, to one that the field has already if it has.
func (l *List) tooShort(field string, d time.Duration) {
	hint := fmt.Sprintf("a number without a unit counts nanoseconds: was %v meant?", d*time.Millisecond)
	for i, p := range *l {
		if p.Field == field {
			(*l)[i].Allowed += " (" + hint + ")"
			return
		}
	}
	l.Add(field, d, fmt.Sprintf("at least %v (%s)", ShortestDuration, hint))
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
