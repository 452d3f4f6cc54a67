// Package must is for tests, and for commands that are scripts: what goes wrong there ends all of it. Its functions panic, and
// [Catch] makes an error of that again.
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

// Catch is to be deferred. It sets err to what the function has failed with. Other panics go on.
func Catch(err *error) {
	switch p := recover().(type) {
	case nil:
	case failure:
		*err = p.error
	default:
		panic(p)
	}
}

// Main runs a command. If it fails or returns an error, Main prints that after the name, and exits with the code.
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
