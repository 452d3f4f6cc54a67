// Command house prints the figures of the house: how much there is of it, and what stands where it should not. It is
// run from the root of the repository, by .ci/house.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	var show shown
	flag.BoolVar(&show.arrows, "arrows", false, "print each import that goes up")
	flag.BoolVar(&show.pairs, "pairs", false, "print each pair of places that share lines")
	flag.Parse()
	if err := run(os.Stdout, ".", show); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

// shown is what is printed beside the figures.
type shown struct{ arrows, pairs bool }

func run(out io.Writer, root string, show shown) error {
	h, err := read(root)
	if err != nil {
		return err
	}
	code, tests := h.lines()
	fmt.Fprintf(out, "%7d  lines of Go outside of tests\n%7d  lines of Go in tests\n", code, tests)
	fmt.Fprintf(out, "%7d  go.mod files\n%7d  folders at the root\n", h.modules, len(h.folders))
	fmt.Fprintf(out, "%7d  exported names of the library, with methods\n", h.exported())
	arrows := h.arrows()
	through := 0
	for _, a := range arrows {
		if a.wall {
			through++
		}
	}
	fmt.Fprintf(out, "%7d  imports that go up, %d of them from the library to the program or the lab\n", len(arrows), through)
	if show.arrows {
		for _, a := range arrows {
			fmt.Fprintf(out, "         %s\n", a)
		}
	}
	for _, tests := range []bool{false, true} {
		pairs := h.pairs(tests)
		fmt.Fprintf(out, "%7d  pairs of places that share six or more lines, %s\n", len(pairs), map[bool]string{false: "outside of tests", true: "in tests"}[tests])
		if show.pairs {
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

// A house is what stands in the repository.
type house struct {
	module  string // the path of the root's
	files   []file
	modules int
	folders []string // at the root, but those whose names begin with a point
	floors  [][]string
}

// A file is one of Go.
type file struct {
	path string // from the root, with slashes
	text []byte
}

func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// read reads all of it, but what is only data (testdata) or not lull's (node_modules, and hidden folders other than .ci).
func read(root string) (*house, error) {
	h := new(house)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(string(mod), "\n")
	h.module = strings.TrimPrefix(first, "module ")
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		base := path.Base(relative)
		switch {
		case relative == ".":
		case entry.IsDir() && (base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") && base != ".ci"):
			return filepath.SkipDir
		case entry.IsDir() && !strings.ContainsAny(relative, "./"):
			h.folders = append(h.folders, relative)
		case base == "go.mod":
			h.modules++
		case path.Ext(base) == ".go":
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			h.files = append(h.files, file{relative, text})
		}
		return nil
	})
	h.floors = h.readFloors()
	return h, err
}

func (h *house) lines() (code, tests int) {
	for _, f := range h.files {
		n := bytes.Count(f.text, []byte("\n"))
		if f.isTest() {
			tests += n
		} else {
			code += n
		}
	}
	return code, tests
}

// in returns the files of tests, or the others.
func (h *house) in(tests bool) []file {
	return slices.DeleteFunc(slices.Clone(h.files), func(f file) bool { return f.isTest() != tests })
}
