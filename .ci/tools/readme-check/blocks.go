package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/must"
)

// instrument prepares a run of every go block of the pages, of every block of Go code in the comment of a package below the
// working directory, and looks whether go test runs every example: it compiles one without "// Output:" and does not run it.
//
// A block is run where a test file has the same tokens, as whole statements or declarations; "..." in a block stands for
// any. Behind the last of them a call is put in that reports that this place was reached, and the error, if the statement
// sets err. The files themselves do not change: the changed ones are an overlay, FOLDER/overlay.json. Whoever runs tests with
// go test -overlay gets reports in that folder, which ran reads.
func instrument(folder string, files, pages []string) error {
	folder = must.Have(filepath.Abs(folder))
	s := scan()
	problems := s.notRun
	for i, file := range files {
		for _, b := range blocks(pages[i], "go") {
			if strings.HasPrefix(b.text, "package ") || strings.Contains(b.text, "\npackage ") {
				if err := vet(b.text); err != nil {
					problems = append(problems, fmt.Errorf("%s:%d: %w", file, b.line, err))
				}
				continue
			}
			s.blocks = append(s.blocks, goBlock{Where: fmt.Sprintf("%s:%d", file, b.line), Text: b.text})
		}
	}
	overlay := map[string]string{}
	found := make([]bool, len(s.blocks))
	for _, f := range s.tests {
		text, marked := f.marked(s.blocks, found)
		if !marked {
			continue
		}
		dir := path.Dir(f.path)
		for name, text := range map[string]string{f.path: text, dir + "/zz_ran_" + f.syntax.Name.Name + "_test.go": fmt.Sprintf(reporter, f.syntax.Name.Name, folder)} {
			name = must.Have(filepath.Abs(name))
			overlay[name] = filepath.Join(folder, strings.ReplaceAll(filepath.ToSlash(name), "/", "_"))
			tool.WriteFile(overlay[name], text)
		}
	}
	for i, b := range s.blocks {
		if !found[i] {
			problems = append(problems, fmt.Errorf("%s: no test file has these lines:\n%s", b.Where, b.Text))
		}
	}
	for name, content := range map[string]any{"overlay.json": map[string]any{"Replace": overlay}, "blocks.json": s.blocks} {
		tool.WriteFile(filepath.Join(folder, name), must.Have(json.Marshal(content)))
	}
	return errors.Join(problems...)
}

// ran returns an error for each block that no test has reached the end of since instrument prepared the folder.
func ran(folder string) error {
	var all []goBlock
	must.Succeed(json.Unmarshal(must.Have(os.ReadFile(filepath.Join(folder, "blocks.json"))), &all))
	var problems []error
	for i, b := range all {
		report, err := os.ReadFile(filepath.Join(folder, fmt.Sprint(i)))
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("%s: no test has run this to its end:\n%s", b.Where, b.Text))
		case len(report) > 0:
			problems = append(problems, fmt.Errorf("%s: this ended with the error %s:\n%s", b.Where, report, b.Text))
		}
	}
	if len(problems) == 0 {
		fmt.Printf("%d blocks of code in pages and the comments of packages were run\n", len(all))
	}
	return errors.Join(problems...)
}

// reporter is the file that is added to the packages with blocks.
const reporter = `package %s

import (
	"os"
	"path/filepath"
	"strconv"
)

func zzRan(block int, errs ...error) {
	name := filepath.Join(%q, strconv.Itoa(block))
	text := ""
	for _, err := range errs {
		if err != nil {
			text = err.Error()
		}
	}
	if known, err := os.ReadFile(name); err == nil && len(known) == 0 {
		return // it has ended well somewhere
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		panic(err)
	}
}
`

type goBlock struct {
	Where, Text string
	own         string // the package that it is a comment of
}

// A source is what was found below a folder.
type source struct {
	blocks []goBlock // in the comments of packages
	notRun []error   // examples
	tests  []*testFile
}

var (
	goCode = regexp.MustCompile(`:=|\bfunc\b|\berr =|\b[a-z]\w*\.[A-Z]\w*[({]`)
	dots   = regexp.MustCompile(`(?m)^\s*\.\.\.$`)
	table  = regexp.MustCompile(`(?m)^(?:[^/\n]|/[^/\n])*[^\s/] {2,}[^\s/]`)
)

// isGo reports whether a block in a comment is Go code, and no formula, table or command. Code that gofmt has aligned
// looks like a table.
func isGo(text string) bool {
	return goCode.MatchString(text) && (!table.MatchString(text) || parses("func _() {\n"+text+"}") || parses(text))
}

func parses(text string) bool {
	_, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+dots.ReplaceAllString(text, ""), parser.SkipObjectResolution)
	return err == nil
}

