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

// readFloors returns the floors of the house from the ground up, each with its folders: those of the test that holds the walls up.
func (h *house) readFloors() [][]string {
	var floors [][]string
	for _, f := range h.in(true) {
		if f.path != "walls_test.go" {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), f.path, f.text, parser.SkipObjectResolution)
		if err != nil {
			continue // the compiler says so
		}
		for _, d := range syntax.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR || g.Specs[0].(*ast.ValueSpec).Names[0].Name != "floors" {
				continue
			}
			for _, floor := range g.Specs[0].(*ast.ValueSpec).Values[0].(*ast.CompositeLit).Elts {
				var folders []string
				for _, e := range floor.(*ast.CompositeLit).Elts {
					folder, _ := strconv.Unquote(e.(*ast.BasicLit).Value)
					folders = append(folders, folder)
				}
				floors = append(floors, folders)
			}
		}
	}
	return floors
}

// floorOf returns the floor of a folder, from 0; -1 if it has none, as internal, which is below all.
func (h *house) floorOf(dir string) int {
	top, _, _ := strings.Cut(dir, "/")
	return slices.IndexFunc(h.floors, func(folders []string) bool { return slices.Contains(folders, top) })
}

// inLibrary reports whether a folder stands below the lab.
func (h *house) inLibrary(dir string) bool {
	return dir != ".ci" && !strings.HasPrefix(dir, ".ci/") && h.floorOf(dir) < h.floorOf("lab")
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
			if ok && h.floorOf(to) > h.floorOf(dir) && !strings.HasPrefix(dir, ".ci") {
				all = append(all, arrow{dir, to, h.inLibrary(dir) && !h.inLibrary(to)})
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
		if !h.inLibrary(dir) || strings.Contains("/"+dir+"/", "/internal/") {
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
