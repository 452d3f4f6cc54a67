package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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

// writer makes an empty folder the current one, and returns a function that writes files in it.
func writer(t *testing.T) func(name, text string) {
	t.Chdir(t.TempDir())
	return func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSnippets(t *testing.T) {
	write := writer(t)
	write("README.md", readme)
	check := func() error { return run([]string{"snippets", "README.md"}) }

	if err := check(); err == nil || !strings.Contains(err.Error(), "README.md:8: no test file has these lines") {
		t.Errorf("without a test file: %v", err)
	}
	write("a/example_test.go", "func Example() {\n\tx := 1\n\n\tif x > 0 {\n\t\tuse(x)\n\t}\n}\n")
	if err := check(); err != nil {
		t.Errorf("with the lines in a test: %v", err)
	}
	write("a/example_test.go", "func Example() {\n\tx := 1\n\n\tif x > 1 {\n\t\tuse(x)\n\t}\n}\n")
	if check() == nil {
		t.Error("with other lines in the test: no error")
	}

	write("go.mod", "module m\n\ngo 1.26\n")
	write("README.md", "```go\npackage main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(1) }\n```\n")
	if err := check(); err != nil {
		t.Errorf("a whole program: %v", err)
	}
	write("README.md", "```go\npackage main\n\nfunc main() { fmt.Println(1) }\n```\n")
	if err := check(); err == nil || !strings.Contains(err.Error(), "undefined: fmt") {
		t.Errorf("a program that does not compile: %v", err)
	}
}

func TestLinks(t *testing.T) {
	write := writer(t)
	write("docs/guide.md", "# The guide\n\n## `Do` and *Run*: a [story](https://example.com)?\n\n## Twice\n\n## Twice\n\n<a id=\"here\"></a>\n\nA [self](#the-guide), [up](../README.md), [root](/README.md), [a folder](../docs).\n")
	write("a/a.go", "package a\n\n// See docs/guide.md#twice-1.\n")
	good := "# It\n\n[a](docs/guide.md) [b](docs/guide.md#do-and-run-a-story) [c](docs/guide.md#twice-1 \"a title\") [d](docs/guide.md#here)\n" +
		"[e](https://example.com/nothing#there) [f](mailto:nobody@example.com) ![g](<a/a.go>) [h](a/a.go#L3)\n" +
		"<img src=\"docs/guide.md\"> [i][j] `[not](a-link.md)`\n\n[j]: https://github.com/lullgo/lull/blob/main/docs/guide.md#twice\n\n```text\n[no](link.md)\n# No heading\n```\n"
	write("README.md", good)
	if err := run([]string{"links"}); err != nil {
		t.Errorf("all links hold: %v", err)
	}
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
		write("README.md", bad)
		if err := run([]string{"links"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", bad, err, want)
		}
	}
	write("README.md", good)
	write("a/a.go", "package a\n\n// See docs/guide.md#gone.\n")
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
	if got := commands([]string{page, other}); got != want {
		t.Errorf("it runs\n%s", got)
	}
}
