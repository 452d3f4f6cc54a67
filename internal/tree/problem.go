package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lullgo/lull/internal/problem"
)

// A Problem is one thing that is wrong in a text.
type Problem struct {
	Line, Column int
	// Path is the field, such as "methodConfig[0].retryPolicy.maxAttempts". Empty: the
	// text as a whole.
	Path string
	// Found is what is there instead of what is allowed: a phrase that follows "is".
	Found string
	// Allowed is what would be right: a noun phrase.
	Allowed string
	// Suggestion is what was probably meant. Empty: nothing comes near.
	Suggestion string
}

// Error says all of it but the place, in the words of lull.Problem:
// "retryThrottling.maxTokens is 0: want a whole number from 1 to 1000".
func (p Problem) Error() string {
	text := p.Found
	if p.Path != "" {
		text = p.Path + " is " + text
	}
	if p.Allowed != "" {
		text += ": want " + p.Allowed
	}
	if p.Suggestion != "" {
		text += "; did you mean " + p.Suggestion + "?"
	}
	return text
}

// As finds it as a lull.Problem: field, value and what is allowed.
func (p Problem) As(target any) bool {
	to, ok := target.(*problem.Problem)
	if ok {
		*to = problem.Problem{Field: p.Path, Value: p.Found, Allowed: p.Allowed}
	}
	return ok
}

// Problems is everything that is wrong, in the order in which it was met. It is an error;
// errors.As finds it, and each Problem in it.
type Problems []Problem

// Error lists the problems, one a line, each with its line if it has a place.
func (l Problems) Error() string {
	lines := make([]string, len(l))
	for i, p := range l {
		lines[i] = p.Error()
		if p.Line > 0 {
			lines[i] = fmt.Sprintf("line %d: %s", p.Line, lines[i])
		}
	}
	return strings.Join(lines, "\n")
}

// As finds them as a lull.Problems, for those who treat mistakes of code and of files
// alike.
func (l Problems) As(target any) bool {
	to, ok := target.(*problem.List)
	if ok {
		*to = make(problem.List, len(l))
		for i, p := range l {
			p.As(&(*to)[i])
		}
	}
	return ok
}

// Unwrap gives the problems one by one.
func (l Problems) Unwrap() []error {
	errs := make([]error, len(l))
	for i, p := range l {
		errs[i] = p
	}
	return errs
}

// Sort brings them into the order of the text.
func (l Problems) Sort() {
	slices.SortStableFunc(l, func(a, b Problem) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
}
