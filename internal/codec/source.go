package codec

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// MaxBytes is the largest file that is read.
const MaxBytes = 1 << 20

// Read reads the file called name from files. It reads one byte more than allowed if the file is
// too large.
func Read(files fs.FS, name string) ([]byte, error) {
	return readRegular(name, func(name string) (fs.FileInfo, error) { return fs.Stat(files, name) }, files.Open)
}

// ReadFile reads a file that its user has named.
func ReadFile(path string) ([]byte, error) { return readSome(open(path)) }

// ReadRegular is ReadFile for a file that is read again and again in the background. It refuses a
// pipe, which would block for ever.
func ReadRegular(path string) ([]byte, error) { return readRegular(path, os.Stat, open) }

func open(path string) (fs.File, error) { return os.Open(path) }

func readRegular(name string, stat func(string) (fs.FileInfo, error), open func(string) (fs.File, error)) ([]byte, error) {
	info, err := stat(name) // before open, which blocks on a pipe
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: name, Err: errors.New("not a regular file")}
	}
	if err != nil {
		return nil, err
	}
	return readSome(open(name))
}

// readSome reads up to one byte more than is allowed. The byte shows that the file is too large,
// whatever size the file system reports.
func readSome(f fs.File, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxBytes+1))
}

// Stem is the name of a file without its folder and its ending.
func Stem(file string) string {
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
