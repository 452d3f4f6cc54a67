package main

import (
	"go/ast"
	"go/constant"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind is what a use depends on; it is also the word that an exception begins with.
type kind string

const (
	clock   kind = "clock"
	outside kind = "outside" // of the process
)

// forbidden are the functions and types by package.
var forbidden = map[string]map[string]kind{
	"time": {"Sleep": clock, "After": clock, "NewTimer": clock, "NewTicker": clock, "Tick": clock, "AfterFunc": clock,
		"Since": clock, "Until": clock},
	"context": {"WithTimeout": clock, "WithDeadline": clock, "WithTimeoutCause": clock, "WithDeadlineCause": clock},
	"net": {"Listen": outside, "ListenPacket": outside, "ListenTCP": outside, "ListenUDP": outside, "ListenUnix": outside,
		"ListenConfig": outside, "Dial": outside, "DialTimeout": outside, "DialTCP": outside, "DialUDP": outside, "DialUnix": outside,
		"Dialer": outside},
	"crypto/tls":        {"Listen": outside, "Dial": outside, "DialWithDialer": outside},
	"net/http":          {"Get": outside, "Head": outside, "Post": outside, "PostForm": outside, "ListenAndServe": outside, "ListenAndServeTLS": outside},
	"net/http/httptest": {"NewServer": outside, "NewTLSServer": outside, "NewUnstartedServer": outside},
	"os/exec":           {"Command": outside, "CommandContext": outside},
	"os":                {"StartProcess": outside, "FindProcess": outside},
	"syscall":           {"Kill": outside, "Socket": outside},
	"testing":           {"Benchmark": clock},
}

// comparing are the methods of time.Time whose result with time.Now depends on the clock.
var comparing = []string{"Sub", "Before", "After", "Compare", "Equal"}

// generous is how long a test may wait for something else than the clock.
const generous = time.Minute

var units = map[string]time.Duration{"Nanosecond": 1, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
	"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}

// isGenerous reports whether one of the arguments is a constant of at least a minute.
func (p *source) isGenerous(args []ast.Expr) bool {
	return slices.ContainsFunc(args, func(arg ast.Expr) bool {
		d, ok := constant.Int64Val(constant.ToInt(p.duration(arg)))
		return ok && time.Duration(d) >= generous
	})
}

// duration returns the value of a constant expression, or an unknown one.
func (p *source) duration(e ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.ParenExpr:
		return p.duration(e.X)
	case *ast.SelectorExpr:
		if path, name := p.qualified(e); path == "time" {
			if d, is := units[name]; is {
				return constant.MakeInt64(int64(d))
			}
		}
	case *ast.BinaryExpr:
		x, y := p.duration(e.X), p.duration(e.Y)
		if x.Kind() != constant.Unknown && y.Kind() != constant.Unknown && (e.Op == token.MUL || e.Op == token.ADD || e.Op == token.SUB) {
			return constant.BinaryOp(x, e.Op, y)
		}
	}
	return constant.MakeUnknown()
}

// use returns what the call or the selector at n depends on, or "".
func (p *source) use(n ast.Node) (what string, k kind) {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		path, name := p.qualified(n)
		if k := forbidden[path][name]; k != "" {
			return path + "." + name, k
		}
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return "", ""
		}
		path, name := p.qualified(sel)
		if path == "os" && (name == "Getenv" || name == "LookupEnv") && len(n.Args) == 1 {
			if lit, ok := n.Args[0].(*ast.BasicLit); ok && lit.Value == strconv.Quote("CI") {
				return "os." + name + `("CI")`, outside
			}
		}
		for _, method := range comparing {
			if path == "" && sel.Sel.Name == method && (p.isNow(sel.X) || len(n.Args) == 1 && p.isNow(n.Args[0])) {
				return "time.Now()." + method, clock
			}
		}
	}
	return "", ""
}

func (p *source) isNow(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	path, name := p.qualified(call.Fun)
	return path == "time" && name == "Now"
}

func exceptionsOf(fset *token.FileSet, f *ast.File) map[int]map[kind]string {
	byLine := map[int]map[kind]string{}
	for _, group := range f.Comments {
		for _, c := range group.List {
			for _, k := range []kind{clock, outside} {
				if reason, ok := strings.CutPrefix(c.Text, "//"+string(k)+":"); ok && strings.TrimSpace(reason) != "" {
					line := fset.Position(c.Pos()).Line
					if byLine[line] == nil {
						byLine[line] = map[kind]string{}
					}
					byLine[line][k] = strings.TrimSpace(reason)
				}
			}
		}
	}
	return byLine
}
