package config

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/config/internal/syntax"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/pretty"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/tree"
)

const (
	// maxElements is how long a list may be.
	maxElements = 10_000
	// maxAllowed is how long a list of what is allowed may be, which may be made of
	// the names in the file.
	maxAllowed = 400
)

// rules are those of lull's own files. A file by hand has some hundred lines; these limits are
// for files that were never meant to be read.
var rules = syntax.Rules{Bytes: maxBytes, Documents: 1, Aliased: 10_000, Strict: true}

// A reader turns the values of one file into Go values and keeps what is wrong.
//
// Paths are those in the file, below prefix: "services.0.queue.limit".
type reader struct {
	tree.Reader
	files fs.FS // where the files that this one names are; nil: nowhere

	// basis is a field that others may be wrong by, if it is. Empty: none.
	basis string
	// names are those that other fields can speak of.
	names []string

	prefix  string              // what stands before every path shown: "policies.api"
	places  map[string]Position // of the values that were read, by path
	keys    map[string]Position // of the keys of those that are mappings or lists
	sources map[string]string   // of values that stand elsewhere, in words, by path
	broken  []string            // paths at which something was wrong
}

func newReader(file string, files fs.FS) *reader {
	r := &reader{Reader: tree.Reader{File: file}, files: files}
	r.begin("")
	return r
}

// begin makes ready for another value with paths of its own.
func (r *reader) begin(prefix string) {
	r.prefix, r.places, r.keys, r.sources, r.broken = prefix, map[string]Position{}, map[string]Position{}, nil, nil
}

// document is the value in data. It is nil when there is none, and the mistake has been noted.
func (r *reader) document(data []byte) *tree.Node {
	all, err := syntax.Parse(r.File, data, rules)
	mistakes, _ := errors.AsType[Mistakes](err)
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

// wrong keeps that something at path is not as it must be.
func (r *reader) wrong(n *tree.Node, path, found, allowed, suggestion string) {
	r.broken = append(r.broken, path)
	r.Wrong(n, r.shown(path), found, allowed, suggestion)
}

// sound keeps what is wrong with n by itself, and reports whether it can be read.
func (r *reader) sound(n *tree.Node, path string) bool {
	ok := true
	for _, f := range n.Faults {
		at, shown := path, r.shown(path)
		if ok = ok && f.Path != ""; f.Path != "" {
			at, shown = field(path, "?"), field(shown, shownKey(f.Path))
		}
		r.broken = append(r.broken, at)
		r.Note(f.Position, shown, f.Found, f.Allowed, f.Suggestion)
	}
	return ok
}

// shown is path with what it is below.
func (r *reader) shown(path string) string { return under(r.prefix, path) }

// shownPath is a path in Go, as Validate writes it ("Services[0].Queue.Limit"), as it is in a file.
func shownPath(path string) string {
	parts := strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(path), ".")
	for i, part := range parts {
		parts[i] = snake(part)
	}
	return strings.Join(parts, ".")
}

// field is the path of a field of what is at path.
func field(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// element is the path of an element of the list at path.
func element(path string, i int) string { return field(path, strconv.Itoa(i)) }

// parent is the path of what the field or element at path belongs to.
func parent(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

// validated notes what a Validate has returned, each problem at the line of its
// field or, if the file does not mention that, of what it belongs to.
func (r *reader) validated(err error) {
	if err == nil {
		return
	}
	problems, ok := errors.AsType[problem.List](err)
	if !ok {
		r.Note(r.placeOf(""), r.prefix, err.Error(), "", "")
		return
	}
	for _, p := range problems {
		path := shownPath(p.Field)
		if r.follows(path, p.Value) {
			continue
		}
		found, suggestion := tree.Clip(fmt.Sprint(p.Value)), ""
		switch v := p.Value.(type) {
		case string: // a name, which may be in quotes already
			if bare, err := strconv.Unquote(v); err == nil {
				v = bare
			}
			found, suggestion = tree.Quote(v), choice.Nearest(v, r.names)
			if suggestion == v { // it is the right name in the wrong place
				suggestion = ""
			}
		case time.Duration:
			found = pretty.Duration(v)
		}
		if source := r.sources[path]; source != "" {
			found += ", " + source
		}
		r.Note(r.placeOf(path), r.shown(path), found, tree.ClipTo(maxAllowed, inFile.Replace(p.Allowed)), suggestion)
	}
}

// inFile has the words of files for names in Go.
var inFile = strings.NewReplacer("NoTimeout", `"none"`, "AtOnce", `"at-once"`)

// placeOf is where the value at path is, or that of the nearest that it belongs to.
func (r *reader) placeOf(path string) Position {
	for {
		if at, ok := r.places[path]; ok {
			return at
		}
		if path == "" {
			return r.Top()
		}
		path = parent(path)
	}
}

// follows reports whether a problem of the value at path may well come of something that could
// not be read.
func (r *reader) follows(path string, value any) bool {
	if len(r.broken) == 0 {
		return false
	}
	if _, isName := value.(string); isName || !has(r.places, path) {
		return true // the name of what was not read, or the key that was misspelt
	}
	if r.basis != "" && !has(r.places, r.basis) {
		return true
	}
	return slices.ContainsFunc(r.broken, func(b string) bool {
		part := parent(b)
		return b == r.basis || within(path, b) || within(b, path) || part != "" && within(path, part)
	})
}

// within reports whether path is outer or belongs to it.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (outer == "" || rest == "" || rest[0] == '.')
}
