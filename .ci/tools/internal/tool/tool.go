// Package tool has what the commands beside it share: the commands that they run, and the files of a repository. Its
// functions fail as those of package must do.
package tool

import (
	"fmt"
	"go/ast"
	"go/doc"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lullgo/lull/internal/must"
)

// Output runs a command, and returns what it printed. An error has the command, and all that it printed.
func Output(cmd *exec.Cmd) (string, error) {
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s (in %q): %w\n%s%s", strings.Join(cmd.Args, " "), cmd.Dir, err, out, &complaint)
	}
	return string(out), err
}

// Files returns the files below a folder, by their paths from there, with slashes. It leaves out data of tests (testdata), what is not lull's
// (node_modules), and hidden folders but those that are named.
func Files(root string, hidden ...string) iter.Seq[string] {
	return func(yield func(string) bool) {
		must.Succeed(fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
			name := entry.Name()
			switch {
			case err != nil:
				return err
			case !entry.IsDir():
				if !yield(path) {
					return fs.SkipAll
				}
			case name == "testdata" || name == "node_modules" || path != "." && name[0] == '.' && !slices.Contains(hidden, name):
				return fs.SkipDir
			}
			return nil
		}))
	}
}

// WriteFile writes a file, and makes its folder.
func WriteFile[T string | []byte](name string, text T) {
	must.Succeed(os.MkdirAll(filepath.Dir(name), 0o755))
	must.Succeed(os.WriteFile(name, []byte(text), 0o644))
}

// ReadFile returns the text of a file.
func ReadFile(name string) string { return string(must.Have(os.ReadFile(name))) }

// TempDir makes a folder, which remove removes.
func TempDir(pattern string) (dir string, remove func()) {
	dir = must.Have(os.MkdirTemp("", pattern))
	return dir, func() { os.RemoveAll(dir) }
}

// Receiver returns the name of a receiver's type, without pointers and type parameters.
func Receiver(d *ast.FuncDecl) string {
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// Declared returns the names that a declaration has at the top of a file: of a function, of types, constants and variables.
func Declared(d ast.Decl) (names []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{d.Name}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				names = append(names, spec.Names...)
			case *ast.TypeSpec:
				names = append(names, spec.Name)
			}
		}
	}
	return names
}

// Statements returns the statements of a block, or of a clause; of other nodes none.
func Statements(n ast.Node) []ast.Stmt {
	switch n := n.(type) {
	case *ast.BlockStmt:
		return n.List
	case *ast.CaseClause:
		return n.Body
	case *ast.CommClause:
		return n.Body
	}
	return nil
}

// SilentExamples returns the names of the examples of a file that have no output to compare: go test compiles them, and does not run them.
func SilentExamples(f *ast.File) (names []string) {
	for _, e := range doc.Examples(f) {
		if e.Output == "" && !e.EmptyOutput {
			names = append(names, "Example"+e.Name)
		}
	}
	return names
}
