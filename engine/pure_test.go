package engine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The engine and the leaves that it is made of.
var pure = []string{"engine", "engine/consumers", "backoff", "breaker", "budget", "bulkhead", "hedge", "outlier", "throttle"}

// What is pure imports nothing that knows a clock, a network, a file or chance, and no driver.
// It may import what is pure, and of internal/ what is.
func impure(path string) bool {
	const module = "github.com/lullgo/lull/"
	if ours, ok := strings.CutPrefix(path, module); ok {
		for _, room := range pure {
			if ours == room {
				return false
			}
		}
		return !strings.HasPrefix(ours, "internal/")
	}
	switch path {
	case "errors", "fmt", "cmp", "iter", "maps", "math", "math/bits", "reflect", "runtime", "slices", "sort", "strconv", "strings", "sync", "sync/atomic", "time", "unicode", "unicode/utf8", "unsafe":
		return false
	}
	return true
}

// What of package time reads a clock or waits.
var clocks = map[string]bool{"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "AfterFunc": true, "Tick": true, "NewTicker": true, "NewTimer": true}

func TestTheEngineIsPure(t *testing.T) {
	seen := map[string]bool{}
	rooms := append([]string(nil), pure...)
	for len(rooms) > 0 {
		room := rooms[0]
		rooms = rooms[1:]
		if seen[room] {
			continue
		}
		seen[room] = true
		rooms = append(rooms, check(t, room)...)
	}
}

// check reports what is not pure in the files of a room, and returns the rooms below internal/
// that it imports.
func check(t *testing.T, room string) (inner []string) {
	names, err := filepath.Glob(filepath.Join("..", room, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Fatalf("there is no Go in %s", room)
	}
	files := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		timeIs := "time"
		for _, i := range f.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			if impure(path) {
				t.Errorf("%v: %s is imported", files.Position(i.Pos()), path)
			}
			if path == "time" && i.Name != nil {
				timeIs = i.Name.Name
			}
			if ours, ok := strings.CutPrefix(path, "github.com/lullgo/lull/internal/"); ok {
				inner = append(inner, "internal/"+ours)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%v: a goroutine is started", files.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == timeIs && clocks[n.Sel.Name] {
					t.Errorf("%v: time.%s is used", files.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
	return inner
}
