// Package tree holds the values of JSON and YAML with their places, and reads objects from them. So
// every mistake and every loss has a place.
//
// All files are read as such a tree, whichever of the two forms they have. The converters also make their output as one.
package tree

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
)

// Kind is the kind of a value.
type Kind uint8

// The kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	Text
	List
	Map
)

// Use is how a reader has used a value so far.
type Use uint8

const (
	Unread Use = iota // nothing has asked for it
	Read              // it was asked for, as a single value
	Opened            // it is a mapping or a list; its values are asked for one by one
	Told              // a report has all of it, or it has nothing to lose
)

// A Node is a value and its place. Lines and columns count from 1; 0 is no place, for a value that was made in code.
type Node struct {
	Kind         Kind
	Use          Use
	Text         string // of Bool, Number and Text: as written
	Items        []*Node
	Members      []Member
	Line, Column int
	// Flow: a List or a Map is written on one line, if the form has the choice.
	Flow bool
	// Comment is written above it, if the form has comments. It may have several lines.
	Comment string
	// Faults are what is wrong with the value itself: its tag (without a path), its keys, and what
	// is merged into it. Paths begin at the value.
	Faults Mistakes
}

// Scalar reports whether n is a single value, and not null.
func (n *Node) Scalar() bool { return n.Kind > Null && n.Kind < List }

// A Member is a field of a Map.
type Member struct {
	Key          string
	Line, Column int
	Value        *Node
}

// String makes a Text.
func String(s string) *Node { return &Node{Kind: Text, Text: s} }

// Int makes a Number.
func Int[T ~int | ~int64](n T) *Node {
	return &Node{Kind: Number, Text: strconv.FormatInt(int64(n), 10)}
}

// Float makes a Number, with no more digits than it needs.
func Float(f float64) *Node {
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e' // as package encoding/json does
	}
	return &Node{Kind: Number, Text: strconv.FormatFloat(f, format, -1, 64)}
}

// ListOf makes a List.
func ListOf(items ...*Node) *Node { return &Node{Kind: List, Items: items} }

// NewMap makes a Map without members.
func NewMap() *Node { return &Node{Kind: Map} }

// Set adds a member to a Map, and returns the Map. The value is a text, a number, true or false, or a node. If it is a nil node, no
// member is added.
func (n *Node) Set(key string, value any) *Node {
	if node := nodeOf(value); node != nil {
		n.Members = append(n.Members, Member{Key: key, Value: node})
	}
	return n
}

// SetIf is Set if something is so.
func (n *Node) SetIf(is bool, key string, value any) *Node {
	if is {
		n.Set(key, value)
	}
	return n
}

func nodeOf(value any) *Node {
	switch v := value.(type) {
	case string:
		return String(v)
	case int:
		return Int(v)
	case int64:
		return Int(v)
	case float64:
		return Float(v)
	case bool:
		return &Node{Kind: Bool, Text: strconv.FormatBool(v)}
	default:
		return v.(*Node)
	}
}

// Get returns the value of the first member with that key; nil: there is none, or n is no Map.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for _, m := range n.Members {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

// Elements returns the elements of a List; nil: n is none.
func (n *Node) Elements() []*Node {
	if n == nil {
		return nil
	}
	return n.Items
}

// Values returns the elements of a List, or the values of a Map.
func (n *Node) Values() []*Node {
	all := slices.Clip(n.Items)
	for _, m := range n.Members {
		all = append(all, m.Value)
	}
	return all
}

// Any reports whether something is so for a value that n has.
func (n *Node) Any(is func(*Node) bool) bool { return slices.ContainsFunc(n.Values(), is) }

// Count returns the number of single values that n is or contains.
func (n *Node) Count() (sum int) {
	for _, v := range n.Values() {
		sum += v.Count()
	}
	if n.Scalar() {
		sum++
	}
	return sum
}

// Found describes a value, for a mistake; the words follow "is".
func (n *Node) Found() string {
	switch n.Kind {
	case Null:
		return "empty"
	case Text:
		return Quote(n.Text)
	case List:
		return "a list"
	case Map:
		return "a mapping"
	}
	return Clip(n.Text)
}

// Quoted is Found with every single value in quotes. It is for files in which the field, and not
// the value, decides the type.
func (n *Node) Quoted() string {
	if n.Scalar() {
		return Quote(n.Text)
	}
	return n.Found()
}

// Clip is s as it is repeated in a message: the beginning of it, if it is long.
func Clip(s string) string { return ClipTo(60, s) }

// ClipTo is s cut to that many characters.
func ClipTo(most int, s string) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// Quote is Clip in quotes.
func Quote(s string) string { return strconv.Quote(Clip(s)) }

// Without returns the member called key, nil if there is none, and the other members.
func Without(members []Member, key string) (*Member, []Member) {
	i := slices.IndexFunc(members, func(m Member) bool { return m.Key == key })
	if i < 0 {
		return nil, members
	}
	return &members[i], slices.Concat(members[:i], members[i+1:])
}

