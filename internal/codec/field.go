package codec

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/pretty"
	"github.com/lullgo/lull/internal/tree"
)

// A Member is a field of a struct, with its name in files.
type Member struct {
	Key   string // in a file
	Name  string // in Go
	Index []int
	Form  Form
}

// A Form is a way to write a number or a duration, in addition to the plain one.
type Form uint8

const (
	Plain   Form = iota
	Share        // also as a percentage, and only so above 1
	Timeout      // also as "none"
	Delay        // also as "at-once"
)

// Word returns the text that stands for a negative duration in the form; empty if there is none.
func (f Form) Word() string { return words[f].text }

// words are texts that stand for negative durations in Go.
var words = map[Form]struct {
	text  string
	value time.Duration
}{
	Timeout: {"none", lull.NoTimeout},
	Delay:   {"at-once", hedge.AtOnce},
}

var forms = map[reflect.Type]map[string]Form{
	reflect.TypeFor[lull.Policy]():    {"AttemptTimeout": Timeout, "Deadline": Timeout},
	reflect.TypeFor[budget.Config]():  {"Ratio": Share},
	reflect.TypeFor[breaker.Config](): {"FailureRate": Share, "SlowRate": Share, "OpenJitter": Share},
	reflect.TypeFor[hedge.Config]():   {"Delay": Delay, "Percentile": Share, "Share": Share},
}

// Kinds are the facts about types that their fields do not show.
type Kinds struct {
	// Forms are the fields whose form is not Plain, by type.
	Forms map[reflect.Type]map[string]Form
	// Keyed are the types whose values have their name as the key in a file, so that Name is no field there.
	Keyed []reflect.Type
	// Custom are the types that are not read or written field by field.
	Custom map[reflect.Type]Custom
}

// A Custom is a type that has a way of its own to stand in a file. A nil function is none.
type Custom struct {
	// Read reads n, and reports whether it could: false is for the usual way.
	Read func(r *Reader, n *tree.Node, v reflect.Value, path string) bool
	// Write is the inverse of Read. Nil is for the usual way.
	Write func(w *Writer, v reflect.Value, path string) *tree.Node
	// Whole: assignments name the value as a whole, and not its fields.
	Whole bool
	// Words are the texts of the values of an unsigned type, from the one after zero; nothing is written for zero.
	Words []string
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	policyType   = reflect.TypeFor[lull.Policy]()

	keyed   = map[reflect.Type]bool{}
	customs = map[reflect.Type]Custom{}
)

// IsKeyed reports whether a value of type t has its name as the key in a file.
func IsKeyed(t reflect.Type) bool { return keyed[t] }

// Register adds k. It is called before anything is read, by the init functions of packages with files of their own.
func Register(k Kinds) {
	for t, f := range k.Forms {
		for name := range f {
			if _, ok := t.FieldByName(name); !ok {
				panic(fmt.Sprintf("codec: %v has no field %s", t, name))
			}
		}
		forms[t] = f
	}
	for _, t := range k.Keyed {
		keyed[t] = true
	}
	maps.Copy(customs, k.Custom)
}

// Members are the exported fields of the struct type t, in their order. The fields of a Policy are
// listed among those of the struct that has it.
func Members(t reflect.Type) []Member {
	if all, ok := membersOf.Load(t); ok {
		return all.([]Member)
	}
	var all []Member
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case !f.IsExported() || f.Name == "Name" && keyed[t]:
		case f.Type == policyType:
			for _, m := range Members(f.Type) {
				all = append(all, Member{m.Key, m.Name, append([]int{i}, m.Index...), m.Form})
			}
		default:
			all = append(all, Member{Path(f.Name), f.Name, []int{i}, forms[t][f.Name]})
		}
	}
	membersOf.Store(t, all)
	return all
}

var membersOf sync.Map

// Find returns the member called key; if there is none, all the keys.
func Find(t reflect.Type, key string) (Member, bool, []string) {
	var keys []string
	for _, m := range Members(t) {
		if m.Key == key {
			return m, true, nil
		}
		keys = append(keys, m.Key)
	}
	return Member{}, false, keys
}

// A Writer makes nodes of Go values, and keeps the first error.
type Writer struct{ Err error }

// Written is a node whose text is written without quotes.
func Written(text string) *tree.Node { return &tree.Node{Kind: tree.Number, Text: text} }

