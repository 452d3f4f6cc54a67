package config

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lullgo/lull/config/internal/syntax"
	"github.com/lullgo/lull/internal/pretty"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/sim"
)

// A writer makes nodes of Go values, and keeps the first error.
type writer struct{ err error }

// bytes is the text of n.
func (w *writer) bytes(n *tree.Node) ([]byte, error) {
	if w.err != nil {
		return nil, w.err
	}
	return syntax.YAML(80, n)
}

// written is a node whose text is written without quotes.
func written(text string) *tree.Node { return &tree.Node{Kind: tree.Number, Text: text} }

// node returns v as a node.
func (w *writer) node(v reflect.Value, path string, f form) *tree.Node {
	switch {
	case v.Type() == distributionType:
		return w.distribution(v, path)
	case v.Type() == edgeType && v.Interface().(Edge) == Edge{Dependency: v.FieldByName("Dependency").String()}:
		return w.node(v.FieldByName("Dependency"), path, plain) // nothing but the name
	case v.Kind() == reflect.Struct:
		return w.mapping(v, path)
	case v.Kind() == reflect.Slice:
		list := tree.ListOf()
		for i := range v.Len() {
			list.Items = append(list.Items, w.node(v.Index(i), element(path, i), plain))
		}
		list.Flow = fits(list)
		return list
	}
	s, ok := format(v, f)
	if !ok && w.err == nil {
		w.err = fmt.Errorf("config: %s is %v, which a file cannot hold", path, v)
	}
	if v.Kind() == reflect.String {
		return tree.String(s)
	}
	return written(s)
}

func (w *writer) mapping(v reflect.Value, path string) *tree.Node {
	n := tree.NewMap()
	for _, m := range members(v.Type()) {
		// The other fields depend on the kind, so it is written even if it is zero.
		if member := v.FieldByIndex(m.index); !empty(member) || m.name == "Kind" && !v.IsZero() {
			n.Set(m.key, w.node(member, field(path, m.key), m.form))
		}
	}
	n.Flow = inline(n, v)
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

// inline reports whether n, made of v, is better read on one line.
func inline(n *tree.Node, v reflect.Value) bool {
	_, named := v.Type().FieldByName("Name")
	return !named && (v.Type() != policyType || len(n.Members) == 0) && fits(n)
}

// distribution writes d in its shortest form.
func (w *writer) distribution(v reflect.Value, path string) *tree.Node {
	d := v.Interface().(sim.Distribution)
	rest := d
	rest.Mean = 0
	if empty(reflect.ValueOf(rest)) {
		return written(pretty.Duration(d.Mean))
	}
	n := w.mapping(v, path)
	n.Flow = n.Flow || len(d.Bars) == 0
	return n
}

// empty reports whether nothing needs to be written for v.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice:
		return v.Len() == 0
	case reflect.Struct:
		for i := range v.NumField() {
			if !empty(v.Field(i)) {
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
func format(v reflect.Value, f form) (string, bool) {
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
	case t.Kind() == reflect.Int:
		return prettyInteger(v.Int()), true
	case t.Kind() == reflect.Float64:
		n := v.Float()
		return prettyNumber(n, f), !math.IsNaN(n) && !math.IsInf(n, 0)
	case t.Kind() == reflect.Uint8:
		names := enumNames(t)
		if v.Uint() < uint64(len(names)) {
			return names[v.Uint()], true
		}
		return "", false
	default:
		panic(fmt.Sprintf("config: a field of type %v", t))
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
func prettyNumber(n float64, f form) string {
	if f == share && n >= 1e-6 && n <= maxBare {
		return percentage(n)
	}
	if a := math.Abs(n); a == 0 || a >= 1e-6 && a < 1e15 {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}

// percentage is n > 0 as a percentage. It moves the point in the text, because a multiplication
// would round.
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