// maxDuration is the longest Duration of protobuf, in seconds.
const maxDuration = 315_576_000_000

var inSeconds = regexp.MustCompile(`^(-?)([0-9]*)(?:\.([0-9]{0,9}))?s$`)

// ParseSeconds reads a duration as in protobuf's JSON: seconds with up to nine decimals, and an s.
// A duration that is too long for time.Duration becomes its largest.
func ParseSeconds(text string) (time.Duration, bool) {
	m := inSeconds.FindStringSubmatch(text)
	if m == nil || m[2] == "" && m[3] == "" {
		return 0, false
	}
	seconds, err := strconv.ParseInt("0"+m[2], 10, 64)
	if err != nil || seconds > maxDuration {
		return 0, false
	}
	nanos, _ := strconv.ParseInt(m[3]+"000000000"[len(m[3]):], 10, 64)
	d := time.Duration(math.MaxInt64)
	if seconds < math.MaxInt64/int64(time.Second) || seconds == math.MaxInt64/int64(time.Second) && nanos <= math.MaxInt64%int64(time.Second) {
		d = time.Duration(seconds)*time.Second + time.Duration(nanos)
	}
	if m[1] != "" {
		d = -d
	}
	return d, true
}

// Seconds writes what ParseSeconds reads, with no more decimals than needed: "0.25s".
func Seconds(d time.Duration) string {
	sign, abs := "", uint64(d)
	if d < 0 {
		sign, abs = "-", -abs
	}
	text := fmt.Sprintf("%s%d.%09d", sign, abs/uint64(time.Second), abs%uint64(time.Second))
	return strings.TrimRight(strings.TrimRight(text, "0"), ".") + "s"
}

// ParseGo reads a duration as Go writes it.
func ParseGo(text string) (time.Duration, bool) {
	d, err := time.ParseDuration(text)
	return d, err == nil
}

// A Position is a place in a file. Lines and columns count from 1, columns in characters. The zero
// Position is no place; values that were made in code have it.
type Position struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// String returns "file:3:15", and "-" for no place.
func (p Position) String() string {
	if p.Line == 0 {
		return "-"
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// A Mistake is one thing that is wrong in a text.
type Mistake struct {
	// Position is where. A text without a name, as of a service config, has no File.
	Position
	// Path is the field, such as "services.0.queue.limit". Empty: the text as a whole.
	Path string
	// Found is what the file has, as a phrase that follows "is": "unknown", "a list", or the value in quotes.
	Found string
	// Allowed is what would be right: a noun phrase.
	Allowed string
	// Suggestion is what was probably meant. Empty: nothing is similar.
	Suggestion string
}

// Error returns the whole mistake, in a form that editors turn into a link:
//
//	retry.yaml:3:15: dependencies.api.deadline is "3 sec": want a duration such as 250ms, 1.5s or 2m; did you mean 3s?
//
// Without a file it begins with the line: "line 3: ".
func (m Mistake) Error() string {
	var b strings.Builder
	switch {
	case m.File != "" && m.Line > 0:
		b.WriteString(m.Position.String() + ": ")
	case m.File != "":
		b.WriteString(m.File + ": ")
	case m.Line > 0:
		fmt.Fprintf(&b, "line %d: ", m.Line)
	}
	if m.Path != "" {
		b.WriteString(m.Path + " is ")
	}
	b.WriteString(m.Found)
	if m.Allowed != "" {
		b.WriteString(": want " + m.Allowed)
	}
	if m.Suggestion != "" {
		b.WriteString("; did you mean " + m.Suggestion + "?")
	}
	return b.String()
}

// String returns the same as Error. Without it, a Mistake would have the String of its Position.
func (m Mistake) String() string { return m.Error() }

// As lets errors.As find an engine.Problem: field, value and what is allowed.
func (m Mistake) As(target any) bool {
	to, ok := target.(*problem.Problem)
	if ok {
		*to = problem.Problem{Field: m.Path, Value: m.Found, Allowed: m.Allowed}
	}
	return ok
}

// Mistakes is everything that is wrong with a text. It is an error. errors.As finds it, each
// [Mistake] in it, and all of them as an engine.Problems.
type Mistakes []Mistake

// Error lists the mistakes, one a line.
func (l Mistakes) Error() string {
	return strings.Join(choice.Each(l, Mistake.Error), "\n")
}

// As lets errors.As find an engine.Problems, for programs that treat mistakes in code and in files alike.
func (l Mistakes) As(target any) bool {
	to, ok := target.(*problem.List)
	if ok {
		*to = make(problem.List, len(l))
		for i, m := range l {
			m.As(&(*to)[i])
		}
	}
	return ok
}

// Unwrap returns the mistakes one by one, for errors.As.
func (l Mistakes) Unwrap() []error {
	return choice.Each(l, func(m Mistake) error { return m })
}

// Err returns l in the order of the text; nil if it is empty.
func (l Mistakes) Err() error {
	if len(l) == 0 {
		return nil
	}
	slices.SortStableFunc(l, func(a, b Mistake) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	return l
}
