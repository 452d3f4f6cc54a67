package lull_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

// floors are the floors of the house, from the ground up. An import goes down: a room imports what stands on a lower
// floor, or in the same folder. Tests may import what is on any floor, except that the tests of the library do not
// import what stands on the floors of what is not the library.
var floors = [][]string{
	{"backoff", "breaker", "budget", "bulkhead", "hedge", "outlier", "throttle"}, // leaves
	{"engine"},
	{"event"},
	{"driver"},
	{"."},
	{"lullhttp", "queue"},
	{"server"},
	{"preset", "integrations"},
	{"config"},
	{"lab"}, // from here on it is not the library
	{"cmd"},
	{"docs"},
}

const modulePath = "github.com/lullgo/lull"

func floorOf(room string) int {
	top, _, _ := strings.Cut(room, "/")
	return slices.IndexFunc(floors, func(rooms []string) bool { return slices.Contains(rooms, top) })
}

// A package of internal stands where the highest of what it imports does.
func TestImportsGoDown(t *testing.T) {
	imports, tests := readImports(t)
	var internalFloor func(room string) int
	internalFloor = func(room string) int {
		floor := -1
		for _, to := range imports[room] {
			if strings.HasPrefix(to, "internal/") {
				floor = max(floor, internalFloor(to))
			} else {
				floor = max(floor, floorOf(to))
			}
		}
		return floor
	}
	height := func(room string) int {
		if strings.HasPrefix(room, "internal/") {
			return internalFloor(room)
		}
		return floorOf(room)
	}
	lab := floorOf("lab")
	for _, from := range slices.Sorted(maps.Keys(imports)) {
		if !strings.HasPrefix(from, "internal/") && floorOf(from) < 0 {
			t.Errorf("the folder %s stands on no floor: give it one in floors", from)
			continue
		}
		for _, to := range imports[from] {
			if sameRoom(from, to) {
				continue
			}
			up := height(to) > height(from)
			sideways := height(to) == height(from) && !strings.HasPrefix(to, "internal/") && !strings.HasPrefix(from, "internal/")
			if up || sideways && !slices.Contains([]string{"lab", "docs", "cmd", "integrations"}, strings.Split(from, "/")[0]) {
				t.Errorf("%s imports %s, which does not stand below it", from, to)
			}
		}
	}
	for _, from := range slices.Sorted(maps.Keys(tests)) {
		for _, to := range tests[from] {
			if height(from) < lab && height(to) >= lab {
				t.Errorf("the tests of %s import %s, which is not a part of the library", from, to)
			}
		}
	}
}

func sameRoom(a, b string) bool {
	a, _, _ = strings.Cut(a, "/")
	b, _, _ = strings.Cut(b, "/")
	return a == b && a != "internal"
}

// readImports returns which folders import which others, in programs and in tests.
func readImports(t *testing.T) (imports, tests map[string][]string) {
	t.Helper()
	imports, tests = map[string][]string{}, map[string][]string{}
	for _, path := range sourceFiles(t) {
		f := must.Have(parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly))
		from, into := filepath.ToSlash(filepath.Dir(path)), imports
		if strings.HasSuffix(path, "_test.go") {
			into = tests
		}
		for _, spec := range f.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if rest, ours := strings.CutPrefix(to, modulePath); ours {
				rest = strings.TrimPrefix(rest, "/")
				if rest == "" {
					rest = "."
				}
				if !slices.Contains(into[from], rest) {
					into[from] = append(into[from], rest)
				}
			}
		}
	}
	if len(imports) < 40 || len(tests) < 40 {
		t.Fatalf("found only %d folders that import others, and %d with tests: is the test run in the root?", len(imports), len(tests))
	}
	return imports, tests
}

// sourceFiles returns the files of Go code, without those below the given folders.
func sourceFiles(t *testing.T, without ...string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (name == "testdata" || strings.ContainsAny(name[:1], "._") || slices.Contains(without, name)):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(name, ".go"):
			files = append(files, path)
		}
		return nil
	})
	must.Succeed(err)
	return files
}
