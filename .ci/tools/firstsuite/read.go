package main

import (
	"cmp"
	"go/ast"
	"slices"
	"strings"

	"github.com/lullgo/lull/ci/internal/tool"
)

type reader struct {
	*source
	functions map[string]*function
	makers    map[string]bool
	into      *function
	params    []string          // of function types
	locals    map[string]string // keys of the functions in local variables
	bound     map[*ast.FuncLit]bool
	name      string
	reasons   map[kind]string // of exceptions for all of the function
	bubbles   bool            // it makes a bubble somewhere: what is in its tables runs there
}

func (p *source) read(functions map[string]*function, makers map[string]bool) {
	silent := tool.SilentExamples(p.ast)
	for _, decl := range p.ast.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Body == nil || strings.HasPrefix(d.Name.Name, "Benchmark") || slices.Contains(silent, d.Name.Name) {
				continue
			}
			key, receiver := p.pkg+"."+d.Name.Name, ""
			if d.Recv != nil {
				receiver = p.pkg + "." + tool.Receiver(d)
				key = receiver + ".()" + d.Name.Name
			}
			r := p.reader(functions, makers, key)
			if receiver != "" {
				r.into.method, r.into.receiver = method(p.pkg, d.Name.Name), receiver
			}
			r.params = funcParams(d.Type)
			r.reasons = p.exceptions[p.fset.Position(d.Body.Lbrace).Line]
			waits := false // only what runs in a bubble may call synctest.Wait
			for n := range ast.Preorder(d.Body) {
				if call, ok := n.(*ast.CallExpr); ok {
					r.bubbles = r.bubbles || r.isMaker(call)
					pkg, name := r.qualified(call.Fun)
					waits = waits || pkg == "testing/synctest" && name == "Wait"
				}
			}
			r.walk(d.Body, waits && !r.bubbles)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					r := p.reader(functions, makers, p.pkg+"."+t.Name.Name)
					r.into.isType = true
					r.walk(t.Type, false)
				}
				if v, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range v.Names {
						for _, value := range v.Values {
							p.reader(functions, makers, p.pkg+"."+name.Name).walk(value, false)
						}
					}
				}
			}
		}
	}
}

func method(pkg, name string) string { return pkg + ".()" + name }

func (p *source) reader(functions map[string]*function, makers map[string]bool, key string) *reader {
	f := functions[key]
	if f == nil {
		f = new(function)
		functions[key] = f
	}
	return &reader{source: p, functions: functions, makers: makers, into: f, locals: map[string]string{}, bound: map[*ast.FuncLit]bool{}, name: key}
}

func funcParams(t *ast.FuncType) []string {
	var names []string
	for _, field := range t.Params.List {
		if _, is := field.Type.(*ast.FuncType); is {
			for _, name := range field.Names {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

// isMaker reports whether the call runs its arguments in a bubble.
func (r *reader) isMaker(call *ast.CallExpr) bool {
	switch fun := call.Fun.(type) {
	case *ast.SelectorExpr:
		pkg, name := r.qualified(fun)
		if pkg == "" {
			return r.makers[method(r.pkg, name)]
		}
		return pkg == "testing/synctest" && (name == "Test" || name == "Run") || r.makers[pkg+"."+name]
	case *ast.Ident:
		return r.makers[r.pkg+"."+fun.Name] || r.makers[r.locals[fun.Name]]
	}
	return false
}

// walk notes what the node uses and calls.
func (r *reader) walk(n ast.Node, inBubble bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if id, ok := left.(*ast.Ident); !ok {
					r.walk(left, inBubble)
				} else if i < len(n.Rhs) {
					r.bind(id, n.Rhs[i], inBubble)
				}
			}
			for _, right := range n.Rhs {
				r.walk(right, inBubble)
			}
			return false
		case *ast.ValueSpec:
			for i, id := range n.Names {
				if i < len(n.Values) {
					r.bind(id, n.Values[i], inBubble)
				}
			}
		case *ast.CompositeLit:
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					e = kv.Value
				}
				r.walk(e, inBubble || r.bubbles)
			}
			if n.Type != nil {
				r.walk(n.Type, inBubble)
			}
			return false
		case *ast.CallExpr:
			maker := r.isMaker(n)
			r.note(n, inBubble)
			if _, k := r.use(n.Fun); k != clock || !r.isGenerous(n.Args) { // else it waits for something else
				r.walk(n.Fun, inBubble)
			}
			for _, arg := range n.Args {
				if maker && r.mentionsParam(arg) {
					r.into.makesBubble = true
				}
				r.walk(arg, inBubble || maker)
			}
			return false
		case *ast.FuncLit:
			return !r.bound[n]
		case *ast.SelectorExpr:
			r.note(n, inBubble)
			pkg, name := r.qualified(n)
			if pkg != "" {
				r.call(pkg+"."+name, inBubble)
				return false
			}
			r.call(method(r.pkg, name), inBubble)
			r.walk(n.X, inBubble)
			return false
		case *ast.Ident:
			if key := r.locals[n.Name]; key != "" {
				r.call(key, inBubble)
			} else {
				r.call(r.pkg+"."+n.Name, inBubble)
			}
		}
		return true
	})
}

// bind notes that a local variable is a function: it is used where the variable is mentioned.
func (r *reader) bind(id *ast.Ident, value ast.Expr, inBubble bool) {
	lit, ok := value.(*ast.FuncLit)
	if !ok {
		return
	}
	key := r.name + local + id.Name
	r.locals[id.Name], r.bound[lit] = key, true
	sub := r.reader(r.functions, r.makers, key)
	sub.locals, sub.bound, sub.bubbles, sub.name, sub.reasons = r.locals, r.bound, r.bubbles, r.name, r.reasons
	sub.params = funcParams(lit.Type)
	sub.walk(lit.Body, inBubble)
	if sub.into.makesBubble {
		r.makers[key] = true
	}
}

func (r *reader) note(n ast.Node, inBubble bool) {
	what, k := r.use(n)
	if k == "" || k == clock && (inBubble || !r.isTest) {
		return
	}
	pos := r.fset.Position(n.Pos())
	r.into.uses = append(r.into.uses, used{pos, what, k, cmp.Or(r.exceptions[pos.Line][k], r.reasons[k])})
}

func (r *reader) call(key string, inBubble bool) {
	r.into.calls = append(r.into.calls, called{key, inBubble})
}

// mentionsParam reports whether e has one of the parameters that are functions.
func (r *reader) mentionsParam(e ast.Node) bool {
	for n := range ast.Preorder(e) {
		if id, ok := n.(*ast.Ident); ok && slices.Contains(r.params, id.Name) {
			return true
		}
	}
	return false
}
