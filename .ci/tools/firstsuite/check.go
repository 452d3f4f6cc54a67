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

// A function is one that is declared, or a variable with its functions.
type function struct {
	key   string
	uses  []used
	calls []called
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
		}
	}
	return makers
}

// findings follows the calls of every test.
func findings(functions map[string]*function) []finding {
	found := map[token.Position]finding{}
	type visit struct {
		key      string
		inBubble bool
	}
	seen := map[visit]bool{}
	var follow func(v visit, by string)
	follow = func(v visit, by string) {
		f := functions[v.key]
		if f == nil || seen[v] {
			return
		}
		seen[v] = true
		for _, u := range f.uses {
			if u.kind == clock && v.inBubble {
				continue
			}
			if _, known := found[u.pos]; !known {
				found[u.pos] = finding{u.pos, u.what, u.kind, by, u.reason}
			}
		}
		for _, c := range f.calls {
			follow(visit{c.key, v.inBubble || c.inBubble}, by+" > "+short(c.key))
		}
	}
	keys := make([]string, 0, len(functions))
	for key := range functions {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if isTest(key) {
			follow(visit{key, false}, short(key))
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
