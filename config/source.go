package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// What is read at most. A file by hand has some hundred lines; these are for
// files that were never meant to be read.
const (
	maxBytes = 1 << 20
	maxDepth = 100 // of lists and mappings in one another; a scenario needs 8
)

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

// document is the root node of the one YAML document in data. It is nil when
// there is none, and the mistake has been noted.
func (r *reader) document(data []byte) *yaml.Node {
	if !r.isText(data) {
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth))))
	if err != nil {
		r.syntax(data, err)
		return nil
	}
	var first, second yaml.Node
	switch err := loader.Load(&first); {
	case errors.Is(err, io.EOF):
		r.note(place{r.file, 1, 1}, "", "an empty file", "at least one field", "")
		return nil
	case err != nil:
		r.syntax(data, err)
		return nil
	}
	switch err := loader.Load(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		r.syntax(data, err)
		return nil
	default:
		r.note(r.at(&second), "", "a second document", "one document in a file", "")
		return nil
	}
	if len(first.Content) != 1 || isNull(first.Content[0]) {
		r.note(place{r.file, 1, 1}, "", "an empty document", "at least one field", "")
		return nil
	}
	return first.Content[0]
}

// hiddenBreak: YAML ends a line at c, and a comment with it, and many editors show no end
// there.
func hiddenBreak(c rune) bool { return c == '\u0085' || c == '\u2028' || c == '\u2029' }

// isText notes what keeps data from being read as text at all, or as the same lines by
// everybody.
func (r *reader) isText(data []byte) bool {
	if len(data) > maxBytes {
		r.note(place{r.file, 1, 1}, "", "a file of more than 1 MiB", "at most 1 MiB", "")
		return false
	}
	at := place{r.file, 1, 1}
	for len(data) > 0 {
		c, size := utf8.DecodeRune(data)
		switch {
		case c == utf8.RuneError && size == 1:
			r.note(at, "", fmt.Sprintf("the byte 0x%02x", data[0]), "text in UTF-8", "")
			return false
		case c == '\r' && !bytes.HasPrefix(data, []byte("\r\n")), hiddenBreak(c):
			r.note(at, "", fmt.Sprintf("the character %U", c), `lines that end in \n or \r\n`, "")
			return false
		case c < ' ' && c != '\t' && c != '\n' && c != '\r', c >= '\x7f' && c < '\u00a0', c == '\ufffe', c == '\uffff': // as YAML has it
			r.note(at, "", fmt.Sprintf("the character %U", c), "text without control characters", "")
			return false
		}
		if c != '\ufeff' { // the mark of some editors, which has no width
			at.column++
		}
		if c == '\n' {
			at.line, at.column = at.line+1, 1
		}
		data = data[size:]
	}
	return true
}

// syntax notes that data is no YAML.
func (r *reader) syntax(data []byte, err error) {
	at := place{r.file, 1, 1}
	message := err.Error()
	var e *yaml.LoadError
	if errors.As(err, &e) {
		message = e.Message
		if e.Mark.Line > 0 {
			at.line, at.column = e.Mark.Line, max(e.Mark.Column, 1)
		}
	}
	switch c := characterAt(data, at); {
	case strings.Contains(message, "cannot start any token") && c == '\t',
		strings.Contains(message, "tab character"):
		r.note(at, "", "a tab", "spaces, since YAML does not indent by tabs", "")
	case strings.Contains(message, "cannot start any token"):
		r.note(at, "", fmt.Sprintf("a value that begins with %q", c), "such a value in quotes", "")
	case strings.Contains(message, "mapping values are not allowed"):
		r.note(at, "", "a colon in the wrong place", "one field a line, evenly indented; a value with a colon in quotes", "")
	case strings.HasPrefix(message, "unknown anchor"):
		name := strings.Trim(strings.TrimSuffix(strings.TrimPrefix(message, "unknown anchor "), " referenced"), "'")
		r.note(at, "", "*"+name, "an alias of an anchor that stands before it, &"+name, "")
	case strings.Contains(message, "incompatible YAML document"):
		r.note(at, "", "a %YAML line for another version", "none, or %YAML 1.1", "")
	case strings.Contains(message, "exceeded max depth"):
		r.note(at, "", "nested too deep", fmt.Sprintf("at most %d lists and mappings in one another", maxDepth), "")
	default:
		if e != nil && e.ContextMsg != "" {
			message += " (" + e.ContextMsg + fmt.Sprintf(", line %d)", max(e.ContextMark.Line, 1))
		}
		r.note(at, "", "not YAML: "+message, "", "")
	}
}

// characterAt is what stands at a place; 0 if nothing does.
func characterAt(data []byte, at place) rune {
	lines := strings.Split(string(data), "\n")
	if at.line > len(lines) {
		return 0
	}
	line := []rune(lines[at.line-1])
	if at.column > len(line) {
		return 0
	}
	return line[at.column-1]
}

// stem is the name of a file without its folder and its ending.
func stem(file string) string {
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
