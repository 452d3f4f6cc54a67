package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/tools/go/packages"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/must"
)

var (
	zero      = regexp.MustCompile(`Zero(?:: | means )([\d][\d.,]*(?: ?(?:ns|µs|ms|s|m|h|minutes?|days?|KiB|MiB|GiB))?)(?:[.,;:)]|\s+[a-z]|\s*$)`)
	defaultOf = regexp.MustCompile(`default of ([\d][\d.,]*(?: ?(?:ns|µs|ms|s|m|h|minutes?|days?|KiB|MiB|GiB))?)`)
	amount    = regexp.MustCompile(`^([\d.]+) ?(\w*)`)
)

var units = map[string]float64{"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9,
	"m": 6e10, "minute": 6e10, "minutes": 6e10, "h": 36e11, "day": 24 * 36e11, "days": 24 * 36e11}

// amountOf returns the number that a text has, durations in nanoseconds.
func amountOf(text string) float64 {
	m := amount.FindStringSubmatch(strings.TrimRight(strings.ReplaceAll(text, ",", ""), "."))
	return must.Have(strconv.ParseFloat(strings.TrimRight(m[1], "."), 64)) * units[m[2]]
}

// foldersWithDefaults are the folders of the files that may give a default.
func foldersWithDefaults() map[string]bool {
	folders := map[string]bool{}
	for file := range tool.Files(".") {
		if strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
			if text := tool.ReadFile(file); zero.MatchString(text) || defaultOf.MatchString(text) {
				folders["./"+path.Dir(file)] = true
			}
		}
	}
	return folders
}

// defaultsOf returns the defaults of a package by the name of the field, in lower case: the values of constants named after it, and those of
// cmp.Or(c.Field, value).
func defaultsOf(p *packages.Package) map[string][]constant.Value {
	values := map[string][]constant.Value{}
	for name, object := range p.TypesInfo.Defs {
		if c, is := object.(*types.Const); is {
			if field, of := strings.CutPrefix(strings.ToLower(name.Name), "default"); of {
				values[field] = append(values[field], c.Val())
			}
		}
	}
	for _, f := range p.Syntax {
		ast.Inspect(f, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || len(call.Args) != 2 || types.ExprString(call.Fun) != "cmp.Or" {
				return true
			}
			if field, is := call.Args[0].(*ast.SelectorExpr); is {
				if v := p.TypesInfo.Types[call.Args[1]].Value; v != nil {
					field := strings.ToLower(field.Sel.Name)
					values[field] = append(values[field], v)
				}
			}
			return true
		})
	}
	return values
}

// checkDefaults checks the numbers that the comments of fields and the texts of errors give for defaults ("Zero: 30 s", "the default of 30s").
func checkDefaults() error {
	const parts = packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports
	all := must.Have(packages.Load(&packages.Config{Mode: parts}, slices.Sorted(maps.Keys(foldersWithDefaults()))...))
	checked, wrong := 0, []error(nil)
	for _, p := range all {
		values := defaultsOf(p)
		claim := func(at token.Pos, field, text string) {
			known := values[strings.ToLower(field)]
			if len(known) == 0 {
				return
			}
			checked++
			var shown []string
			for _, v := range known {
				number, _ := constant.Float64Val(constant.ToFloat(v))
				if number == amountOf(text) {
					return
				}
				shown = append(shown, v.String())
				if number >= 1000 {
					shown[len(shown)-1] += " (" + time.Duration(number).String() + ")"
				}
			}
			wrong = append(wrong, fmt.Errorf("%s: the default of %s is said to be %s, and is %s", p.Fset.Position(at), field, text, strings.Join(shown, " or ")))
		}
		for _, f := range p.Syntax {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Field:
					if m := zero.FindStringSubmatch(strings.ReplaceAll(n.Doc.Text(), "\n", " ")); m != nil && len(n.Names) == 1 {
						claim(n.Pos(), n.Names[0].Name, m[1])
					}
				case *ast.CallExpr: // Check(ok, "Window", c.Window, "a positive duration, or 0 for the default of 30s")
					if len(n.Args) < 4 {
						return true
					}
					field, text := p.TypesInfo.Types[n.Args[1]].Value, p.TypesInfo.Types[n.Args[3]].Value
					if field == nil || text == nil || field.Kind() != constant.String || text.Kind() != constant.String {
						return true
					}
					if m := defaultOf.FindStringSubmatch(constant.StringVal(text)); m != nil {
						claim(n.Pos(), constant.StringVal(field), m[1])
					}
				}
				return true
			})
		}
	}
	if checked == 0 {
		return errors.New("no default is given anywhere")
	}
	if len(wrong) == 0 {
		fmt.Printf("%d numbers of defaults in comments and errors are those of the code\n", checked)
	}
	return errors.Join(wrong...)
}
