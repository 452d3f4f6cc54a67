// Package check is for tests.
package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// reporter is a testing.TB.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// Equal reports an error of t if got is not what is wanted. The format and its arguments name what is compared.
func Equal[T comparable](t reporter, got, want T, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %+v, want %+v", fmt.Sprintf(format, args...), quoted(got), quoted(want))
	}
}

// Slices is Equal for slices: by their elements.
func Slices[T comparable](t reporter, got, want []T, format string, args ...any) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %s, want %s", fmt.Sprintf(format, args...), elements(got), elements(want))
	}
}

// Is is Equal for errors, as errors.Is compares them.
func Is(t reporter, got, want error, format string, args ...any) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: %v, want %v", fmt.Sprintf(format, args...), got, want)
	}
}

// quoted is v, with quotes around it if it is a string; one of several lines begins on a line of its own instead.
func quoted(v any) any {
	s, is := v.(string)
	switch {
	case is && strings.Contains(s, "\n"):
		return "\n" + s
	case is:
		return fmt.Sprintf("%q", s)
	}
	return v
}

func elements[T any](of []T) (texts []string) {
	for _, v := range of {
		texts = append(texts, fmt.Sprintf("%+v", quoted(v)))
	}
	return texts
}
