package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/lullgo/lull/internal/must"
)

type finding struct {
	used
	by string // the test, and how it comes to it
}

func (f finding) String() string {
	where := "use internal/memnet, or move it behind //go:build servers"
	if f.kind == clock {
		where = "the real clock; use a bubble of testing/synctest"
	}
	return fmt.Sprintf("%s: %s (%s): %s", f.pos, f.what, f.by, where)
}

type source struct {
	file
	isTest     bool // otherwise the package is made for tests
	fset       *token.FileSet
	ast        *ast.File
	imports    map[string]string // path by name
	exceptions map[int]map[kind]string
}

// A function is one that is declared, a variable with its functions, or a type.
type function struct {
	method, receiver string // keys, of a method
	isType           bool   // it is a type, which mentions those of its fields
	uses             []used
	calls            []called
	makesBubble      bool // it passes a parameter to synctest.Test
}

// used is a use of something that depends on the machine.
type used struct {
	pos    token.Position
	what   string
	kind   kind
	reason string // of an exception
}

type called struct {
	key      string
	inBubble bool
}

// check returns the uses in files that a test comes to, and those with a reason.
func check(files []file) []finding {
	fset := token.NewFileSet()
	var sources []*source
	for _, f := range files {
		parsed := must.Have(parser.ParseFile(fset, f.path, nil, parser.ParseComments|parser.SkipObjectResolution))
		sources = append(sources, &source{f, strings.HasSuffix(f.path, "_test.go"), fset, parsed, importsOf(parsed), exceptionsOf(fset, parsed)})
	}
	functions := map[string]*function{}
	for changed := true; changed; { // until no more functions are known that make bubbles
		makers := makersOf(functions)
		functions = map[string]*function{}
		for _, s := range sources {
			s.read(functions, makers)
		}
		changed = len(makersOf(functions)) > len(makers)
	}
	return findings(functions)
}

func makersOf(functions map[string]*function) map[string]bool {
	makers := map[string]bool{}
	for key, f := range functions {
		if f.makesBubble {
			makers[key] = true
			if f.method != "" {
				makers[f.method] = true
			}
		}
	}
	return makers
}

// findings follows the calls of every test.
func findings(functions map[string]*function) []finding {
	methods := map[string][]string{} // keys by package and name
	keys := slices.Sorted(maps.Keys(functions))
	for _, key := range keys {
		if f := functions[key]; f.receiver != "" {
			methods[f.method] = append(methods[f.method], key)
		}
	}
	found := map[token.Position]finding{}
	for _, key := range keys {
		if isTest(key) {
			w := walk{functions: functions, methods: methods, found: found, seen: map[called]bool{}, types: map[string]bool{}, waiting: map[string][]visit{}}
			w.follow(visit{called{key, false}, short(key)})
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.pos.Filename, b.pos.Filename), cmp.Compare(a.pos.Offset, b.pos.Offset))
	})
}

// A walk follows the calls of one test. It follows a method of a type once the test has come to where that type is mentioned.
type walk struct {
	functions map[string]*function
	methods   map[string][]string
	found     map[token.Position]finding
	seen      map[called]bool
	types     map[string]bool
	waiting   map[string][]visit // for a type, by its key
}

type visit struct {
	called
	by string
}

func (w *walk) follow(v visit) {
	f := w.functions[v.key]
	if f == nil || w.seen[v.called] {
		return
	}
	w.seen[v.called] = true
	for _, u := range f.uses {
		if _, known := w.found[u.pos]; !known && !(u.kind == clock && v.inBubble) {
			w.found[u.pos] = finding{u, v.by}
		}
	}
	for _, c := range f.calls {
		inBubble := v.inBubble || c.inBubble
		w.follow(visit{called{c.key, inBubble}, v.by + " > " + short(c.key)})
		for _, key := range w.methods[c.key] {
			m := visit{called{key, inBubble}, v.by + " > " + short(key)}
			if receiver := w.functions[key].receiver; w.types[receiver] {
				w.follow(m)
			} else {
				w.waiting[receiver] = append(w.waiting[receiver], m)
			}
		}
		if f := w.functions[c.key]; f != nil && f.isType && !w.types[c.key] {
			w.types[c.key] = true
			for _, m := range w.waiting[c.key] {
				w.follow(m)
			}
		}
	}
}

// isTest reports whether go test runs the function. Examples without output are only compiled, and
// benchmarks are not run.
func isTest(key string) bool {
	name := key[strings.LastIndex(key, ".")+1:]
	if strings.Contains(name, local) {
		return false
	}
	return name == "init" || name == "TestMain" || strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example")
}

// local stands in the keys of functions in local variables.
const local = "·"

func short(key string) string { return key[strings.LastIndex(key, "/")+1:] }

func importsOf(f *ast.File) map[string]string {
	m := map[string]string{}
	for _, spec := range f.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		m[name] = p
	}
	return m
}

func imports(file, pkg string) bool {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	return err == nil && slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == strconv.Quote(pkg) })
}

// qualified returns the package and the name of a selector, or "" and the name of a method or field. Other expressions have neither.
func (p *source) qualified(e ast.Expr) (pkg, name string) {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	if id, ok := sel.X.(*ast.Ident); ok {
		pkg = p.imports[id.Name]
	}
	return pkg, sel.Sel.Name
}
