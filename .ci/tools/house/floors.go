package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// floors is the house from the cellar to the roof. An import goes down or stays on its floor; one that goes up is an arrow that should not be.
// The program and the lab share the highest: neither is imported by the library.
// A folder stands where the longest name that fits it stands, and with the drivers if none does.
var floors = [][]string{
	{"internal"}, // what two rooms share
	{"backoff", "breaker", "budget", "bulkhead", "hedge", "outlier", "throttle"}, // leaves
	{"engine"},
	{"driver", "event", "inbound"},
	{"."}, // package lull
	{"lullhttp", "queue", "idempotency", "admission", "redial", "requeue", "every", "lulltest"}, // drivers
	{"integrations", "config", "preset"},
	{"cmd", "torture", "sim", "bench", "dashboards", "lab", "examples", "docs", ".ci"}, // the program and the lab
}

// drivers is the floor of what the table does not name.
const drivers = 5

// floorOf returns the floor of a folder, from 0.
func floorOf(dir string) int {
	for at := dir; ; at = path.Dir(at) {
		for i, names := range floors {
			if slices.Contains(names, at) && (at != "." || dir == ".") {
				return i
			}
		}
		if at == "." {
			return drivers
		}
	}
}

// An arrow is an import that goes up.
type arrow struct {
	from, to string // folders
	wall     bool   // a package of the library needs the program or the lab
}

func (a arrow) String() string { return a.from + " -> " + a.to }

// arrows returns the imports that go up, outside of tests, each once for two packages.
func (h *house) arrows() (all []arrow) {
	for _, f := range h.in(false) {
		dir := path.Dir(f.path)
		syntax, err := parser.ParseFile(token.NewFileSet(), f.path, f.text, parser.ImportsOnly)
		if err != nil {
			continue // the compiler says so
		}
		for _, spec := range syntax.Imports {
			to, ok := h.dirOf(spec)
			if ok && floorOf(to) > floorOf(dir) {
				all = append(all, arrow{dir, to, floorOf(to) == len(floors)-1})
			}
		}
	}
	slices.SortFunc(all, func(a, b arrow) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// dirOf returns the folder of an imported package, if it is lull's.
func (h *house) dirOf(spec *ast.ImportSpec) (string, bool) {
	name, _ := strconv.Unquote(spec.Path.Value)
	if name == h.module {
		return ".", true
	}
	return strings.CutPrefix(name, h.module+"/")
}

// exported counts the exported names of packages below the highest floor that users can import: those at the top of
// a file, and methods of exported types.
func (h *house) exported() int {
	names := map[string]bool{}
	for _, f := range h.in(false) {
		dir := path.Dir(f.path)
		if floorOf(dir) == len(floors)-1 || strings.Contains("/"+dir+"/", "/internal/") {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), f.path, f.text, parser.SkipObjectResolution)
		if err != nil || syntax.Name.Name == "main" {
			continue
		}
		for _, name := range declared(syntax) {
			names[fmt.Sprint(dir, " ", name)] = true
		}
	}
	return len(names)
}

// declared returns the exported names of a file.
func declared(syntax *ast.File) (all []string) {
	add := func(names ...*ast.Ident) {
		for _, n := range names {
			if n.IsExported() {
				all = append(all, n.Name)
			}
		}
	}
	for _, d := range syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			} else if of := receiver(d.Recv.List[0].Type); ast.IsExported(of) && d.Name.IsExported() {
				all = append(all, of+"."+d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					add(spec.Names...)
				case *ast.TypeSpec:
					add(spec.Name)
				}
			}
		}
	}
	return all
}

// receiver returns the name of the type of a method, without pointers and parameters.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
