package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// WriteWhole writes a file whole or not at all: it writes another one beside it, which then
// takes its place. The permissions of an existing file are kept.
func WriteWhole(name string, data []byte) error {
	return cannotWrite(name, replaceFile(name, data))
}

// CanWrite returns the error that WriteWhole would return, as far as it can be known before. A command that takes long calls it first.
func CanWrite(name string) error {
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return cannotWrite(name, syscall.EISDIR)
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil
	}
	f, err := createBeside(name)
	if err == nil {
		f.Close()
		err = os.Remove(f.Name())
	}
	return cannotWrite(name, err)
}

// cannotWrite names the file that the user has named, not the one beside it. Nil stays nil.
func cannotWrite(name string, err error) error { return cannot(name, "be written", err) }

// CannotRun words the error of a program that could not be started. Nil stays nil.
func CannotRun(program string, err error) error { return cannot(program, "be run", err) }

func cannot(name, do string, err error) error {
	if err == nil {
		return nil
	}
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		err = of.Err
	} else if of, ok := errors.AsType[*os.LinkError](err); ok {
		err = of.Err
	} else if of, ok := errors.AsType[*exec.Error](err); ok {
		err = of.Err
	}
	return fmt.Errorf("%s cannot %s: %w", name, do, err)
}

func replaceFile(name string, data []byte) (err error) {
	info, err := os.Stat(name)
	there := err == nil
	if there && !info.Mode().IsRegular() { // a pipe or a device cannot be replaced
		return os.WriteFile(name, data, 0o666)
	}
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target // the target of a link is replaced, not the link
	}
	t, err := createBeside(name)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			t.Close()
			os.Remove(t.Name())
		}
	}()
	if _, err := t.Write(data); err != nil {
		return err
	}
	if there {
		if err := t.Chmod(info.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := t.Sync(); err != nil {
		return err
	}
	if err := t.Close(); err != nil {
		return err
	}
	return os.Rename(t.Name(), name)
}

// createBeside creates a file in the folder of another, with the permissions of the user's
// other files: those of os.CreateTemp allow nobody else to read it.
func createBeside(name string) (*os.File, error) {
	for {
		beside := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%d", filepath.Base(name), rand.Uint32()))
		f, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, os.ErrExist) {
			return f, err
		}
	}
}
