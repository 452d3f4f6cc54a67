package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/must"
)

// helpers is added to each changed package. Which change is on is read once; the tests that run without
// one write down which changes they have reached.
const helpers = `
import (
	"os"
	"strconv"
	"sync"
)

var (
	mutantOn, _ = strconv.Atoi(os.Getenv("LULL_MUTANT"))
	mutantLog   = os.Getenv("LULL_MUTANT_LOG")
	mutantLogs  = mutantLog != ""
	mutantSeen  sync.Map
)

func mutant(id int) bool { return id == mutantOn || mutantLogs && mutantReached(id) }

func mutantReached(id int) bool {
	if _, seen := mutantSeen.LoadOrStore(id, true); !seen {
		if f, err := os.OpenFile(mutantLog, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			f.WriteString(strconv.Itoa(id) + "\n")
			f.Close()
		}
	}
	return false
}
`

// writer rewrites one file so that it holds changes which are off.
type writer struct {
	*pkg
	file  *file
	sites map[ast.Node][]*mutant
}

func (p *pkg) rewrite(f *file, mutants []*mutant) string {
	w := &writer{p, f, map[ast.Node][]*mutant{}}
	for _, m := range mutants {
		if m.file == f && !m.alone {
			w.sites[m.node] = append(w.sites[m.node], m)
		}
	}
	if len(w.sites) == 0 {
		return string(f.src)
	}
	return w.source(f, f.ast.FileStart, f.ast.Pos()) + w.plain(f.ast) + w.source(f, f.ast.End(), f.ast.FileEnd)
}

// text is the source of n with the changes in it.
func (w *writer) text(n ast.Node) string {
	s := w.plain(n)
	for _, m := range w.sites[n] {
		if e, ok := n.(ast.Expr); ok {
			s = fmt.Sprintf("func() %s { if mutant(%d) { return %s }; return %s }()", w.typeOf(e), m.id, m.with, s)
			continue
		}
		s = fmt.Sprintf("if !mutant(%d) { %s }", m.id, s)
		if !m.block {
			s = "func() { " + s + " }()"
		}
	}
	return s
}

// plain is the source of n with the changes of what is inside of it.
func (w *writer) plain(n ast.Node) string {
	var s strings.Builder
	done := n.Pos()
	ast.Inspect(n, func(in ast.Node) bool {
		if in == nil || in == n || w.sites[in] == nil {
			return true
		}
		s.WriteString(w.source(w.file, done, in.Pos()) + w.text(in))
		done = in.End()
		return false
	})
	return s.String() + w.source(w.file, done, n.End())
}

// typeOf is the type of an expression as its file writes it.
func (w *writer) typeOf(e ast.Expr) string {
	return types.TypeString(types.Default(w.info.TypeOf(e)), func(p *types.Package) string {
		if p == w.types {
			return ""
		}
		for _, i := range w.file.ast.Imports {
			if path, _ := strconv.Unquote(i.Path.Value); path == p.Path() && i.Name != nil {
				return i.Name.Name
			}
		}
		return p.Name() // if it is not imported, that does not compile, and the change is built alone
	})
}

// compiles reports whether these changes can be built together.
func (p *pkg) compiles(mutants []*mutant) bool {
	for _, m := range mutants {
		if lit, ok := m.node.(*ast.BasicLit); ok && p.inQuotient(m.file, lit) {
			return false // 1/2 without a type is not 1.0/2
		}
	}
	changed := map[*file]string{}
	for _, m := range mutants {
		changed[m.file] = p.rewrite(m.file, mutants)
	}
	return p.compilesWith(changed, p.parse("mutants.go", "package "+p.types.Name()+helpers))
}

// compilesPlain reports whether the package compiles with m in place of what was there.
func (p *pkg) compilesPlain(m *mutant) bool {
	return p.compilesWith(map[*file]string{m.file: m.plain()})
}

// compilesWith reports whether the package compiles with other texts of some files, and with more files.
func (p *pkg) compilesWith(changed map[*file]string, files ...*ast.File) bool {
	for _, f := range p.files {
		a := f.ast
		if text, ok := changed[f]; ok {
			a = p.parse(f.path, text)
		}
		files = append(files, a)
	}
	if slices.Contains(files, nil) {
		return false
	}
	_, err := p.check(files, nil)
	return err == nil
}

// inQuotient reports whether lit is in a division of constants whose result is no integer.
func (p *pkg) inQuotient(f *file, lit *ast.BasicLit) (found bool) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		b, ok := n.(*ast.BinaryExpr)
		if ok && b.Op == token.QUO && p.info.Types[b].Value != nil && !isInteger(p.info.TypeOf(b)) && b.Pos() <= lit.Pos() && lit.End() <= b.End() {
			found = true
		}
		return !found
	})
	return found
}

func isInteger(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0
}

// plain is the file with m in place of what was there.
func (m *mutant) plain() string {
	f := m.file
	return m.pkg.source(f, f.ast.FileStart, m.node.Pos()) + m.with + m.pkg.source(f, m.node.End(), f.ast.FileEnd)
}

func (p *pkg) parse(name, src string) *ast.File {
	f, err := parser.ParseFile(p.fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	return f
}

// writeAll writes the files with all changes, and the overlay that puts them in place.
func writeAll(packages []*pkg, drawn []*mutant, dir string) (overlay string) {
	replace := map[string]string{}
	put := func(path, text string) {
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		tool.WriteFile(replace[path], text)
	}
	for _, p := range packages {
		here := slices.DeleteFunc(slices.Clone(drawn), func(m *mutant) bool { return m.pkg != p || m.alone })
		if len(here) == 0 {
			continue
		}
		if !p.compiles(here) {
			must.Fail("%s: the changes compile each, but not together", p.path)
		}
		put(filepath.Join(p.dir, "zz_mutants.go"), "package "+p.types.Name()+helpers)
		for _, f := range p.files {
			if slices.ContainsFunc(here, func(m *mutant) bool { return m.file == f }) {
				put(f.path, p.rewrite(f, here))
			}
		}
	}
	return writeOverlay(filepath.Join(dir, "all.json"), replace)
}

func writeOverlay(path string, replace map[string]string) string {
	tool.WriteFile(path, must.Have(json.Marshal(map[string]any{"Replace": replace})))
	return path
}
