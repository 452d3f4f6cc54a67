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

func TestSnippets(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
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
