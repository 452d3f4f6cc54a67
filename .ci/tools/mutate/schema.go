package main

import (
	"cmp"
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
	"cmp"
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

type mutantNumber interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

func mutantLSS[T cmp.Ordered](id int, a, b T) bool { if mutant(id) { return a <= b }; return a < b }
func mutantLEQ[T cmp.Ordered](id int, a, b T) bool { if mutant(id) { return a < b }; return a <= b }
func mutantGTR[T cmp.Ordered](id int, a, b T) bool { if mutant(id) { return a >= b }; return a > b }
func mutantGEQ[T cmp.Ordered](id int, a, b T) bool { if mutant(id) { return a > b }; return a >= b }
func mutantADD[T mutantNumber](id int, a, b T) T { if mutant(id) { return a - b }; return a + b }
func mutantSUB[T mutantNumber](id int, a, b T) T { if mutant(id) { return a + b }; return a - b }
func mutantMUL[T mutantNumber](id int, a, b T) T { if mutant(id) { return a / b }; return a * b }
func mutantQUO[T mutantNumber](id int, a, b T) T { if mutant(id) { return a * b }; return a / b }
func mutantMax[T cmp.Ordered](id int, a, b T) T { if mutant(id) { return min(a, b) }; return max(a, b) }
func mutantMin[T cmp.Ordered](id int, a, b T) T { if mutant(id) { return max(a, b) }; return min(a, b) }
func mutantInc[T mutantNumber](id int, a T) T { if mutant(id) { return a + 1 }; return a }
`

var helperOf = map[token.Token]string{
	token.LSS: "mutantLSS", token.LEQ: "mutantLEQ", token.GTR: "mutantGTR", token.GEQ: "mutantGEQ",
	token.ADD: "mutantADD", token.SUB: "mutantSUB", token.MUL: "mutantMUL", token.QUO: "mutantQUO",
}

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
	for _, s := range w.sites { // what needs the operands before what turns the result around
		slices.SortFunc(s, func(a, b *mutant) int { return cmp.Compare(w.turns(a), w.turns(b)) })
	}
	return string(f.src[:w.at(f.ast.Pos())]) + w.plain(f.ast) + string(f.src[w.at(f.ast.End()):])
}

func (w *writer) at(p token.Pos) int { return w.fset.Position(p).Offset }

// turns is 1 for a change that only turns a condition around.
func (w *writer) turns(m *mutant) int {
	if m.kind == negate || m.kind == flip {
		return 1
	}
	b, ok := m.node.(*ast.BinaryExpr)
	if ok && m.kind == swap && (b.Op == token.EQL || b.Op == token.NEQ || b.Op == token.LSS && m.to == token.GEQ || b.Op == token.GTR && m.to == token.LEQ) {
		return 1
	}
	return 0
}

// text is the source of n with the changes in it.
func (w *writer) text(n ast.Node) string {
	s := w.plain(n)
	for _, m := range w.sites[n] {
		if w.turns(m) == 1 {
			s = fmt.Sprintf("((%s) != mutant(%d))", s, m.id)
			continue
		}
		switch n := n.(type) {
		case *ast.BinaryExpr:
			x, y := w.text(n.X), w.text(n.Y)
			switch n.Op {
			case token.LAND: // with the change: x || y
				s = fmt.Sprintf("((%s) && (mutant(%d) || (%s)) || mutant(%[2]d) && (%s))", x, m.id, y, y)
			case token.LOR: // with the change: x && y
				s = fmt.Sprintf("((%s) && (!mutant(%d) || (%s)) || !mutant(%[2]d) && (%s))", x, m.id, y, y)
			default:
				s = fmt.Sprintf("%s%s(%d, %s, %s)", helperOf[n.Op], w.instance(n), m.id, x, y)
			}
		case *ast.CallExpr:
			name := map[string]string{"max": "mutantMax", "min": "mutantMin"}[n.Fun.(*ast.Ident).Name]
			s = fmt.Sprintf("%s%s(%d, %s, %s)", name, w.instance(n), m.id, w.text(n.Args[0]), w.text(n.Args[1]))
		case *ast.BasicLit:
			s = fmt.Sprintf("mutantInc(%d, %s(%s))", m.id, w.typeOf(n), n.Value)
		case ast.Stmt:
			s = fmt.Sprintf("if !mutant(%d) { %s }", m.id, s)
			if !m.block {
				s = "func() { " + s + " }()"
			}
		}
	}
	return s
}

// plain is the source of n with the changes of what is inside of it.
func (w *writer) plain(n ast.Node) string {
	var s strings.Builder
	done := w.at(n.Pos())
	ast.Inspect(n, func(in ast.Node) bool {
		if in == nil || in == n || w.sites[in] == nil {
			return true
		}
		s.Write(w.file.src[done:w.at(in.Pos())])
		s.WriteString(w.text(in))
		done = w.at(in.End())
		return false
	})
	s.Write(w.file.src[done:w.at(n.End())])
	return s.String()
}

// instance is the type argument of a helper where its operands are constants without a type.
func (w *writer) instance(n ast.Expr) string {
	if w.info.Types[n].Value == nil {
		return "" // an operand that is no constant decides
	}
	return "[" + w.typeOf(n) + "]"
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
	return string(m.file.src[:m.from]) + m.by + string(m.file.src[m.end:])
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
