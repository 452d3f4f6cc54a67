package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	slash "path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/lullgo/lull/internal/choice"
)

// maxFile is the size that a file may have, and a byte more: the packages in config then refuse a longer one.
const maxFile = 16<<20 + 1

// A File is a file that a command reads.
type File struct {
	// Name is its path; for standard input, what it is called in messages.
	Name string
	Data []byte
	// Found: nobody has named it; it was found in a directory, or by a pattern.
	Found bool
}

// ReadFiles reads files, directories, patterns and "-", which is called stdin, each once. The error names all that cannot be read.
func (e Env) ReadFiles(arguments []string, stdin string) (files []File, err error) {
	var failed []error
	known := map[string]bool{}
	for _, argument := range arguments {
		// A file has one name however it was typed.
		name := filepath.ToSlash(filepath.Clean(argument))
		names, found := []string{name}, true
		switch info, err := os.Stat(name); {
		case argument != "-" && err == nil && info.IsDir():
			if names, err = filesBelow(name, "**"); err == nil && len(names) == 0 {
				err = fmt.Errorf("%s has no file of YAML or JSON", name)
			}
			failed = append(failed, err)
		case argument != "-" && err != nil && strings.ContainsAny(name, "*?["):
			names, err = filesMatching(name)
			failed = append(failed, err)
		default:
			found = false
		}
		for _, each := range names {
			if known[each] {
				continue
			}
			known[each] = true
			data, err := e.ReadFile(each, maxFile)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			if each == "-" {
				each = stdin
			}
			files = append(files, File{each, data, found})
		}
	}
	return files, errors.Join(failed...)
}

// filesMatching returns the files that a pattern is for, in which ** stands for any folders.
func filesMatching(pattern string) ([]string, error) {
	if _, err := slash.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("%s is no pattern: write one such as policies/**/*.yaml", pattern)
	}
	root, rest := ".", pattern
	for {
		first, after, more := strings.Cut(rest, "/")
		if !more || strings.ContainsAny(first, "*?[") {
			break
		}
		switch {
		case first == "":
			root = "/"
		case root == ".":
			root = first
		default:
			root = slash.Join(root, first)
		}
		rest = after
	}
	names, err := filesBelow(root, rest)
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%s matches no file", pattern)
	}
	return names, err
}

// filesBelow returns the files below a folder that match a pattern, in order. Folders with a dot, and those of other people's code,
// must be named. Links to folders are followed once. The error names all that cannot be read.
func filesBelow(root, pattern string) (names []string, err error) {
	parts := strings.Split(pattern, "/")
	var failed []error
	var read []string // folders, by their real names
	var walk func(folder string)
	walk = func(folder string) {
		real, err := filepath.EvalSymlinks(folder)
		if err == nil {
			real, err = filepath.Abs(real)
		}
		if err != nil {
			failed = append(failed, CannotRead(err))
			return
		}
		if slices.ContainsFunc(read, func(other string) bool {
			within, err := filepath.Rel(other, real)
			return err == nil && filepath.IsLocal(within)
		}) {
			return
		}
		read = append(read, real)
		filepath.WalkDir(folder+"/", func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				failed = append(failed, CannotRead(err))
				return nil
			}
			name = filepath.ToSlash(filepath.Clean(name))
			within := choice.Either(root == ".", name, strings.TrimPrefix(strings.TrimPrefix(name, root), "/"))
			leftOut := func() bool {
				base := slash.Base(name)
				return name != root && (base[0] == '.' || base == "node_modules" || base == "vendor") && !slices.Contains(parts, base)
			}
			wanted := matchPath(parts, strings.Split(within, "/")) && (pattern != "**" || slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(slash.Ext(name))))
			switch info, err := os.Stat(name); {
			case d.IsDir() && leftOut():
				return fs.SkipDir
			case d.IsDir():
			case err != nil && wanted:
				failed = append(failed, CannotRead(err))
			case err != nil:
			case info.IsDir() && !leftOut():
				walk(name)
			case info.Mode().IsRegular() && wanted:
				names = append(names, name)
			case wanted && !info.IsDir():
				failed = append(failed, fmt.Errorf("%s cannot be read: it is no file", name))
			}
			return nil
		})
	}
	walk(root)
	return names, errors.Join(failed...)
}

func matchPath(pattern, name []string) bool {
	if len(pattern) == 0 {
		return len(name) == 0
	}
	if pattern[0] == "**" {
		for i := range len(name) + 1 {
			if matchPath(pattern[1:], name[i:]) {
				return true
			}
		}
		return false
	}
	if len(name) == 0 {
		return false
	}
	ok, _ := slash.Match(pattern[0], name[0])
	return ok && matchPath(pattern[1:], name[1:])
}

// ErrInterrupted is the error of a command that the user interrupted.
var ErrInterrupted = errors.New("interrupted: nothing is written")

// UntilInterrupted returns the error of work, which takes no context, or ErrInterrupted when the context ends: work then continues.
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

// ReadFile returns at most limit bytes of a file, or of standard input ("-"). The error is that of [CannotRead].
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

// CannotRead words the error of a file that could not be opened or read, which is no mistake in its text. Other errors, and nil, stay.
func CannotRead(err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return readError{of}
	}
	return err
}

type readError struct{ *fs.PathError }

func (u readError) Error() string { return u.Path + " cannot be read: " + u.Err.Error() }
func (u readError) Unwrap() error { return u.PathError }

// WriteWhole writes a file whole or not at all, by way of another beside it. The permissions of an existing file are kept.
func WriteWhole(name string, data []byte) error { return cannotWrite(name, replaceFile(name, data)) }

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

func replaceFile(name string, data []byte) error {
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
	if _, err = t.Write(data); err == nil && there {
		err = t.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = t.Sync()
	}
	if err = cmp.Or(err, t.Close()); err == nil {
		err = os.Rename(t.Name(), name)
	}
	if err != nil {
		os.Remove(t.Name())
	}
	return err
}

// createBeside creates a file in the folder of another, with usual permissions: those of os.CreateTemp let nobody else read it.
func createBeside(name string) (*os.File, error) {
	for {
		beside := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%d", filepath.Base(name), rand.Uint32()))
		f, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, os.ErrExist) {
			return f, err
		}
	}
}
