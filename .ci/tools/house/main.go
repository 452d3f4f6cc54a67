// Command house prints the figures of the house: how much there is of it. It is
// run from the root of the repository, by .ci/house.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/must"
)

func main() {
	listPairs := flag.Bool("pairs", false, "print each pair of places that share lines")
	flag.Parse()
	must.Main("house", 1, func() error { return run(os.Stdout, ".", *listPairs) })
}

func run(out io.Writer, root string, listPairs bool) (err error) {
	defer must.Catch(&err)
	h := read(root)
	fmt.Fprintf(out, "%7d  lines of Go outside of tests\n%7d  lines of Go in tests\n", h.lines(false), h.lines(true))
	fmt.Fprintf(out, "%7d  go.mod files\n%7d  folders at the root\n", h.modules, len(h.folders))
	fmt.Fprintf(out, "%7d  exported names of the library, with methods\n", h.exported())
	for _, tests := range []bool{false, true} {
		pairs := h.pairs(tests)
		fmt.Fprintf(out, "%7d  pairs of places that share six or more lines, %s\n", len(pairs), map[bool]string{false: "outside of tests", true: "in tests"}[tests])
		if listPairs {
			for _, p := range pairs {
				fmt.Fprintf(out, "         %s\n", p)
			}
		}
	}
	return printSeconds(out, os.Getenv("LULL_SECONDS"))
}

// printSeconds prints how long the suites took when they last ran, of the file that .ci/steps.sh writes. It has a line
// for each step: seconds, the time, and its name, with a tab between them. Of a suite that runs as several steps, one for each folder, it
// prints the sum.
func printSeconds(out io.Writer, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		fmt.Fprintln(out, "      -  seconds of the suites: none has run yet")
		return nil
	}
	var suites []string
	seconds, last := map[string]int{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		part := strings.Split(strings.TrimSpace(line), "\t")
		took := 0
		if len(part) == 3 {
			took, err = strconv.Atoi(part[0])
		}
		if err != nil || len(part) != 3 {
			return fmt.Errorf("%s: not seconds, a time and a name: %q", file, line)
		}
		suite, _, _ := strings.Cut(part[2], " ./")
		if !strings.HasPrefix(suite, "go test") {
			continue
		}
		if seconds[suite] += took; last[suite] == "" {
			suites = append(suites, suite)
		}
		last[suite] = max(last[suite], part[1])
	}
	for _, suite := range suites {
		fmt.Fprintf(out, "%7d  seconds of %s, on %s\n", seconds[suite], suite, last[suite])
	}
	return nil
}

type house struct {
	files   []file
	modules int
	folders map[string]bool // at the root, but those whose names begin with a point
}

type file struct {
	path string // from the root, with slashes
	text string
}

// read reads all of it, but what is only data (testdata) or not lull's (node_modules, and hidden folders other than .ci).
func read(root string) *house {
	h := &house{folders: map[string]bool{}}
	for name := range tool.Files(root, ".ci") {
		if top, _, below := strings.Cut(name, "/"); below && top[0] != '.' {
			h.folders[top] = true
		}
		switch {
		case path.Base(name) == "go.mod":
			h.modules++
		case path.Ext(name) == ".go":
			h.files = append(h.files, file{name, tool.ReadFile(filepath.Join(root, name))})
		}
	}
	return h
}

func (h *house) lines(tests bool) (n int) {
	for _, f := range h.in(tests) {
		n += strings.Count(f.text, "\n")
	}
	return n
}

// in returns the files of tests, or the others.
func (h *house) in(tests bool) []file {
	return slices.DeleteFunc(slices.Clone(h.files), func(f file) bool { return strings.HasSuffix(f.path, "_test.go") != tests })
}

// notLibrary are the folders whose packages users do not import.
var notLibrary = []string{".ci", "lab", "cmd", "docs"}

// exported counts the exported names of packages that users can import: those at the top of a file, and methods of exported types.
func (h *house) exported() int {
	names := map[string]bool{}
	for _, f := range h.in(false) {
		dir := path.Dir(f.path)
		if top, _, _ := strings.Cut(dir, "/"); slices.Contains(notLibrary, top) || strings.Contains("/"+dir+"/", "/internal/") {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), f.path, f.text, parser.SkipObjectResolution)
		if err != nil || syntax.Name.Name == "main" {
			continue
		}
		for _, d := range syntax.Decls {
			of := ""
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				if of = tool.Receiver(f); !ast.IsExported(of) {
					continue
				}
			}
			for _, name := range tool.Declared(d) {
				if name.IsExported() {
					names[dir+" "+of+"."+name.Name] = true
				}
			}
		}
	}
	return len(names)
}
