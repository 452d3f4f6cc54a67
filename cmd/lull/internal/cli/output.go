package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// WriteWhole writes a file whole or not at all: it writes another one beside it, which then
// takes its place. The permissions of an existing file are kept.
func WriteWhole(name string, data []byte) (err error) {
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