// Node returns v as a node.
func (w *Writer) Node(v reflect.Value, path string, f Form) *tree.Node {
	if custom := customs[v.Type()]; custom.Write != nil {
		if n := custom.Write(w, v, path); n != nil {
			return n
		}
	}
	switch {
	case v.Kind() == reflect.Struct:
		return w.Mapping(v, path)
	case v.Kind() == reflect.Slice:
		list := tree.ListOf()
		for i := range v.Len() {
			list.Items = append(list.Items, w.Node(v.Index(i), Element(path, i), Plain))
		}
		list.Flow = fits(list)
		return list
	}
	s, ok := format(v, f)
	if !ok && w.Err == nil {
		w.Err = fmt.Errorf("%s is %v, which a file cannot hold", path, v)
	}
	if v.Kind() == reflect.String {
		return tree.String(s)
	}
	return Written(s)
}

// Mapping returns the struct v as a node.
func (w *Writer) Mapping(v reflect.Value, path string) *tree.Node {
	n := tree.NewMap()
	for _, m := range Members(v.Type()) {
		// The other fields depend on the kind, so it is written even if it is zero.
		if Member := v.FieldByIndex(m.Index); !Empty(Member) || m.Name == "Kind" && !v.IsZero() {
			n.Set(m.Key, w.Node(Member, Field(path, m.Key), m.Form))
		}
	}
	n.Flow = Inline(n, v)
	return n
}

// fits reports whether n has only single values and is short enough for one line.
func fits(n *tree.Node) bool {
	width := 0
	for _, c := range n.Items {
		if width += len(c.Text) + len(", "); !c.Scalar() {
			return false
		}
	}
	for _, m := range n.Members {
		if width += len(m.Key) + len(m.Value.Text) + 2*len(": "); !m.Value.Scalar() {
			return false
		}
	}
	return width <= 64
}

// Inline reports whether n, made of v, is better read on one line.
func Inline(n *tree.Node, v reflect.Value) bool {
	_, named := v.Type().FieldByName("Name")
	return !named && (v.Type() != policyType || len(n.Members) == 0) && fits(n)
}

// Empty reports whether nothing needs to be written for v.
func Empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice:
		return v.Len() == 0
	case reflect.Struct:
		for i := range v.NumField() {
			if !Empty(v.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Float64:
		return v.Float() == 0 // -0 too
	}
	return v.IsZero()
}

// format is the inverse of scalar. It is not ok if a file cannot hold v.
func format(v reflect.Value, f Form) (string, bool) {
	switch t := v.Type(); {
	case t == durationType:
		d := time.Duration(v.Int())
		if w, ok := words[f]; ok && d == w.value {
			return w.text, true
		}
		return pretty.Duration(d), true
	case t.Kind() == reflect.String:
		return v.String(), utf8.ValidString(v.String())
	case t.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool()), true
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		return prettyInteger(v.Int()), true
	case t.Kind() == reflect.Float64:
		n := v.Float()
		return prettyNumber(n, f), !math.IsNaN(n) && !math.IsInf(n, 0)
	case t.Kind() == reflect.Uint8:
		names := EnumNames(t)
		if v.Uint() < uint64(len(names)) {
			return names[v.Uint()], true
		}
		return "", false
	default:
		panic(fmt.Sprintf("codec: a field of type %v", t))
	}
}

func prettyInteger(n int64) string {
	switch {
	case n != 0 && n%1_000_000 == 0:
		return strconv.FormatInt(n/1_000_000, 10) + "M"
	case (n >= 10_000 || n <= -10_000) && n%1000 == 0:
		return strconv.FormatInt(n/1000, 10) + "k"
	}
	return strconv.FormatInt(n, 10)
}

// prettyNumber writes n with as few digits as it needs. A share becomes a percentage with the same
// digits, the point moved by two places.
func prettyNumber(n float64, f Form) string {
	if f == Share && n >= 1e-6 && n <= maxBare {
		return percentage(n)
	}
	if a := math.Abs(n); a == 0 || a >= 1e-6 && a < 1e15 {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}

// percentage is n > 0 as a percentage. It moves the point in the text, because a multiplication would round.
func percentage(n float64) string {
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(n, 'e', -1, 64), "e")
	digits := strings.Replace(mantissa, ".", "", 1)
	power, _ := strconv.Atoi(exponent)
	switch point := 1 + power + 2; { // digits before the point
	case point <= 0:
		digits = "0." + strings.Repeat("0", -point) + digits
	case point < len(digits):
		digits = digits[:point] + "." + digits[point:]
	default:
		digits += strings.Repeat("0", point-len(digits))
	}
	return digits + "%"
}
