// Package words has what the grading of clients and of servers share: counts and times as text, and
// the choice of cases by their names.
package words

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Plural returns a count of something, such as "2 attempts".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok {
		what = stem + "ie"
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Rounded returns a duration for people.
func Rounded(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}

// Short returns the beginning of a text that may be long.
func Short(text string) string {
	if len(text) > 200 {
		return text[:200] + "..."
	}
	return text
}

// Select returns the cases that the patterns name, in their order: by their name, by their group, or by the beginning of a name followed by
// "*". Without patterns it returns all. A pattern that names none is an error, which has the command with the list, and an example of a pattern.
func Select[T any](all []T, patterns []string, called func(T) (name, group string), command, example string) (picked []T, err error) {
	if len(patterns) == 0 {
		return all, nil
	}
	used := make([]bool, len(patterns))
	for _, item := range all {
		name, group := called(item)
		wanted := false
		for i, p := range patterns {
			prefix, wild := strings.CutSuffix(p, "*")
			if name == p || group == p || wild && strings.HasPrefix(name, prefix) {
				used[i], wanted = true, true
			}
		}
		if wanted {
			picked = append(picked, item)
		}
	}
	if i := slices.Index(used, false); i >= 0 {
		return nil, fmt.Errorf("no case is named %q: %s --list has the names of cases and of groups, and %s is all that begin like that", patterns[i], command, example)
	}
	return picked, nil
}
