package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxBytes is the largest file that is read.
const maxBytes = 1 << 20

// read reads the file called name from files. It reads one byte more than allowed if the file is
// too large.
func read(files fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(files, name) // before Open, which blocks on a pipe
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, irregular(name)
	}
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readSome(f)
}

// readFile reads a file that its user has named.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readSome(f)
}

// readRegular is readFile for a file that is read again and again in the background. It refuses a
// pipe, which would block for ever.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, irregular(path)
	}
	return readFile(path)
}

func irregular(name string) error {
	return &fs.PathError{Op: "read", Path: name, Err: errors.New("not a regular file")}
}

// readSome reads up to one byte more than is allowed. The byte shows that the file is too large,
// whatever size the file system reports.
func readSome(f io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(f, maxBytes+1)) }

// stem is the name of a file without its folder and its ending.
func stem(file string) string {
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
