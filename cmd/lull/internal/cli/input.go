package cli

import (
	"errors"
	"io"
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

// ReadFile returns the first bytes of a file, at most limit of them. The name "-" is
// standard input.
func (e Env) ReadFile(name string, limit int64) ([]byte, error) {
	in := e.Stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	return io.ReadAll(io.LimitReader(in, limit))
}
