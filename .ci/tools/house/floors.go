package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/lullgo/lull/ci/internal/tool"
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
		for _, d := range syntax.Decls {
			of := ""
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				if of = tool.Receiver(f); !ast.IsExported(of) {
					continue
				}
			}
			for _, name := range tool.Declared(d) {
				if name.IsExported() {
					names[dir+" "+of+"."+name.Name] = true
				}
			}
		}
	}
	return len(names)
}
