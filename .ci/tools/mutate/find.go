package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lullgo/lull/internal/must"
)

// pkg is a package whose code is changed.
type pkg struct {
	path, dir string
	files     []*file
	fset      *token.FileSet
	imports   types.Importer
	info      *types.Info
	types     *types.Package
}

// file is one of its files that are no tests.
type file struct {
	path string
	src  []byte
	ast  *ast.File
}

// mutant is one change of one place.
type mutant struct {
	id    int
	pkg   *pkg
	file  *file
	node  ast.Node // what changes
	with  string   // what takes its place; empty: nothing
	block bool     // node is a statement of a block, rather than of the head of an if or a for

	line     int
	fn, text string // the function and the line, to find the place again after lines were added above it
	was      string // what node is
	nth      int    // which one it is of those that look the same in fn, from 1

	alone bool // it is built by itself
}

func (m *mutant) name() string {
	if rel, err := filepath.Rel(must.Have(os.Getwd()), m.file.path); err == nil {
		return rel
	}
	return m.file.path
}

func (m *mutant) key() string {
	nth := ""
	if m.nth > 1 {
		nth = fmt.Sprintf(" (%d)", m.nth)
	}
	change := fmt.Sprintf("`%s` becomes `%s`", oneLine(m.was), oneLine(m.with))
	if m.with == "" {
		change = "dropped"
		if oneLine(m.was) != m.text {
			change = "`" + oneLine(m.was) + "` dropped"
		}
	}
	return fmt.Sprintf("%s %s: `%s`: %s%s", m.name(), m.fn, m.text, change, nth)
}

func (m *mutant) String() string {
	return strings.Replace(m.key(), m.name(), fmt.Sprintf("%s:%d", m.name(), m.line), 1)
}

// load reads the packages and their types.
func load(patterns []string) (packages []*pkg) {
	exports := map[string]string{}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	out := goCommand(append([]string{"list", "-deps", "-export", "-json=ImportPath,Export,Dir,GoFiles,DepOnly"}, patterns...)...)
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var l struct {
			ImportPath, Export, Dir string
			GoFiles                 []string
			DepOnly                 bool
		}
		must.Succeed(d.Decode(&l))
		exports[l.ImportPath] = l.Export
		if l.DepOnly {
			continue
		}
		p := &pkg{path: l.ImportPath, dir: l.Dir, fset: fset, imports: imports}
		for _, name := range l.GoFiles {
			f := &file{path: filepath.Join(l.Dir, name)}
			f.src = must.Have(os.ReadFile(f.path))
			f.ast = must.Have(parser.ParseFile(fset, f.path, f.src, parser.SkipObjectResolution))
			p.files = append(p.files, f)
		}
		packages = append(packages, p)
	}
	for _, p := range packages { // when all exports are known
		p.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
		p.types = must.Have(p.check(p.asts(), p.info))
	}
	return packages
}

func (p *pkg) asts() (all []*ast.File) {
	for _, f := range p.files {
		all = append(all, f.ast)
	}
	return all
}

func (p *pkg) check(files []*ast.File, info *types.Info) (*types.Package, error) {
	return (&types.Config{Importer: p.imports}).Check(p.path, p.fset, files, info)
}

var swaps = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS}, token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
}

// mutants lists all changes of p.
func (p *pkg) mutants() (all []*mutant) {
	for _, f := range p.files {
		seen := map[string]int{}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && fn.Name.Name != "String" {
				for _, m := range p.in(f, fn) {
					key := m.key()
					seen[key]++
					m.nth = seen[key]
					all = append(all, m)
				}
			}
		}
	}
	return all
}

// in lists the changes of one function.
func (p *pkg) in(f *file, fn *ast.FuncDecl) (all []*mutant) {
	lines := strings.Split(string(f.src), "\n")
	text := func(n ast.Node) string { return p.source(f, n.Pos(), n.End()) }
	put := func(n ast.Node, at token.Pos, with string) *mutant {
		line := p.fset.Position(at).Line
		m := &mutant{pkg: p, file: f, node: n, line: line, fn: fn.Name.Name, text: strings.TrimSpace(lines[line-1]), was: text(n), with: with}
		all = append(all, m)
		return m
	}
	blocks := map[ast.Stmt]bool{}
	inBlock := func(list []ast.Stmt) {
		for _, s := range list {
			blocks[s] = true
		}
	}
	dropped := func(s ast.Stmt) { put(s, s.Pos(), "").block = blocks[s] }
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.CONST
		case *ast.ArrayType:
			return false
		case *ast.BlockStmt:
			inBlock(n.List)
		case *ast.CaseClause:
			inBlock(n.Body)
		case *ast.CommClause:
			inBlock(n.Body)
		case *ast.BinaryExpr:
			for _, to := range swaps[n.Op] {
				put(n, n.OpPos, text(n.X)+" "+to.String()+" "+text(n.Y))
			}
		case *ast.IfStmt:
			put(n.Cond, n.Cond.Pos(), "!("+text(n.Cond)+")")
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt:
			dropped(n.(ast.Stmt))
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				dropped(n)
			}
		case *ast.BasicLit:
			if v, err := strconv.ParseInt(n.Value, 0, 64); n.Kind == token.INT && err == nil {
				put(n, n.Pos(), strconv.FormatInt(v+1, 10))
			}
		case *ast.ReturnStmt:
			for _, r := range n.Results {
				if id, ok := r.(*ast.Ident); ok && (id.Name == "true" || id.Name == "false") {
					put(id, id.Pos(), strconv.FormatBool(id.Name != "true"))
				}
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && len(n.Args) == 2 && (id.Name == "max" || id.Name == "min") {
				other := map[string]string{"max": "min", "min": "max"}[id.Name]
				put(n, id.Pos(), other+strings.TrimPrefix(text(n), id.Name))
			}
		}
		return true
	})
	return all
}

// source is the code of a file between two places.
func (p *pkg) source(f *file, from, to token.Pos) string {
	return string(f.src[p.fset.Position(from).Offset:p.fset.Position(to).Offset])
}

// oneLine shortens code to one line that can be printed.
func oneLine(code string) string {
	first, _, more := strings.Cut(code, "\n")
	if more {
		first += " ..."
	}
	return first
}
