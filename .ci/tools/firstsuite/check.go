package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A finding is a use of something that depends on the machine.
type finding struct {
	pos    token.Position
	what   string
	kind   kind
	by     string // the test that comes to it, and how
	reason string // of an exception
}

func (f finding) String() string {
	where := "use internal/memnet, or move it behind //go:build servers"
	if f.kind == clock {
		where = "the real clock; use a bubble of testing/synctest"
	}
	return fmt.Sprintf("%s: %s (%s): %s", f.pos, f.what, f.by, where)
}

// A source is a parsed file.
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
	// makesBubble: it passes a parameter to synctest.Test.
	makesBubble bool
}

// used is a use of something forbidden within a function.
type used struct {
	pos    token.Position
	what   string
	kind   kind
	reason string
}

// called is a mention of other functions.
type called struct {
	key      string
	inBubble bool
}

// check returns the uses in files that a test comes to, and those with a reason.
func check(files []file) ([]finding, error) {
	fset := token.NewFileSet()
	var sources []*source
	for _, f := range files {
		parsed, err := parser.ParseFile(fset, f.path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
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
	return findings(functions), nil
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
	keys := make([]string, 0, len(functions))
	for key, f := range functions {
		keys = append(keys, key)
		if f.receiver != "" {
			methods[f.method] = append(methods[f.method], key)
		}
	}
	slices.Sort(keys)
	found := map[token.Position]finding{}
	for _, key := range keys {
		if isTest(key) {
			w := walk{functions: functions, methods: methods, found: found, seen: map[called]bool{}, types: map[string]bool{}, waiting: map[string][]visit{}}
			w.follow(visit{called{key, false}, short(key)})
		}
	}
	all := make([]finding, 0, len(found))
	for _, f := range found {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.pos.Filename, b.pos.Filename), cmp.Compare(a.pos.Offset, b.pos.Offset))
	})
	return all
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

// A visit is of a function, by a way.
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
			w.found[u.pos] = finding{u.pos, u.what, u.kind, v.by, u.reason}
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

// importsOf returns the imported packages by the names that they have in the file.
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

// imports reports whether the file imports the package.
func imports(file, pkg string) bool {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	return err == nil && slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == strconv.Quote(pkg) })
}

// qualified returns the package and the name of a selector, or "" and the name of a method or field.
func (p *source) qualified(sel *ast.SelectorExpr) (pkg, name string) {
	if id, ok := sel.X.(*ast.Ident); ok {
		return p.imports[id.Name], sel.Sel.Name
	}
	return "", sel.Sel.Name
}
