package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// build makes a repository of files in a folder.
func build(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		tool.WriteFile(filepath.Join(root, name), text)
	}
	return root
}

func TestFigures(t *testing.T) {
	root := build(t, map[string]string{
		"go.mod":                    "module example.com/m\n\ngo 1.26\n",
		"lab/go.mod":                "module example.com/m/lab\n",
		"m.go":                      "package m\n\nimport (\n\t\"fmt\"\n\n\t\"example.com/m/engine\"\n)\n\nvar A, b = 1, 2\n\ntype T[K any] struct{ Field K }\n\nfunc (*T[K]) M() { fmt.Println(engine.E) }\n\nfunc (T[K]) m() {}\n\nfunc F() {}\n",
		"m_test.go":                 "package m\n\nimport _ \"example.com/m/lab\"\n",
		"engine/e.go":               "package engine\n\nimport _ \"example.com/m\"\n\nconst E = 1\n",
		"engine/f.go":               "package engine\n\nimport (\n\t_ \"example.com/m\"\n\t_ \"example.com/m/breaker\"\n)\n",
		"lullhttp/internal/x/x.go":  "package x\n\nimport _ \"example.com/m/lab/deep\"\n\nvar X int\n",
		"lab/s.go":                  "package lab\n\nimport (\n\t_ \"example.com/m\"\n\t_ \"example.com/m/cmd/tool\"\n)\n\nvar S int\n",
		"internal/a/a.go":           "package a\n\nimport _ \"example.com/mother\"\n",
		".ci/tools/t.go":            "package main\n",
		".hidden/h.go":              "package h\n",
		"lab/testdata/d.go":         "package d\n",
		"lab/node_modules/a/go.mod": "module a\n",
		"seconds":                   "3\t2026-11-28 20:00\tgofmt\n118\t2026-11-28 20:10\tgo test work\n7\t2026-11-27 03:00\tgo test -tags lab ./lab/sim\n8\t2026-11-27 03:01\tgo test -tags lab ./lab/sim/shipped\n",
	})
	t.Setenv("LULL_SECONDS", filepath.Join(root, "seconds"))
	var out strings.Builder
	must.Succeed(run(&out, root, false))
	const want = `     45  lines of Go outside of tests
      3  lines of Go in tests
      2  go.mod files
      4  folders at the root
      5  exported names of the library, with methods
      0  pairs of places that share six or more lines, outside of tests
      0  pairs of places that share six or more lines, in tests
    118  seconds of go test work, on 2026-11-28 20:10
     15  seconds of go test -tags lab, on 2026-11-27 03:01
`
	check.Equal(t, out.String(), want, "out.String()")
}

func TestPairs(t *testing.T) {
	const a = "func f(x int) (int, error) {\n\ty, err := g(x)\n\tif err != nil {\n\t\treturn 0, err\n\t}\n\ty += 2\n\treturn y * x, nil\n}\n"
	other := func(old ...string) string { return "package q\n\n" + strings.NewReplacer(old...).Replace(a) }
	for name, c := range map[string]struct{ first, second, want string }{
		"the same":                      {a, other(), "  6 a.go:3 b.go:3"},
		"other names":                   {a, other("y", "zed", "err", "e", "x", "hello", "f(", "method("), "  6 a.go:3 b.go:3"},
		"other literals":                {a, other("2", "0x77", "0", "50"), "  6 a.go:3 b.go:3"},
		"other names, mixed up":         {a, other("y * x", "x * y"), ""},
		"another operator":              {a, other("+=", "-="), ""},
		"comments and empty lines":      {a, other("\ty +=", "\t// Two.\n\n\ty +=", "nil {", "nil { // bad"), "  6 a.go:3 b.go:3"},
		"five lines":                    {a, other("func f(x int) (int, error) {", "func f() {"), ""},
		"longer":                        {a + "\n// k is long.\nfunc k(int, string) {}\n\nvar c = 5\n", other() + "func h(int, bool) {}\nvar x, y = 1, 2\n", "  7 a.go:3 b.go:3"},
		"a table":                       {"var t = []int{\n\ta(1),\n\tb(2),\n\tc(3),\n\td(4),\n\te(5),\n\tf(6),\n\tg(7),\n}\n", "package q\n\nvar t = []string{\n\ta(2),\n\tb(3),\n\tc(4),\n\td(5),\n\te(6),\n\tf(7),\n\tg(8),\n}\n", ""},
		"imports and constants":         {"", "package q\n\nimport (\n\t\"a\"\n\tb \"c\"\n\t. \"d\"\n)\n\nconst (\n\tA T = iota\n\tB\n\tC, D = 1 + 2, 3\n\tE = len(\"\")\n)\n", ""},
		"constants, and then the same":  {"const (\n\tA T = iota\n)\n" + a, "package q\n\nconst b = 5\n" + a, "  6 a.go:6 b.go:4"},
		"twice in one file":             {a + strings.Replace(a, "f(", "k(", 1), "package q\n", "  6 a.go:3 a.go:11"},
		"in three places: three pairs":  {a + strings.Replace(a, "f(", "k(", 1), other(), "  6 a.go:11 b.go:3\n  6 a.go:3 a.go:11\n  6 a.go:3 b.go:3"},
		"over itself":                   {"func f() {\n" + strings.Repeat("\ta()\n\tb(1)\n\tc(1, 2)\n\td := 1\n", 2) + "}\n", "package q\n", ""},
		"a test and what it tests: not": {a, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"go.mod": "module m\n", "a.go": "package p\n\n" + c.first, "b.go": c.second, "a_test.go": "package p\n\n" + a}
			if c.second == "" {
				delete(files, "b.go")
			}
			h := read(build(t, files))
			var got []string
			for _, p := range h.pairs(false) {
				got = append(got, fmt.Sprint(p))
			}
			check.Equal(t, strings.Join(got, "\n"), c.want, "strings.Join(got, \"\\n\")")
			check.Equal(t, len(h.pairs(true)), 0, "pairs in tests")
		})
	}
}
