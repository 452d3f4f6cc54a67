package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/golden"
)

// The committed schema is the one that the types make now. The module lab/schematest compares it
// with the reader.
func TestSchemaIsThatOfTheTypes(t *testing.T) {
	g := generator{docs: map[string]map[string]string{}, definitions: object{}, clients: clientNames(t)}
	root := g.root()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	done(t, e.Encode(root))
	golden.File(t, "policy.schema.json", b.String())
}

type object = map[string]any

// A generator makes a JSON Schema of Go types, which are read as this package reads
// them, and of the comments on their fields.
type generator struct {
	docs        map[string]map[string]string // by package and type, by field
	definitions object
	clients     []string // that a preset can be, beside those of package preset
}

// root is the schema of a policy file: the fields of a PolicyFile, or else those of one
// dependency alone.
func (g *generator) root() object {
	file := g.properties(reflect.TypeFor[PolicyFile]())
	file["version"] = object{"enum": []any{version, "1"}, "description": "Version is that of the format: 1."}
	isFile, top := []any{}, object{}
	for _, key := range fileKeys {
		isFile = append(isFile, object{"required": []string{key}})
		top[key] = true
	}
	return object{
		"$schema":     "http://json-schema.org/draft-07/schema#",
		"$id":         SchemaURL,
		"title":       "Policies of lull",
		"description": "How calls to dependencies are made: retries, budgets, circuit breakers, hedges and limits.",
		"type":        "object",
		"properties":  top, // for completion in a file that is empty yet
		"if":          object{"anyOf": isFile},
		"then":        object{"properties": file, "additionalProperties": false},
		"else":        g.schema(reflect.TypeFor[Dependency](), codec.Plain),
		"definitions": g.definitions,
	}
}

func (g *generator) schema(t reflect.Type, f codec.Form) object {
	switch {
	case t == reflect.TypeFor[Edge]():
		return object{"anyOf": []any{someName(), g.ref(t)}}
	case t.Kind() == reflect.Struct:
		return g.ref(t)
	case t.Kind() == reflect.Slice && codec.IsKeyed(t.Elem()):
		name := strings.ToLower(plural(t.Elem().Name()))
		g.definitions[name] = object{
			"type": "object", "minProperties": 1, "maxProperties": codec.MaxElements,
			"propertyNames":        object{"minLength": 1, "maxLength": maxName, "pattern": `^\S(.*\S)?$`},
			"additionalProperties": g.ref(t.Elem()),
		}
		return object{"$ref": "#/definitions/" + name}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		return object{"type": "array", "maxItems": codec.MaxElements, "items": someName()}
	case t.Kind() == reflect.Slice:
		return object{"type": "array", "maxItems": codec.MaxElements, "items": g.schema(t.Elem(), codec.Plain)}
	}
	return scalarSchema(t, f)
}

func plural(name string) string {
	if rest, ok := strings.CutSuffix(name, "y"); ok {
		return rest + "ies"
	}
	return name + "s"
}

// ref is a reference to the definition of the struct type t. A mapping of which nothing
// is left but its name is an empty one, so null is.
func (g *generator) ref(t reflect.Type) object {
	name := strings.TrimPrefix(strings.ToLower(filepath.Base(t.PkgPath())+"."+t.Name()), "config.")
	if _, ok := g.definitions[name]; !ok {
		g.definitions[name] = nil // in the making
		g.definitions[name] = object{"type": []string{"object", "null"}, "properties": g.properties(t), "additionalProperties": false}
		if t == reflect.TypeFor[Edge]() {
			g.definitions[name] = object{"type": "object", "properties": g.properties(t), "additionalProperties": false, "required": []string{"dependency"}}
		}
	}
	return object{"$ref": "#/definitions/" + name}
}

