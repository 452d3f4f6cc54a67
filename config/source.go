package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxBytes is how much of a file is read.
const maxBytes = 1 << 20

// read reads the file called name from files, whole, unless it is too large.
func read(files fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(files, name) // before Open, which waits when it is a pipe
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

// readRegular is readFile for what is read again and again, and by itself: a pipe would be
// waited for with no end.
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

// readSome reads one byte more than is allowed, which shows that there is more,
// whatever the size of the file is said to be.
func readSome(f io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(f, maxBytes+1)) }

// stem is the name of a file without its folder and its ending.
func stem(file string) string {
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
