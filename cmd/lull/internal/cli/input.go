package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrInterrupted is the error of a command that the user interrupted.
var ErrInterrupted = errors.New("interrupted: nothing is written")

// UntilInterrupted runs work, which takes no context, and returns its error. When the
// context ends it returns ErrInterrupted at once. Work continues until the process ends.
func (e Env) UntilInterrupted(work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-e.Context.Done():
		return ErrInterrupted
	}
}

// ReadWhole is ReadFile for files of which a part is of no use: a longer one is an error.
func (e Env) ReadWhole(name string, limit int64) ([]byte, error) {
	data, err := e.ReadFile(name, limit+1)
	if int64(len(data)) > limit {
		return nil, CannotRead(&fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("it has more than %d bytes", limit)})
	}
	return data, err
}

// ReadFile returns the first bytes of a file, at most limit of them. The name "-" is
// standard input. The error is that of [CannotRead].
func (e Env) ReadFile(name string, limit int64) ([]byte, error) {
	in := e.Stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, CannotRead(err)
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, limit))
	return data, CannotRead(err)
}

// CannotRead words the error of a file whose text nobody has seen: there is no such file, or it is
// a directory, or the user may not read it. It is another thing than a mistake in the text, which
// has a line. Other errors, and nil, stay as they are.
func CannotRead(err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return readError{of}
	}
	return err
}

type readError struct{ *fs.PathError }

func (u readError) Error() string { return u.Path + " cannot be read: " + u.Err.Error() }
func (u readError) Unwrap() error { return u.PathError }