// properties are the keys that the struct type t has in a file.
func (g *generator) properties(t reflect.Type) object {
	all := object{}
	for _, m := range codec.Members(t) {
		owner := t
		if len(m.Index) > 1 { // of the policy that is part of t
			owner = t.Field(m.Index[0]).Type
		}
		f := t.FieldByIndex(m.Index)
		s := g.schema(f.Type, m.Form)
		if r, ok := ranges[owner][f.Name]; ok {
			s = rangedSchema(f.Type, m.Form, r)
		}
		switch {
		case m.Key == "preset":
			s = object{"enum": append(ownNames(), g.clients...)}
		case t == reflect.TypeFor[Edge]() && m.Key == "dependency":
			s = someName()
		}
		if doc := g.doc(owner, f.Name); doc != "" {
			if _, ok := s["$ref"]; ok { // beside which draft 7 sees nothing
				s = object{"allOf": []any{s}}
			}
			s["description"] = doc
		}
		all[m.Key] = s
	}
	return all
}

// What scalar reads, in types of JSON and patterns.
const (
	digitsPattern   = `(0|[1-9](_?[0-9])*)`
	decimalPattern  = `(` + digitsPattern + `(\.[0-9]+)?|\.[0-9]+)`
	numberPattern   = `^-?` + decimalPattern + `( *[kMG]|[eE][-+]?[0-9]+)?$`
	sharePattern    = `^(-?` + decimalPattern + `( *%|[eE][-+]?[0-9]+)|-` + decimalPattern + `|0?\.[0-9]+|0|1(\.0+)?)$`
	durationPattern = `[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)`
)

// integerPattern has as many digits after the point as the unit makes whole.
func integerPattern() string {
	pattern := digitsPattern + `(\.0+)?`
	for _, unit := range []byte("kMG") {
		fraction := fmt.Sprintf(`\.[0-9]{1,%d}0*`, codec.Units[unit])
		pattern += `|(` + digitsPattern + `(` + fraction + `)?|` + fraction + `) *` + string(unit)
	}
	return `^-?(` + pattern + `)$`
}

func scalarSchema(t reflect.Type, f codec.Form) object {
	or := func(first object, pattern string) object {
		return object{"anyOf": []any{first, object{"type": "string", "pattern": pattern}}}
	}
	switch {
	case t == reflect.TypeFor[time.Duration](), t.Kind() == reflect.Int, t.Kind() == reflect.Float64:
		return rangedSchema(t, f, bounds{})
	case t == reflect.TypeFor[YesNo](), t.Kind() == reflect.Bool:
		return object{"enum": []any{true, false, "true", "false"}}
	case t.Kind() == reflect.Uint8:
		names := codec.EnumNames(t)
		return or(object{"enum": names}, anyCase(names))
	case t.Kind() == reflect.String:
		return anyText()
	}
	panic("no schema of a " + t.String())
}

func anyText() object { return object{"type": []string{"string", "number", "boolean"}} }

func someName() object {
	return object{"type": []string{"string", "number", "boolean"}, "minLength": 1}
}

func anyCase(names []string) string {
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteByte('|')
		}
		for _, c := range name {
			if up := strings.ToUpper(string(c)); up != string(c) {
				b.WriteString("[" + string(c) + up + "]")
			} else {
				b.WriteString(regexp.QuoteMeta(string(c)))
			}
		}
	}
	return "^(" + b.String() + ")$"
}

// doc is the comment on a field of t, in one line, as far as its first paragraph.
func (g *generator) doc(t reflect.Type, name string) string {
	key := t.PkgPath() + "." + t.Name()
	if g.docs[key] == nil {
		g.docs[key] = map[string]string{}
		folder := strings.Replace(t.PkgPath(), "github.com/lullgo/lull", "..", 1)
		files, _ := filepath.Glob(filepath.Join(filepath.FromSlash(folder), "*.go"))
		for _, path := range files {
			if !strings.HasSuffix(path, "_test.go") {
				g.read(path, t.Name(), key)
			}
		}
	}
	return g.docs[key][name]
}

// read reads the comments on the fields of the type called name from a Go file.
func (g *generator) read(path, name, key string) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		panic(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		s, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		for _, f := range s.Fields.List {
			text := f.Doc.Text()
			if text == "" {
				text = f.Comment.Text()
			}
			first, _, _ := strings.Cut(text, "\n\n")
			for _, id := range f.Names {
				g.docs[key][id.Name] = strings.Join(strings.Fields(first), " ")
			}
		}
		return false
	})
}
