// Command firstsuite checks that the first suite, which is go test without a build tag, is right by
// construction: that a busy machine can make it slow, and never red. So no test in it may use what
// depends on the machine:
//
//   - the real clock: time.Sleep and its kin, outside of a bubble of package testing/synctest. A bound
//     of a minute or more is allowed, as the end of a wait for something else;
//   - anything outside of the process: sockets, child processes, the variable CI.
//
// It reads source without types. A function that uses something of this may be called by tests only from where
// that is allowed; firstsuite follows calls by name, within a package and into packages that are made for tests
// (those that import testing); a method once the test has come to its type. Of the latter it looks only for what is outside of the process: their time is that of
// their caller. It cannot see a timer that the tested code itself has started.
//
// An exception stands on the line that it is for, with its reason: //clock: reason, or //outside: reason. On the line on
// which the body of a function begins it is for all of that.
//
//	go list -e -json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles work | firstsuite
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lullgo/lull/internal/must"
)

func main() {
	must.Main("firstsuite", 2, func() error {
		files := list(os.Stdin)
		if len(files) == 0 {
			return errors.New("no files with tests on standard input (see go doc)")
		}
		here, _ := os.Getwd()
		exceptions, bad := 0, 0
		for _, f := range check(files) {
			if f.reason != "" {
				exceptions++
				continue
			}
			bad++
			if rel, err := filepath.Rel(here, f.pos.Filename); err == nil && !strings.HasPrefix(rel, "..") {
				f.pos.Filename = rel
			}
			fmt.Println(f)
		}
		fmt.Printf("%d files, %d exceptions with a reason\n", len(files), exceptions)
		if bad > 0 {
			fmt.Fprintf(os.Stderr, "firstsuite: %d uses of what depends on the machine (see go doc ./.ci/tools/firstsuite)\n", bad)
			os.Exit(1)
		}
		return nil
	})
}

// A file is one of the first suite.
type file struct {
	path string // of the file
	pkg  string // its package's import path, with _test for those outside of it
}

// list reads the output of go list -json. Of what is not a test it returns the packages that are made for tests.
func list(in io.Reader) (files []file) {
	for d := json.NewDecoder(in); d.More(); {
		var p struct {
			ImportPath, Dir                    string
			GoFiles, TestGoFiles, XTestGoFiles []string
		}
		must.Succeed(d.Decode(&p))
		add := func(names []string, pkg string) {
			for _, name := range names {
				files = append(files, file{filepath.Join(p.Dir, name), pkg})
			}
		}
		if slices.ContainsFunc(p.GoFiles, func(name string) bool { return imports(filepath.Join(p.Dir, name), "testing") }) {
			add(p.GoFiles, p.ImportPath)
		}
		add(p.TestGoFiles, p.ImportPath)
		add(p.XTestGoFiles, p.ImportPath+"_test")
	}
	return files
}
