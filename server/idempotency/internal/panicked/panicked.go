// Package panicked has the error for a panic in a function of the user's: what an
// observer gets, and a log line is made of.
package panicked

import (
	"fmt"
	"net/http"
	"runtime/debug"
)

// An Error is a panic.
type Error struct {
	Value any
	Stack []byte // of the goroutine that panicked; nil for http.ErrAbortHandler, which is no mistake
}

// New is for a deferred function, with what recover has returned.
func New(value any) *Error {
	e := &Error{Value: value}
	if value != http.ErrAbortHandler {
		e.Stack = debug.Stack()
	}
	return e
}

func (e *Error) Error() string { return fmt.Sprintf("the handler panicked: %v", e.Value) }

// Unwrap gives the value of the panic, if that is an error.
func (e *Error) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
