package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

const readme = "# lull\n\n```sh\ngo test work\n```\n\n```go\nx := 1\n\nif x > 0 {\n\tuse(x)\n}\n```\n\n```text\n```\n\n<!-- not run: it ends the shell -->\n\n```sh\nexit\n```\n"

func TestBlocks(t *testing.T) {
	sh, golang := blocks(readme, "sh"), blocks(readme, "go")
	if len(sh) != 2 || sh[0] != (block{line: 4, text: "go test work\n"}) || sh[1] != (block{line: 21, text: "exit\n", skipped: true}) {
		t.Errorf("sh blocks: %+v", sh)
	}
	if len(golang) != 1 || golang[0].line != 8 || !strings.HasPrefix(golang[0].text, "x := 1\n") {
		t.Errorf("go blocks: %+v", golang)
	}
}

// A block is run if a test reaches its end, whoever calls the function that it stands in.
func TestRun(t *testing.T) {
	const module, page = "module m\n\ngo 1.26\n", "```go\nx, err := half(n)\nif err != nil {\n\treturn err\n}\nuse(x)\n```\n"
	const helpers = "package m\n\nimport \"errors\"\n\nfunc half(n int) (int, error) {\n\tif n%2 > 0 {\n\t\treturn 0, errors.New(\"odd\")\n\t}\n\treturn n / 2, nil\n}\n\nfunc use(int) {}\n"
	const shown = "func shown(n int) error {\n\tx, err := half(n)\n\tif err != nil {\n\t\treturn err\n\t}\n\tuse(x)\n\treturn nil\n}\n"
	const comment = "// Package m halves.\n//\n//\tx ≤ n / 2\n//\n// It is used so:\n//\n//\tx, err := half(4)\n//\t...\n//\tuse(x) // as you like\npackage m\n"
	for name, c := range map[string]struct{ page, doc, test, says string }{
		"in no file":                {page, "", "", "README.md:2: no test file has these lines"},
		"with another line":         {page, "", strings.Replace(shown, "use(x)", "use(x + 1)", 1), "README.md:2: no test file has these lines"},
		"in what nobody calls":      {page, "", shown + "var _ = shown", "README.md:2: no test has run this to its end"},
		"in a test":                 {page, "", shown + "func TestIt(t *testing.T) { shown(2) }", ""},
		"by way of a table":         {page, "", shown + "var all = []func(int) error{shown}\nfunc TestIt(t *testing.T) { all[0](2) }", ""},
		"in a closure":              {page, "", "func TestIt(t *testing.T) {\n\tf := func(n int) error {\n\t\tx, err := half(n)\n\t\tif err != nil {\n\t\t\treturn err\n\t\t}\n\t\tuse(x)\n\t\treturn nil\n\t}\n\tf(2)\n}", ""},
		"in a closure, not called":  {page, "", "func TestIt(t *testing.T) {\n\t_ = func(n int) error {\n\t\tx, err := half(n)\n\t\tif err != nil {\n\t\t\treturn err\n\t\t}\n\t\tuse(x)\n\t\treturn nil\n\t}\n}", "no test has run this to its end"},
		"not to its end":            {page, "", shown + "func TestIt(t *testing.T) { shown(3) }", "no test has run this to its end"},
		"in a test that is skipped": {page, "", shown + "func TestIt(t *testing.T) { t.Skip(); shown(2) }", "no test has run this to its end"},
		"that ends with an error":   {"```go\nx, err := half(3)\n```\n", "", "func TestIt(t *testing.T) {\n\tx, err := half(3)\n\t_, _ = x, err\n}", "this ended with the error odd"},
		"a comment":                 {"", comment, "", "the package comment in doc.go: no test file has these lines"},
		"a comment, run":            {"", comment, "func TestIt(t *testing.T) {\n\tx, err := half(4)\n\tif err != nil {\n\t\tt.Fatal(err)\n\t}\n\tuse(x) // as you like\n}", ""},
		"a comment, in its package": {"", strings.ReplaceAll(comment, "half(4)", "m.half(4)"), "func TestIt(t *testing.T) {\n\tx, err := half(4)\n\tif err != nil {\n\t\tt.Fatal(err)\n\t}\n\tuse(x) // as you like\n}", ""},
		"an example":                {"", "", "func ExampleIt() {}\n", "go test does not run ExampleIt"},
		"an example, run":           {page, "", shown + "func Example() {\n\tshown(2)\n\t// Output:\n}\n", ""},
		"a function":                {"```go\nfunc double(n int) int {\n\treturn 2 * n\n}\n```\n", "", "func double(n int) int {\n\treturn 2 * n\n}\nfunc TestIt(t *testing.T) { double(2) }", ""},
		"a function, not called":    {"```go\nfunc double(n int) int {\n\treturn 2 * n\n}\n```\n", "", "func double(n int) int {\n\treturn 2 * n\n}\n", "no test has run this to its end"},
		"a program":                 {"```go\npackage main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(1) }\n```\n", "", "", ""},
		"a program with a mistake":  {"```go\npackage main\n\nfunc main() { fmt.Println(1) }\n```\n", "", "", "undefined: fmt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			tool.WriteFile("go.mod", module)
			tool.WriteFile("m.go", helpers)
			tool.WriteFile("README.md", c.page)
			if c.doc != "" {
				tool.WriteFile("doc.go", c.doc)
			}
			if c.test != "" {
				tool.WriteFile("m_test.go", "package m\n\nimport \"testing\"\n\nfunc TestOther(*testing.T) {}\n\n"+c.test)
			}
			err := run([]string{"instrument", "blocks", "README.md"})
			if err == nil {
				testWithOverlay()
				err = run([]string{"ran", "blocks"})
			}
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

// testWithOverlay runs the tests of the module in the working directory, which was instrumented.
func testWithOverlay(flags ...string) {
	must.Have(tool.Output(exec.Command("go", append([]string{"test", "-overlay=blocks/overlay.json"}, flags...)...)))
}

// Blocks are reported by any runs of tests that have the overlay, such as those of two suites.
func TestInstrument(t *testing.T) {
	t.Chdir(t.TempDir())
	tool.WriteFile("go.mod", "module m\n\ngo 1.26\n")
	tool.WriteFile("m.go", "package m\n")
	tool.WriteFile("a_test.go", "package m\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Log(1) }\n")
	tool.WriteFile("b_test.go", "//go:build servers\n\npackage m\n\nimport \"testing\"\n\nfunc TestB(t *testing.T) {\n\tt.Log(2)\n}\n")
	tool.WriteFile("README.md", "```go\nt.Log(1)\n```\n\n```go\nt.Log(2)\n```\n")
	must.Succeed(run([]string{"instrument", "blocks", "README.md"}))
	for _, suite := range []struct{ tag, says string }{{"", "README.md:6: no test has run this to its end"}, {"servers", ""}} {
		testWithOverlay("-tags=" + suite.tag)
		err := run([]string{"ran", "blocks"})
		if suite.says == "" && err != nil || suite.says != "" && (err == nil || !strings.HasPrefix(err.Error(), suite.says)) {
			t.Errorf("with the tag %q: %v, want %q", suite.tag, err, suite.says)
		}
	}
}

// What is a formula, a table or a command in a comment is no Go code.
func TestIsGo(t *testing.T) {
	for text, want := range map[string]bool{
		"x := 1": true, "err = f()": true, "pkg.Do(x)": true, "pkg.Config{A: 1}   // so": true, "func f() {\n\tg(1, // one\n}": true,
		"f(pkg.Config{\n\tA:   1,\n\tLong: 2,\n})\n...\n": true, "func f() {\n\tx   := 1\n}\n": true,
		"L = λ × W": false, "go run ./lab/bench": false, "retries ≤ ratio × calls": false, "a.b[0].c is \"5xx\": d": false,
		"lull.Do   NewDependency(t.Options()...)   ctx := x": false, "SQLState() string   pgx, lib/pq": false,
	} {
		check.Equal(t, isGo(text), want, "%q", text)
	}
}

func TestLinks(t *testing.T) {
	t.Chdir(t.TempDir())
	tool.WriteFile("docs/guide.md", "# The guide\n\n## `Do` and *Run*: a [story](https://example.com)?\n\n## Twice\n\n## Twice\n\n<a id=\"here\"></a>\n\nA [self](#the-guide), [up](../README.md), [root](/README.md), [a folder](../docs).\n")
	tool.WriteFile("a/a.go", "package a\n\n// See docs/guide.md#twice-1.\n")
	good := "# It\n\n[a](docs/guide.md) [b](docs/guide.md#do-and-run-a-story) [c](docs/guide.md#twice-1 \"a title\") [d](docs/guide.md#here)\n" +
		"[e](https://example.com/nothing#there) [f](mailto:nobody@example.com) ![g](<a/a.go>) [h](a/a.go#L3)\n" +
		"<img src=\"docs/guide.md\"> [i][j] `[not](a-link.md)`\n\n[j]: https://github.com/lullgo/lull/blob/main/docs/guide.md#twice\n\n```text\n[no](link.md)\n# No heading\n```\n"
	tool.WriteFile("README.md", good)
	check.Equal(t, run([]string{"links"}), nil, "all links hold")
	for bad, want := range map[string]string{
		"[a](docs/gide.md)":                                     "README.md:1: docs/gide.md: there is no such file",
		"\n[a](docs/guide.md#thrice)":                           "README.md:2: docs/guide.md#thrice: docs/guide.md has no such heading",
		"[a](#no-heading)\n```\n# No heading\n```":              "README.md:1: #no-heading: README.md has no such heading",
		"[a](docs/guide.md#twice-2)":                            "has no such heading",
		"[a](https://github.com/lullgo/lull/blob/main/gone.go)": "there is no such file",
		"![a](docs/gone.png)":                                   "there is no such file",
		"<source srcset=\"gone.svg\">":                          "there is no such file",
		"[a]: gone.md":                                          "there is no such file",
	} {
		tool.WriteFile("README.md", bad)
		if err := run([]string{"links"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", bad, err, want)
		}
	}
	tool.WriteFile("README.md", good)
	tool.WriteFile("a/a.go", "package a\n\n// See docs/guide.md#gone.\n")
	if err := run([]string{"links"}); err == nil || !strings.Contains(err.Error(), "a/a.go: docs/guide.md#gone: docs/guide.md has no such heading") {
		t.Errorf("a comment: %v", err)
	}
}

func TestCommands(t *testing.T) {
	const page = "```sh\n" + `go run ./a
go test \
go run ./a
cd b
for i in 1 2; do
  go run ./c
done
cd b
` + "```\n<!-- not run: long -->\n```sh\ngo run ./d\n```\n"
	const other = "```sh\ngo run ./a\ngo run ./d\nfor i in 3; do\n  go run ./c\ndone\n```\n"
	const want = `go run ./a
go test \
go run ./a
cd b
for i in 1 2; do
  go run ./c
done
cd b
go run ./d
for i in 3; do
  go run ./c
done
`
	check.Equal(t, commands([]string{page, other}), want, "it runs")
}

// A link of a doc comment to a name that does not exist is found: of the package, of a type, of another package and of the standard library.
func TestNames(t *testing.T) {
	t.Chdir(t.TempDir())
	tool.WriteFile("a/a.go", `// Package a has [T], [T.Method], [T.Field], [Missing], [T.Gone], [context.Context], [context.Nothing] and a list [Floor, c].
//
//	[Code] is no link
package a

import "context"

// A T is made of [*T] and [NotHere].
type T struct{ Field context.Context }

func (t *T) Method() {}
`)
	err := checkNames()
	for _, want := range []string{"[Missing]", "[T.Gone]", "[context.Nothing]", "[NotHere]"} {
		if err == nil || !strings.Contains(err.Error(), want+": there is no such name") {
			t.Errorf("%s is not found: %v", want, err)
		}
	}
	if err != nil && strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("want four mistakes: %v", err)
	}
}

// The texts of defaults are read as numbers.
func TestAmounts(t *testing.T) {
	for text, want := range map[string]float64{"3": 3, "0.95": 0.95, "100,000": 1e5, "30 s": 30e9, "10s": 10e9, "1m": 60e9, "5 minutes": 300e9, "64 MiB": 64 << 20, "2.": 2} {
		check.Equal(t, amountOf(text), want, "%q", text)
	}
	for text, want := range map[string]string{"It is off. Zero: 3. Negative: off.": "3", "Zero means 10 s, or more": "10 s", "Zero: 3 / (1-Percentile)": "", "Zero: 1/MinRate": ""} {
		if got := zero.FindStringSubmatch(text); (got == nil) != (want == "") || got != nil && got[1] != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A number in a comment or an error that is not the default is found: of a constant, and of cmp.Or.
func TestDefaults(t *testing.T) {
	t.Chdir(t.TempDir())
	tool.WriteFile("go.mod", "module a\n")
	tool.WriteFile("a.go", `package a

import "cmp"

const DefaultWindow = 10

type Config struct {
	Window int // of no interest here
	// Stock is what is there. Zero: 3.
	Stock int
	// Right is as it is said. Zero: 2.
	Right int
}

func check(ok bool, field string, value any, allowed string) {}

func (c Config) values() (int, int) {
	check(true, "Window", c.Window, "1 to 100, or 0 for the default of 20")
	return cmp.Or(c.Stock, 4), cmp.Or(c.Right, 2)
}
`)
	err := checkDefaults()
	for _, want := range []string{"the default of Stock is said to be 3", "the default of Window is said to be 20"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "Right") {
		t.Error(err)
	}
}