// scan reads all Go below the working directory.
func scan() *source {
	s := new(source)
	for path := range tool.Files(".") {
		if filepath.Ext(path) != ".go" {
			continue
		}
		text, set := tool.ReadFile(path), token.NewFileSet()
		syntax := must.Have(parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution))
		if strings.HasSuffix(path, "_test.go") {
			s.tests = append(s.tests, &testFile{path: path, text: text, syntax: syntax, base: set.File(syntax.FileStart).Base(), tokens: tokens(text)})
			for _, name := range tool.SilentExamples(syntax) {
				s.notRun = append(s.notRun, fmt.Errorf("%s: go test does not run %s: it has no comment \"Output:\"", path, name))
			}
			continue
		}
		for _, part := range new(comment.Parser).Parse(syntax.Doc.Text()).Content {
			if block, ok := part.(*comment.Code); ok && isGo(block.Text) {
				s.blocks = append(s.blocks, goBlock{"the package comment in " + path, block.Text, syntax.Name.Name})
			}
		}
	}
	return s
}

type testFile struct {
	path, text string
	syntax     *ast.File
	base       int // the position of its first byte
	tokens     []tok
}

// marked returns the text of f with a call behind each place where one of the blocks stands, and sets found for these blocks.
func (f *testFile) marked(all []goBlock, found []bool) (string, bool) {
	marks := map[int]string{} // by offset
	mark := func(block int, after []ast.Stmt) {
		if len(after) == 0 {
			return
		}
		last := after[len(after)-1]
		call, at := fmt.Sprintf("zzRan(%d)", block), int(last.End())-f.base
		switch last := last.(type) {
		case *ast.ReturnStmt, *ast.BranchStmt:
			marks[int(last.Pos())-f.base] += call + "; "
			return
		case *ast.AssignStmt:
			for _, to := range last.Lhs {
				if id, ok := to.(*ast.Ident); ok && id.Name == "err" {
					call = fmt.Sprintf("zzRan(%d, err)", block)
				}
			}
		}
		marks[at] += "; " + call
	}
	for i, block := range all {
		want := tokens(block.Text)
		for len(want) > 0 && strings.HasPrefix(want[0].text, "//") {
			want = want[1:]
		}
		if block.own == f.syntax.Name.Name { // its own tests name what it declares without the package
			want = unqualified(want, block.own)
		}
		if list, ok := match(f, want, f.syntax.Decls); ok {
			found[i] = true
			for _, d := range list {
				if d, ok := d.(*ast.FuncDecl); ok {
					mark(i, d.Body.List)
				}
			}
		}
		for _, d := range f.syntax.Decls {
			for n := range ast.Preorder(d) {
				var list []ast.Stmt
				switch n := n.(type) {
				case *ast.BlockStmt:
					list = n.List
				case *ast.CaseClause:
					list = n.Body
				case *ast.CommClause:
					list = n.Body
				}
				if list, ok := match(f, want, list); ok {
					found[i] = true
					mark(i, list)
				}
			}
		}
	}
	if len(marks) == 0 {
		return "", false
	}
	var b strings.Builder
	from := 0
	for _, at := range slices.Sorted(maps.Keys(marks)) {
		b.WriteString(f.text[from:at] + marks[at])
		from = at
	}
	return b.String() + f.text[from:], true
}

// match returns the part of list, whole statements or declarations, that has the tokens. "..." stands for any.
func match[N ast.Node](f *testFile, want []tok, list []N) (part []N, ok bool) {
	if len(want) == 0 {
		return nil, false
	}
	index := func(p token.Pos) int {
		i, _ := slices.BinarySearchFunc(f.tokens, int(p)-f.base, func(t tok, at int) int { return t.at - at })
		return i
	}
	for from := range list {
		begin := index(list[from].Pos())
		if want[0].text != "..." && (begin == len(f.tokens) || f.tokens[begin].text != want[0].text) {
			continue
		}
		for to := len(list); to > from; to-- {
			end := index(list[to-1].End())
			for {
				if same(want, f.tokens[begin:end]) {
					return list[from:to], true
				}
				if end == len(f.tokens) || !strings.HasPrefix(f.tokens[end].text, "//") {
					break
				}
				end++ // with the comment behind it
			}
		}
	}
	return nil, false
}

// unqualified returns the tokens without the name of a package before a point.
func unqualified(all []tok, pkg string) (left []tok) {
	for i := 0; i < len(all); i++ {
		if i+1 < len(all) && all[i].text == pkg && all[i+1].text == "." {
			i++
			continue
		}
		left = append(left, all[i])
	}
	return left
}

func same(want, text []tok) bool {
	for i, w := range want {
		if w.text == "..." {
			for skip := range len(text) - i + 1 {
				if same(want[i+1:], text[i+skip:]) {
					return true
				}
			}
			return false
		}
		if i == len(text) || text[i].text != w.text {
			return false
		}
	}
	return len(want) == len(text)
}

// A tok is a token or a comment, at an offset.
type tok struct {
	text string
	at   int
}

var indent = regexp.MustCompile(`\n[ \t]+`)

// tokens returns those of a text, without the ends of lines, and without indentation in literals.
func tokens(text string) (all []tok) {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	for {
		at, kind, literal := s.Scan()
		switch {
		case kind == token.EOF:
			return all
		case kind == token.SEMICOLON && literal == "\n":
			continue
		case literal == "":
			literal = kind.String()
		case kind == token.STRING:
			literal = indent.ReplaceAllString(literal, "\n")
		}
		all = append(all, tok{literal, file.Offset(at)})
	}
}
