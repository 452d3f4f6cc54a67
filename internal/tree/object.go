package tree

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/choice"
)

// MaxMistakes is the longest report: a file with more mistakes is probably another file.
const MaxMistakes = 100

// A Reader reads values and keeps the mistakes.
type Reader struct {
	// File is the name of the text, for mistakes. Empty: it has none.
	File string
	// Same reports whether a key of the text is the field of that name. Nil: the spelling must be the same.
	Same func(key, name string) bool
	// JSON describes values in the words of JSON: "an object" and "null" instead of "a mapping" and "empty".
	JSON bool
	// Mistakes are the mistakes so far.
	Mistakes Mistakes
}

// Top is the place of a mistake about the whole text.
func (r *Reader) Top() Position { return Position{r.File, 1, 1} }

// Place is the place of n.
func (r *Reader) Place(n *Node) Position { return Position{r.File, n.Line, n.Column} }

// KeyPlace is the place of the key of m.
func (r *Reader) KeyPlace(m Member) Position { return Position{r.File, m.Line, m.Column} }

// Full reports whether there are too many mistakes to keep more.
func (r *Reader) Full() bool { return len(r.Mistakes) > MaxMistakes }

// Note records a mistake, once: a value that several aliases lead to is wrong in one place.
func (r *Reader) Note(at Position, path, found, allowed, suggestion string) {
	last := func(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
	known := func(m Mistake) bool {
		return m.Line > 0 && m.Position == at && m.Found == found && m.Allowed == allowed && last(m.Path) == last(path)
	}
	switch n := len(r.Mistakes); {
	case n > MaxMistakes || slices.ContainsFunc(r.Mistakes, known):
	case n < MaxMistakes:
		r.Mistakes = append(r.Mistakes, Mistake{at, path, found, allowed, suggestion})
	default:
		r.Mistakes = append(r.Mistakes, Mistake{Position: at, Found: "more mistakes from here on"})
	}
}

// Wrong records that the value n at path is not allowed.
func (r *Reader) Wrong(n *Node, path, found, allowed, suggestion string) {
	r.Note(r.Place(n), path, found, allowed, suggestion)
}

// Fold accepts a key in any case.
func Fold(key, name string) bool { return strings.EqualFold(key, name) }

// SnakeOrCamel accepts the two spellings of protobuf's JSON for the name num_retries: the same, and numRetries.
func SnakeOrCamel(key, name string) bool {
	if key == name || len(key) != len(name)-strings.Count(name, "_") {
		return key == name
	}
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		words[1+i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return key == strings.Join(words, "")
}

func (r *Reader) same(key, name string) bool {
	if r.Same == nil {
		return key == name
	}
	return r.Same(key, name)
}

// Check records that n, at path, is not allowed unless ok holds. It returns ok.
func (r *Reader) Check(ok bool, n *Node, path, allowed string) bool {
	if !ok {
		r.Wrong(n, path, r.Found(n), allowed, "")
	}
	return ok
}

// Found describes n in the words of the Reader; they follow "is".
func (r *Reader) Found(n *Node) string {
	switch {
	case r.JSON && n.Kind == Map:
		return "an object"
	case r.JSON && n.Kind == Null:
		return "null"
	}
	return n.Found()
}

// An Object is a mapping, and which of its members were read.
type Object struct {
	r    *Reader
	Path string
	Node *Node
	read []bool
}

// Object begins to read n, which must be a mapping. It is nil if n is none.
func (r *Reader) Object(n *Node, path string) *Object {
	allowed := choice.Either(r.JSON, "an object", "a mapping")
	if !r.Check(n.Kind == Map, n, path, allowed) {
		return nil
	}
	n.Use = max(n.Use, Opened)
	return &Object{r, path, n, make([]bool, len(n.Members))}
}

// At returns the path of a field of o.
func (o *Object) At(name string) string {
	if o == nil {
		return name
	}
	return Join(o.Path, name)
}

// Join returns the path of the field name of what is at path. A name that looks like a path is in
// brackets and quotes: metadata.annotations["example.com/retries"].
func Join(path, name string) string {
	if name == "" || strings.ContainsAny(name, `.[]"`) {
		return path + "[" + strconv.Quote(name) + "]"
	}
	return Concat(path, name)
}

// Concat joins two paths.
func Concat(path, rest string) string {
	if path == "" || rest == "" || rest[0] == '[' {
		return path + rest
	}
	return path + "." + rest
}

// Cut splits the first step from a path: a key, or the number of an element with an empty key. The
// index is below zero if there is none; an empty path has neither.
func Cut(path string) (key string, index int, rest string) {
	if quoted, ok := strings.CutPrefix(path, "["); ok {
		if prefix, err := strconv.QuotedPrefix(quoted); err == nil {
			key, _ = strconv.Unquote(prefix)
			rest = strings.TrimPrefix(quoted[len(prefix):], "]")
			return key, -1, strings.TrimPrefix(rest, ".")
		}
		number, rest, _ := strings.Cut(quoted, "]")
		index, err := strconv.Atoi(number)
		if err != nil {
			index = math.MaxInt
		}
		return "", index, strings.TrimPrefix(rest, ".")
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		return path, -1, ""
	}
	return path[:end], -1, strings.TrimPrefix(path[end:], ".")
}

// Element returns the path of an element of the list at path.
func Element(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// Get returns the value of the field, and its path. The value is nil if there is none, if it is null, and if it was asked
// for before. A key that is there twice is a mistake; the first value counts. A nil Object has no fields.
func (o *Object) Get(name string) (*Node, string) {
	path := o.At(name)
	if o == nil {
		return nil, path
	}
	var found *Node
	for i, m := range o.Node.Members {
		if o.read[i] || !o.r.same(m.Key, name) {
			continue // not this one, or asked for before
		}
		o.read[i] = true
		path = o.At(m.Key)
		if found != nil {
			o.r.Note(o.r.KeyPlace(m), o.At(name), "given twice", "one value", "")
			break
		}
		found = m.Value
	}
	if found != nil {
		found.Use = max(found.Use, Read)
	}
	if found == nil || found.Kind == Null {
		return nil, path
	}
	return found, path
}

// Has reports whether Get would return a value. The field does not count as read.
func (o *Object) Has(name string) bool { _, ok := o.PathOf(name); return ok }

// PathOf returns the path of a field as its key is spelt, and whether there is one.
func (o *Object) PathOf(name string) (string, bool) {
	m := o.member(name)
	if m == nil || m.Value.Kind == Null {
		return "", false
	}
	return o.At(m.Key), true
}

// Field returns the value of a field, whether it was read or not; nil: there is none.
func (o *Object) Field(name string) *Node {
	if m := o.member(name); m != nil {
		return m.Value
	}
	return nil
}

func (o *Object) member(name string) *Member {
	if o == nil {
		return nil
	}
	i := slices.IndexFunc(o.Node.Members, func(m Member) bool { return o.r.same(m.Key, name) })
	if i < 0 {
		return nil
	}
	return &o.Node.Members[i]
}

// Require is Get for a field that must be there; allowed describes its values.
func (o *Object) Require(name, allowed string) (*Node, string) {
	n, path := o.Get(name)
	if n == nil && o != nil {
		o.r.Wrong(o.Node, path, "missing", allowed, "")
	}
	return n, path
}

// Object reads a field that is a mapping; nil if there is none.
func (o *Object) Object(name string) *Object {
	n, path := o.Get(name)
	if n == nil {
		return nil
	}
	return o.r.Object(n, path)
}

// Each calls do for each field, in the order of the text.
func (o *Object) Each(do func(name string, n *Node, path string)) {
	if o == nil {
		return
	}
	for _, m := range o.Node.Members {
		if n, path := o.Get(m.Key); n != nil {
			do(m.Key, n, path)
		}
	}
}

// List returns the elements of a field that is a list, and its path.
func (o *Object) List(name string) ([]*Node, string) {
	n, path := o.Get(name)
	if n == nil {
		return nil, path
	}
	if o.r.Check(n.Kind == List, n, path, "a list") {
		n.Use = max(n.Use, Opened)
	}
	return n.Items, path
}

// Objects reads the elements of a field that is a list of mappings.
func (o *Object) Objects(name string) []*Object {
	items, path := o.List(name)
	var all []*Object
	for i, item := range items {
		if e := o.r.Object(item, Element(path, i)); e != nil {
			all = append(all, e)
		}
	}
	return all
}

// String reads a field that is a text; "" if there is none.
func (o *Object) String(name string) string {
	n, path := o.Get(name)
	if n == nil || !o.r.Check(n.Kind == Text, n, path, "a text") {
		return ""
	}
	return n.Text
}

// Bool reads a field that is true or false.
func (o *Object) Bool(name string) (value, given bool) {
	n, path := o.Get(name)
	if n == nil || !o.r.Check(n.Kind == Bool, n, path, "true or false") {
		return false, false
	}
	return strings.EqualFold(n.Text, "true"), true
}

// Whole reads a field that is a whole number from least to most, and reports whether it is there.
// The number may be in quotes, as in protobuf's JSON.
func (o *Object) Whole(name string, least, most int64, allowed string) (int64, bool) {
	n, path := o.Get(name)
	if n == nil {
		return 0, false
	}
	i, ok := WholeNumber(n)
	return i, o.r.Check(ok && i >= least && i <= most, n, path, allowed)
}

// WholeNumber returns n as a whole number, if it is one. A Number may be written as in YAML: 0x1f,
// and 010 for eight, as Kubernetes and Envoy read it.
func WholeNumber(n *Node) (int64, bool) {
	if i, err := strconv.ParseInt(n.Text, 0, 64); err == nil && n.Kind == Number {
		return i, true
	}
	if i, err := strconv.ParseInt(n.Text, 10, 64); err == nil && (n.Kind == Number || n.Kind == Text) {
		return i, true
	}
	f, ok := AnyNumber(n)
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// AnyNumber returns n as a number, if it is one.
func AnyNumber(n *Node) (float64, bool) {
	if n.Kind != Number {
		return 0, false
	}
	if i, err := strconv.ParseInt(n.Text, 0, 64); err == nil {
		return float64(i), true
	}
	f, err := strconv.ParseFloat(n.Text, 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}

// Float reads a field that is a number for which ok holds. The number may be in quotes, as in protobuf's JSON.
func (o *Object) Float(name, allowed string, ok func(float64) bool) (float64, bool) {
	n, path := o.Get(name)
	if n == nil {
		return 0, false
	}
	number := *n
	if n.Kind == Text {
		number.Kind = Number
	}
	f, isNumber := AnyNumber(&number)
	return f, o.r.Check(isNumber && ok(f), n, path, allowed)
}

// Duration reads a field that parse accepts as a duration of at least least.
func (o *Object) Duration(name string, least time.Duration, allowed string, parse func(string) (time.Duration, bool)) (time.Duration, bool) {
	n, path := o.Get(name)
	if n == nil {
		return 0, false
	}
	return o.r.Duration(n, path, least, allowed, parse)
}

// Duration reads n, at path, as a duration of at least least.
func (r *Reader) Duration(n *Node, path string, least time.Duration, allowed string, parse func(string) (time.Duration, bool)) (time.Duration, bool) {
	d, ok := time.Duration(0), false
	if n.Kind == Text {
		d, ok = parse(n.Text)
	}
	if ok && d >= least {
		return d, true
	}
	suggestion := ""
	if meant, err := time.ParseDuration(n.Text); n.Kind == Text && !ok && err == nil && meant >= least {
		text := Seconds(meant)
		if _, ok := parse(text); ok && text != n.Text { // 250ms, where the format has only seconds
			suggestion = text
		}
	}
	r.Wrong(n, path, r.Found(n), allowed, suggestion)
	return 0, false
}

// Rest returns the members that were not read.
func (o *Object) Rest() []Member {
	if o == nil {
		return nil
	}
	var rest []Member
	for i, m := range o.Node.Members {
		if !o.read[i] {
			rest = append(rest, m)
		}
	}
	return rest
}

// NoMore records that each member that was not read is unknown: o has no other fields than names.
func (o *Object) NoMore(names ...string) {
	for _, m := range o.Rest() {
		o.r.Note(o.r.KeyPlace(m), o.At(m.Key), "unknown", choice.List(names), choice.Nearest(m.Key, names))
	}
}
