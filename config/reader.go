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
	// maxElements is the longest list.
	maxElements = 10_000
	// maxAllowed is the longest list of what is allowed, in characters. It may be made of names in
	// the file.
	maxAllowed = 400
)

// rules are the limits of lull's own files, which have some hundred lines if written by hand.
var rules = syntax.Rules{Bytes: maxBytes, Documents: 1, Aliased: 10_000, Strict: true}

// A reader turns the values of one file into Go values, and keeps the mistakes.
//
// Paths are those in the file, below prefix: "services.0.queue.limit".
type reader struct {
	tree.Reader
	files fs.FS // with the files that this one may name; nil: none

	// basis is a field on which the limits of others depend. Empty: none.
	basis string
	// names are those that other fields may refer to.
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

// begin starts a part with paths of its own.
func (r *reader) begin(prefix string) {
	r.prefix, r.places, r.keys, r.sources, r.broken = prefix, map[string]Position{}, map[string]Position{}, nil, nil
}

// document returns the value in data. If there is none it is nil, and the mistake is recorded.
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

// wrong records that the value at path is not allowed.
func (r *reader) wrong(n *tree.Node, path, found, allowed, suggestion string) {
	r.broken = append(r.broken, path)
	r.Wrong(n, r.shown(path), found, allowed, suggestion)
}

// sound records the faults of n, and reports whether it can be read.
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

// shown is the whole path, as messages have it.
func (r *reader) shown(path string) string { return under(r.prefix, path) }

// field is the path of a field of what is at path.
func field(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// element is the path of an element of the list at path.
func element(path string, i int) string { return field(path, strconv.Itoa(i)) }

// parent is the path of what the value at path belongs to.
func parent(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

// validated records the problems that a Validate has returned, each at the place of its field or,
// if the file does not have the field, of what it belongs to.
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
		path := syntax.Path(p.Field)
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

// inFile replaces names in Go by the words of files.
var inFile = strings.NewReplacer("NoTimeout", `"none"`, "AtOnce", `"at-once"`)

// placeOf is the place of the value at path or, if the file does not have it, of the nearest thing
// that it belongs to.
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

// follows reports whether the problem of the value at path may be a consequence of something that
// could not be read.
func (r *reader) follows(path string, value any) bool {
	if len(r.broken) == 0 {
		return false
	}
	if _, isName := value.(string); isName || !has(r.places, path) {
		return true // it may be the name of what was not read, or its key may be misspelt
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
