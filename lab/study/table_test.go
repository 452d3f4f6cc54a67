package study_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/scenario"
)

const root = "../.."

// folders are the packages that the table names, where the folder has not the name of the package.
var folders = map[string]string{
	"lull": ".", "admission": "server/admission", "status": "server/status", "idempotency": "server/idempotency", "redial": "integrations/redial", "every": "integrations/every",
	"lullredis": "integrations/lullredis", "lullgrpc": "integrations/lullgrpc", "lullotel": "integrations/lullotel", "sim": "lab/sim",
}

var (
	code   = regexp.MustCompile("`([^`]+)`")
	link   = regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]+))?\)`)
	inTest = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	// spoken is what a heading keeps in its anchor.
	spoken = regexp.MustCompile(`[^\p{L}\p{N}\-_ ]`)
)

// Each row of the tables in ARTICLES.md has a pointer at least in its last column, and each exists: a link to a file and a
// heading, a name of a package, a test, or a built-in scenario.
func TestTheTableOfTheArticlesPointsToWhatExists(t *testing.T) {
	tests := testNames(t)
	rows := 0
	for line := range strings.Lines(string(must.Have(os.ReadFile("ARTICLES.md")))) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[3]) == "where" {
			continue
		}
		rows++
		where := cells[3]
		links, names := link.FindAllStringSubmatch(where, -1), code.FindAllStringSubmatch(where, -1)
		if len(links)+len(names) == 0 {
			t.Errorf("no pointer: %s", line)
		}
		for _, l := range links {
			text, err := os.ReadFile(cmp.Or(l[1], "ARTICLES.md"))
			if err != nil || l[2] != "" && !slices.Contains(anchors(string(text)), l[2]) {
				t.Errorf("%s: no such page or heading (%v)", l[0], err)
			}
		}
		for _, n := range names {
			switch name := n[1]; {
			case strings.HasPrefix(name, "Test"):
				if !tests[name] {
					t.Errorf("there is no test %s", name)
				}
			case strings.Contains(name, "."):
				if path := strings.Split(name, "."); !declared(t, path[0], path[1:]) {
					t.Errorf("there is no %s", name)
				}
			default:
				if _, err := scenario.Find(name); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if rows < 100 {
		t.Errorf("only %d rows were found", rows)
	}
}

func anchors(page string) (all []string) {
	for line := range strings.Lines(page) {
		if hashes, heading, ok := strings.Cut(line, " "); ok && strings.Trim(hashes, "#") == "" && hashes != "" {
			heading = spoken.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			all = append(all, strings.ReplaceAll(heading, " ", "-"))
		}
	}
	return all
}

func testNames(t *testing.T) map[string]bool {
	names := map[string]bool{}
	must.Succeed(filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range inTest.FindAllStringSubmatch(string(source), -1) {
			names[m[1]] = true
		}
		return err
	}))
	return names
}

// declared reports whether a package declares path: a name, or a field or method of a type.
func declared(t *testing.T, pkg string, path []string) bool {
	found := false
	files := must.Have(filepath.Glob(filepath.Join(root, cmp.Or(folders[pkg], pkg), "*.go")))
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, d := range must.Have(parser.ParseFile(token.NewFileSet(), file, nil, 0)).Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				found = found || d.Recv == nil && len(path) == 1 && d.Name.Name == path[0] ||
					d.Recv != nil && len(path) == 2 && d.Name.Name == path[1] && receiver(d) == path[0]
			case *ast.GenDecl:
				for _, s := range d.Specs {
					found = found || declares(t, s, path)
				}
			}
		}
	}
	return found
}

func receiver(d *ast.FuncDecl) string {
	of := d.Recv.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	name, _ := of.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}

// declares reports whether a specification declares path.
func declares(t *testing.T, s ast.Spec, path []string) bool {
	switch s := s.(type) {
	case *ast.ValueSpec:
		return len(path) == 1 && slices.ContainsFunc(s.Names, func(n *ast.Ident) bool { return n.Name == path[0] })
	case *ast.TypeSpec:
		if s.Name.Name != path[0] {
			return false
		}
		if len(path) == 1 {
			return true
		}
		switch of := s.Type.(type) {
		case *ast.SelectorExpr: // an alias of another package's type
			return declared(t, of.X.(*ast.Ident).Name, append([]string{of.Sel.Name}, path[1:]...))
		case *ast.StructType:
			return slices.ContainsFunc(of.Fields.List, func(f *ast.Field) bool {
				return slices.ContainsFunc(f.Names, func(n *ast.Ident) bool { return n.Name == path[1] })
			})
		}
	}
	return false
}
