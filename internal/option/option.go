// Package option makes and applies functional options that may be wrong.
package option

import "fmt"

// Set returns an option that cannot be wrong.
func Set[T any](set func(*T)) func(*T) error { return If(true, set, "") }

// If returns an option that calls set if ok. If not, its error is that of fmt.Errorf for format and args.
func If[T any](ok bool, set func(*T), format string, args ...any) func(*T) error {
	return func(t *T) error {
		if !ok {
			return fmt.Errorf(format, args...)
		}
		set(t)
		return nil
	}
}

// Apply applies the options to t, except for those that are nil. It returns the first error.
func Apply[T any, O ~func(*T) error](t *T, opts []O) error {
	for _, o := range opts {
		if o != nil {
			if err := o(t); err != nil {
				return err
			}
		}
	}
	return nil
}
