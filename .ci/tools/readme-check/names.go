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
			declared.add(d)
		}
	}
	return declared, files
}

func (n names) add(d ast.Decl) {
	if f, is := d.(*ast.FuncDecl); is && f.Recv != nil {
		n[tool.Receiver(f)+"."+f.Name.Name] = true
		return
	}
	for _, name := range tool.Declared(d) {
		n[name.Name] = true
	}
	if g, is := d.(*ast.GenDecl); is {
		for _, spec := range g.Specs {
			if t, is := spec.(*ast.TypeSpec); is {
				n.addMembers(t)
			}
		}
	}
}

func (n names) addMembers(t *ast.TypeSpec) {
	members := &ast.FieldList{List: []*ast.Field{{}}} // of another type, whose members it may have
	switch t := t.Type.(type) {
	case *ast.StructType:
		members = t.Fields
	case *ast.InterfaceType:
		members = t.Methods
	}
	for _, f := range members.List {
		if len(f.Names) == 0 { // embedded
			n[t.Name.Name+".*"] = true
		}
		for _, name := range f.Names {
			n[t.Name.Name+"."+name.Name] = true
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
		check := func(c *ast.Comment) {
			for _, m := range docLinks(c) {
				links++
				in := own
				if m[1] != "" {
					in = imported(files, strings.TrimSuffix(m[1], "."), dir, read)
				}
				if in != nil && !in.has(m[2]) {
					missing = append(missing, fmt.Errorf("%s: [%s%s]: there is no such name", fset.Position(c.Pos()), m[1], m[2]))
				}
			}
		}
		for _, f := range files {
			for _, group := range f.Comments {
				for _, c := range group.List {
					check(c)
				}
			}
		}
	}
	if len(missing) == 0 {
		fmt.Printf("%d links of doc comments to names hold, in %d packages\n", links, len(dirs))
	}
	return errors.Join(missing...)
}

// docLinks returns the links of a comment: what docLink finds, but not in code.
func docLinks(c *ast.Comment) [][]string {
	text := strings.TrimPrefix(c.Text, "//")
	if strings.HasPrefix(text, "\t") || strings.HasPrefix(text, "  ") {
		return nil
	}
	return docLink.FindAllStringSubmatch(text, -1)
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
