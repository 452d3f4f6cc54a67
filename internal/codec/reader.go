// Package codec turns YAML into Go values and back by the names of their fields, and reports each mistake with its place. It is
// what the policy files of package config and the scenario files of the lab have in common.
package codec

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/pretty"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/tree"
)

const (
	// MaxElements is the longest list.
	MaxElements = 10_000
	// MaxAllowed is the longest list of what is allowed, in characters. It may be made of names in the file.
	MaxAllowed = 400
)

// A Reader turns the values of one file into Go values, and keeps the mistakes.
//
// Paths are those in the file, below Prefix: "services.0.queue.limit".
type Reader struct {
	tree.Reader
	parse Parse
	Files fs.FS // with the files that this one may name; nil: none

	// Basis is a field on which the limits of others depend. Empty: none.
	Basis string
	// Names are those that other fields may refer to.
	Names []string

	Prefix  string                   // what stands before every path shown: "policies.api"
	Places  map[string]tree.Position // of the values that were read, by path
	Keys    map[string]tree.Position // of the keys of those that are mappings or lists
	Sources map[string]string        // of values that stand elsewhere, in words, by path
	Broken  []string                 // paths at which something was wrong
}

// NewReader returns a reader of the file. It may name those in files, which may be nil.
func NewReader(parse Parse, file string, files fs.FS) *Reader {
	r := &Reader{Reader: tree.Reader{File: file}, parse: parse, Files: files}
	r.Begin("")
	return r
}

// Begin starts a part with paths of its own.
func (r *Reader) Begin(prefix string) {
	r.Prefix, r.Places, r.Keys, r.Sources, r.Broken = prefix, map[string]tree.Position{}, map[string]tree.Position{}, nil, nil
}

// Parse reads the values of a text, one for each document.
type Parse func(file string, data []byte) ([]*tree.Node, error)

// Document returns the value in data. If there is none it is nil, and the mistake is recorded.
func (r *Reader) Document(data []byte) *tree.Node {
	all, err := r.parse(r.File, data)
	mistakes, _ := errors.AsType[tree.Mistakes](err)
	r.Mistakes = append(r.Mistakes, mistakes...)
	switch {
	case err != nil:
	case len(all) == 0:
		r.Note(r.Top(), "", "an empty file", "at least one field", "")
	case all[0].Kind == tree.Null:
		r.Note(r.Top(), "", "an empty document", "at least one field", "")
	default:
		return all[0]
	}
	return nil
}

// WrongAt records that the value at path is not allowed.
func (r *Reader) WrongAt(n *tree.Node, path, found, allowed, suggestion string) {
	r.Broken = append(r.Broken, path)
	r.Wrong(n, r.Shown(path), found, allowed, suggestion)
}

// Sound records the faults of n, and reports whether it can be read.
func (r *Reader) Sound(n *tree.Node, path string) bool {
	ok := true
	for _, f := range n.Faults {
		at, shown := path, r.Shown(path)
		if ok = ok && f.Path != ""; f.Path != "" {
			at, shown = Field(path, "?"), Field(shown, ShownKey(f.Path))
		}
		r.Broken = append(r.Broken, at)
		r.Note(f.Position, shown, f.Found, f.Allowed, f.Suggestion)
	}
	return ok
}

// Shown is the whole path, as messages have it.
func (r *Reader) Shown(path string) string { return Under(r.Prefix, path) }

// Field is the path of a field of what is at path.
func Field(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Element is the path of an element of the list at path.
func Element(path string, i int) string { return Field(path, strconv.Itoa(i)) }

// Parent is the path of what the value at path belongs to.
func Parent(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

// Validated records the problems that a Validate has returned, each at the place of its field or,
// if the file does not have the field, of what it belongs to.
func (r *Reader) Validated(err error) {
	if err == nil {
		return
	}
	problems, ok := errors.AsType[problem.List](err)
	if !ok {
		r.Note(r.PlaceOf(""), r.Prefix, err.Error(), "", "")
		return
	}
	for _, p := range problems {
		path := Path(p.Field)
		if r.follows(path, p.Value) {
			continue
		}
		found, suggestion := tree.Clip(fmt.Sprint(p.Value)), ""
		switch v := p.Value.(type) {
		case string: // a name, which may be in quotes already
			if bare, err := strconv.Unquote(v); err == nil {
				v = bare
			}
			found, suggestion = tree.Quote(v), choice.Nearest(v, r.Names)
			if suggestion == v { // it is the right name in the wrong place
				suggestion = ""
			}
		case time.Duration:
			found = pretty.Duration(v)
		}
		if source := r.Sources[path]; source != "" {
			found += ", " + source
		}
		r.Note(r.PlaceOf(path), r.Shown(path), found, tree.ClipTo(MaxAllowed, inFile.Replace(p.Allowed)), suggestion)
	}
}

// inFile replaces names in Go by the words of files.
var inFile = strings.NewReplacer("NoTimeout", `"none"`, "AtOnce", `"at-once"`)

// PlaceOf is the place of the value at path or, if the file does not have it, of the nearest thing that it belongs to.
func (r *Reader) PlaceOf(path string) tree.Position {
	for {
		if at, ok := r.Places[path]; ok {
			return at
		}
		if path == "" {
			return r.Top()
		}
		path = Parent(path)
	}
}

// follows reports whether the problem of the value at path may be a consequence of something that could not be read.
func (r *Reader) follows(path string, value any) bool {
	if len(r.Broken) == 0 {
		return false
	}
	if _, isName := value.(string); isName || !Has(r.Places, path) {
		return true // it may be the name of what was not read, or its key may be misspelt
	}
	if r.Basis != "" && !Has(r.Places, r.Basis) {
		return true
	}
	return slices.ContainsFunc(r.Broken, func(b string) bool {
		part := Parent(b)
		return b == r.Basis || Within(path, b) || Within(b, path) || part != "" && Within(path, part)
	})
}

// Within reports whether path is outer or belongs to it.
func Within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (outer == "" || rest == "" || rest[0] == '.')
}

// Under joins path and names, of which any may be empty.
func Under(path string, names ...string) string {
	return strings.Trim(path+"."+strings.Join(names, "."), ".")
}

// Has reports whether m has the key.
func Has[V any](m map[string]V, key string) bool { _, ok := m[key]; return ok }

// Path is a path in Go, such as "Services[0].AttemptTimeout", as it is in a file: "services.0.attempt_timeout". A key of a map is in
// quotes, and stays as it is.
func Path(inGo string) string {
	var b strings.Builder
	start := true // of a name, or within a word in upper case
	quoted := false
	for _, c := range inGo {
		switch {
		case c == '"':
			quoted = !quoted
			continue
		case quoted:
			b.WriteRune(c)
			continue
		case c == ']':
			continue
		case c == '[':
			c = '.'
		case unicode.IsUpper(c) && !start:
			b.WriteByte('_')
		}
		start = c == '.' || unicode.IsUpper(c)
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// MaxBytes is the largest file that is read.
const MaxBytes = 1 << 20

// Read reads the file called name from files. It reads one byte more than allowed if the file is too large.
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
