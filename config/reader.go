package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/pretty"
	"github.com/lullgo/lull/internal/problem"
	"go.yaml.in/yaml/v4"
)

const (
	// maxAliased is how many nodes are read by way of aliases. Ten aliases of ten
	// aliases each, nine times over, are a billion nodes in a file of ten lines.
	maxAliased = 10_000
	// maxElements is how long a list may be.
	maxElements = 10_000
	// maxMistakes is where a report ends: what has more is not the file that was
	// meant.
	maxMistakes = 100
	// maxShown is how much of a wrong value is repeated in a message.
	maxShown = 60
	// maxAllowed is how long a list of what is allowed may be, which may be made of
	// the names in the file.
	maxAllowed = 400
)

// A place in a file.
type place struct {
	file         string
	line, column int
}

// A reader turns the nodes of one file into Go values and keeps what is wrong.
//
// Paths are those of the Go fields, as Validate writes them
// ("Services[0].Queue.Limit"); shown turns them into those of the file.
type reader struct {
	file  string
	files fs.FS // where the files that this one names are; nil: nowhere

	// basis is a field that others may be wrong by, if it is. Empty: none.
	basis string
	// names are those that other fields can speak of.
	names []string

	prefix   string            // what stands before every path shown: "policies.api"
	places   map[string]place  // of the values that were read, by path
	keys     map[string]place  // of the keys of those that are mappings or lists
	sources  map[string]string // of values that stand elsewhere, in words, by path
	broken   []string          // paths at which something was wrong
	mistakes Mistakes
	aliases  int // how many aliases lead to the node that is being read
	aliased  int // nodes read that way
}

func newReader(file string, files fs.FS) *reader {
	return &reader{file: file, files: files, places: map[string]place{}, keys: map[string]place{}}
}

// begin makes ready for another value with paths of its own.
func (r *reader) begin(prefix string) {
	r.prefix, r.places, r.keys, r.sources, r.broken = prefix, map[string]place{}, map[string]place{}, nil, nil
}

// at is the place of n.
func (r *reader) at(n *yaml.Node) place {
	return place{r.file, max(n.Line, 0), max(n.Column, 0)}
}

// note keeps a mistake whose path is already as shown, once: what is used in many
// places by way of aliases is wrong in one.
func (r *reader) note(at place, shown, found, allowed, suggestion string) {
	last := func(path string) string { return path[strings.LastIndex(path, ".")+1:] }
	known := func(m Mistake) bool {
		return m.Line > 0 && place{m.File, m.Line, m.Column} == at && m.Found == found && m.Allowed == allowed && last(m.Path) == last(shown)
	}
	switch n := len(r.mistakes); {
	case slices.ContainsFunc(r.mistakes, known):
	case n < maxMistakes:
		r.mistakes = append(r.mistakes, Mistake{at.file, at.line, at.column, shown, found, allowed, suggestion})
	case n == maxMistakes:
		r.mistakes = append(r.mistakes, Mistake{File: at.file, Line: at.line, Column: at.column, Found: "more mistakes from here on"})
	}
}

// wrong keeps that something at path is not as it must be.
func (r *reader) wrong(n *yaml.Node, path, found, allowed, suggestion string) {
	r.broken = append(r.broken, path)
	r.note(r.at(n), r.shown(path), found, allowed, suggestion)
}

// stop: nothing more is to be read, for the file is beyond the limits.
func (r *reader) stop() bool { return len(r.mistakes) > maxMistakes || r.aliased > maxAliased }

// err is every mistake, in the order of the lines; nil if there is none.
func (r *reader) err() error {
	if len(r.mistakes) == 0 {
		return nil
	}
	slices.SortStableFunc(r.mistakes, func(a, b Mistake) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	return r.mistakes
}

// resolve follows n if it is an alias. done must be called when what it leads to
// has been read. The node is nil, and that is noted, when there are too many.
func (r *reader) resolve(n *yaml.Node, path string) (node *yaml.Node, done func()) {
	entered := 0
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
		entered++
	}
	r.aliases += entered
	done = func() { r.aliases -= entered }
	if r.spend(1, n, path) {
		return n, done
	}
	return nil, done
}

// spend counts nodes that are read by way of an alias, at n, and says whether that
// is still allowed.
func (r *reader) spend(nodes int, n *yaml.Node, path string) bool {
	if r.aliases == 0 {
		return true
	}
	before := r.aliased
	r.aliased += nodes
	if before <= maxAliased && r.aliased > maxAliased {
		r.wrong(n, path, "one of too many aliased values", fmt.Sprintf("at most %d of them", maxAliased), "")
	}
	return r.aliased <= maxAliased
}

// shown is path as it is written in a file and in an assignment:
// "services.0.queue.limit".
func (r *reader) shown(path string) string {
	shown := shownPath(path)
	if r.prefix == "" || shown == "" {
		return r.prefix + shown
	}
	return r.prefix + "." + shown
}

var dotted = strings.NewReplacer("[", ".", "]", "")

func shownPath(path string) string {
	path = dotted.Replace(path)
	parts := strings.Split(path, ".")
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
func element(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// parent is the path of what the field or element at path belongs to.
func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// validated notes what a Validate has returned, each problem at the line of its
// field or, if the file does not mention that, of what it belongs to.
func (r *reader) validated(err error) {
	if err == nil {
		return
	}
	var problems problem.List
	if !errors.As(err, &problems) {
		r.note(r.placeOf(""), r.prefix, err.Error(), "", "")
		return
	}
	for _, p := range problems {
		if r.stop() {
			return
		}
		if r.follows(p) {
			continue
		}
		found, suggestion := clip(fmt.Sprint(p.Value)), ""
		switch v := p.Value.(type) {
		case string: // a name, which may be in quotes already
			if bare, err := strconv.Unquote(v); err == nil {
				v = bare
			}
			found, suggestion = quote(v), choice.Nearest(v, r.names)
			if suggestion == v { // it is the right name in the wrong place
				suggestion = ""
			}
		case time.Duration:
			found = pretty.Duration(v)
		}
		if source := r.sources[p.Field]; source != "" {
			found += ", " + source
		}
		allowed := clipTo(maxAllowed, inFile.Replace(p.Allowed))
		r.note(r.placeOf(p.Field), r.shown(p.Field), found, allowed, suggestion)
	}
}

// inFile has the words of files for names in Go.
var inFile = strings.NewReplacer("NoTimeout", `"none"`, "AtOnce", `"at-once"`)

// placeOf is where the value at path is, or that of the nearest that it belongs to.
func (r *reader) placeOf(path string) place {
	for {
		if at, ok := r.places[path]; ok {
			return at
		}
		if path == "" {
			return place{r.file, 1, 1}
		}
		path = parent(path)
	}
}

// follows: the problem may well come of something that could not be read.
func (r *reader) follows(p problem.Problem) bool {
	if len(r.broken) == 0 {
		return false
	}
	_, given := r.places[p.Field]
	if _, isName := p.Value.(string); isName || !given {
		return true // the name of what was not read, or the key that was misspelt
	}
	if _, given := r.places[r.basis]; r.basis != "" && !given {
		return true
	}
	return slices.ContainsFunc(r.broken, func(b string) bool {
		part := parent(b)
		return b == r.basis || within(p.Field, b) || within(b, p.Field) || part != "" && within(p.Field, part)
	})
}

// within: path is inner or belongs to outer.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (outer == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}

// quote is a value as it is repeated in a message.
func quote(s string) string {
	return strconv.Quote(clip(s))
}

func clip(s string) string { return clipTo(maxShown, s) }

func clipTo(most int, s string) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
