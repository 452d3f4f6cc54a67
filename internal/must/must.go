// Package must is for tests, and for commands that end at the first error. Its functions panic with the error, and
// [Catch] returns it.
package must

import (
	"fmt"
	"os"
)

// A failure is what the functions panic with.
type failure struct{ error }

// Have returns v. It fails with err if there is one.
func Have[T any](v T, err error) T {
	Succeed(err)
	return v
}

// Succeed fails with err if there is one.
func Succeed(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Fail fails with an error of fmt.Errorf.
func Fail(format string, args ...any) { Succeed(fmt.Errorf(format, args...)) }

// Catch is to be deferred. It sets err to the error that the function has failed with. It re-panics with any other value.
func Catch(err *error) {
	switch p := recover().(type) {
	case nil:
	case failure:
		*err = p.error
	default:
		panic(p)
	}
}

// Main runs a command. If it fails or returns an error, Main prints the error after the name, and exits with the code.
func Main(name string, code int, run func() error) {
	err := func() (err error) {
		defer Catch(&err)
		return run()
	}()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(code)
	}
}
