package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/must"
)

// docLink is a link of a doc comment to a name, see go.dev/doc/comment: a name in brackets, with its type or package before it.
var docLink = regexp.MustCompile(`(?:^|[\s(])\[\*?((?:[a-z][\w/.-]*\.)?)([A-Z]\w*(?:\.[A-Z]\w*)?)\](?:$|[^\w(:\[])`)

// names are the exported names that a package declares, members of types as Type.Member.
type names map[string]bool

// namesOf reads the files of a folder; none if it has no package. Embedded fields make any member possible: "Type.*".
func namesOf(fset *token.FileSet, dir string) (declared names, files []*ast.File) {
	declared = names{}
	paths, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, p := range paths {
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || strings.HasSuffix(p, "_test.go") {
			continue
		}
		files = append(files, f)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = tool.Receiver(d) + "." + name
				}
				declared[name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					declared.add(s)
				}
			}
		}
	}
	return declared, files
}

func (n names) add(spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			n[name.Name] = true
		}
	case *ast.TypeSpec:
		n[s.Name.Name] = true
		var members *ast.FieldList
		switch t := s.Type.(type) {
		case *ast.StructType:
			members = t.Fields
		case *ast.InterfaceType:
			members = t.Methods
		default: // of another type, whose members it may have
			n[s.Name.Name+".*"] = true
			return
		}
		for _, f := range members.List {
			if len(f.Names) == 0 {
				n[s.Name.Name+".*"] = true
			}
			for _, name := range f.Names {
				n[s.Name.Name+"."+name.Name] = true
			}
		}
	}
}

func (n names) has(name string) bool {
	typ, _, member := strings.Cut(name, ".")
	return n[name] || member && n[typ+".*"]
}

// checkNames checks that the names in doc comments exist, as far as they are of this repository or of the standard library.
func checkNames() error {
	fset := token.NewFileSet()
	dirs := map[string]bool{}
	for file := range tool.Files(".", ".ci") {
		if strings.HasSuffix(file, ".go") {
			dirs[path.Dir(file)] = true
		}
	}
	known := map[string]names{} // by folder
	read := func(dir string) names {
		if known[dir] == nil {
			known[dir], _ = namesOf(fset, dir)
		}
		return known[dir]
	}
	links, missing := 0, []error(nil)
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		own, files := namesOf(fset, dir)
		known[dir] = own
		for _, f := range files {
			for _, group := range f.Comments {
				for _, c := range group.List {
					text := strings.TrimPrefix(c.Text, "//")
					if strings.HasPrefix(text, "\t") || strings.HasPrefix(text, "  ") {
						continue // code
					}
					for _, m := range docLink.FindAllStringSubmatch(text, -1) {
						links++
						in := own
						if m[1] != "" {
							if in = imported(files, strings.TrimSuffix(m[1], "."), dir, read); in == nil {
								continue
							}
						}
						if !in.has(m[2]) {
							missing = append(missing, fmt.Errorf("%s: [%s%s]: there is no such name", fset.Position(c.Pos()), m[1], m[2]))
						}
					}
				}
			}
		}
	}
	if len(missing) == 0 {
		fmt.Printf("%d links of doc comments to names hold, in %d packages\n", links, len(dirs))
	}
	return errors.Join(missing...)
}

// goroot is where the standard library is. Package runtime does not know it in a command that was built with -trimpath.
var goroot = sync.OnceValue(func() string { return strings.TrimSpace(must.Have(tool.Output(exec.Command("go", "env", "GOROOT")))) })

// imported returns the names of the package that the files in dir know by that name or path; nil if its source is not at hand.
func imported(files []*ast.File, pkg, dir string, read func(dir string) names) names {
	if pkg == files[0].Name.Name {
		return read(dir)
	}
	for _, f := range files {
		for _, i := range f.Imports {
			p := strings.Trim(i.Path.Value, `"`)
			if i.Name != nil && i.Name.Name == pkg || i.Name == nil && path.Base(p) == pkg {
				pkg = p
			}
		}
	}
	switch rest, here := strings.CutPrefix(pkg, "github.com/lullgo/lull"); {
	case here:
		return read(path.Join(".", rest))
	case !strings.Contains(pkg, "."): // of the standard library, or not imported: go doc makes no link then
		return read(filepath.Join(goroot(), "src", pkg))
	}
	return nil
}
