// Package check is for tests.
package check

import "fmt"

// Equal reports an error of t if got is not what is wanted. The format and its arguments name what is compared.
func Equal[T comparable](t interface {
	Helper()
	Errorf(format string, args ...any)
}, got, want T, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %+v, want %+v", fmt.Sprintf(format, args...), quoted(got), quoted(want))
	}
}

// quoted is v, with quotes around it if it is a string.
func quoted(v any) any {
	if s, is := v.(string); is {
		return fmt.Sprintf("%q", s)
	}
	return v
}
