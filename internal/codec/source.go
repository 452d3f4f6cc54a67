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

// ReadFile reads a file that its user has named.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readSome(f)
}

// ReadRegular is ReadFile for a file that is read again and again in the background. It refuses a
// pipe, which would block for ever.
func ReadRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, irregular(path)
	}
	return ReadFile(path)
}

func irregular(name string) error {
	return &fs.PathError{Op: "read", Path: name, Err: errors.New("not a regular file")}
}

// readSome reads up to one byte more than is allowed. The byte shows that the file is too large,
// whatever size the file system reports.
func readSome(f io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(f, MaxBytes+1)) }

// Stem is the name of a file without its folder and its ending.
func Stem(file string) string {
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
