package main

import (
	"cmp"
	"fmt"
	"go/scanner"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

const (
	shared   = 6 // lines that two places have in common, at least
	distinct = 4 // of these that differ from each other in shape: six rows of a table are no copy
)

// A pair is two places that are the same, or would be if the names in one were changed, each name to
// the same one everywhere. Literals may differ. Lines without code do not count, nor those that have only brackets.
type pair struct {
	a, b   string // file:line
	length int    // lines
}

func (p pair) String() string { return fmt.Sprintf("%3d %s %s", p.length, p.a, p.b) }

// A line is one with code.
type line struct {
	file, number int
	tokens       []string // names begin with _
	shape        string   // of this line alone
	window       string   // of this line and those that follow it; empty near the end of a file
	counts       bool     // the window is no table
}

// pairs returns the pairs of files of tests, or of the others, the longest first. Of places that share more than six
// lines all are one pair.
func (h *house) pairs(tests bool) (all []pair) {
	files := h.in(tests)
	var lines []line
	for i, f := range files {
		lines = append(lines, windows(linesOf(i, f.text))...)
	}
	places := map[string][]int{}
	for i, l := range lines {
		if l.counts {
			places[l.window] = append(places[l.window], i)
		}
	}
	at := func(i int) string { return files[lines[i].file].path + ":" + strconv.Itoa(lines[i].number) }
	for _, same := range places {
		for n, i := range same {
			for _, j := range same[n+1:] {
				if lines[i].file == lines[j].file && j < i+shared || !begins(lines, i, j) {
					continue
				}
				length := shared
				for alike(lines, i+length-shared+1, j+length-shared+1) {
					length++
				}
				all = append(all, pair{at(i), at(j), length})
			}
		}
	}
	slices.SortFunc(all, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.length, a.length), cmp.Compare(a.a, b.a), cmp.Compare(a.b, b.b))
	})
	return all
}

func alike(lines []line, i, j int) bool {
	return i >= 0 && j < len(lines) && lines[i].window != "" && lines[i].window == lines[j].window
}

// begins reports whether no window before i and j belongs to the same pair of places, and counts.
func begins(lines []line, i, j int) bool {
	for k := 1; alike(lines, i-k, j-k) && lines[i-k].file == lines[i].file && lines[j-k].file == lines[j].file; k++ {
		if lines[i-k].counts {
			return false
		}
	}
	return true
}

var brackets = strings.Fields("{ } ( ) [ ] , ;")

func windows(lines []line) []line {
	for i := 0; i+shared <= len(lines); i++ {
		var window []string
		names := map[string]string{}
		shapes := map[string]bool{}
		for _, l := range lines[i : i+shared] {
			shapes[l.shape] = true
			for _, t := range l.tokens {
				if t[0] == '_' {
					if names[t] == "" {
						names[t] = strconv.Itoa(len(names))
					}
					t = names[t]
				}
				window = append(window, t)
			}
			window = append(window, "\n")
		}
		lines[i].window, lines[i].counts = strings.Join(window, " "), len(shapes) >= distinct
	}
	return lines
}

// linesOf returns the lines with code of a file, without its package clause, imports, and constants at the top.
func linesOf(file int, text string) (lines []line) {
	set := token.NewFileSet()
	f := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(f, []byte(text), nil, 0)
	skip := false // the package clause, imports, and constants
	depth := 0    // of brackets
	for {
		at, kind, literal := s.Scan()
		if kind == token.EOF {
			break
		}
		number := f.Line(at)
		switch kind {
		case token.PACKAGE, token.IMPORT, token.CONST:
			skip = skip || depth == 0
		case token.FUNC, token.TYPE, token.VAR:
			skip = skip && depth > 0
		case token.LPAREN, token.LBRACE, token.LBRACK:
			depth++
		case token.RPAREN, token.RBRACE, token.RBRACK:
			depth--
		}
		if skip || kind == token.SEMICOLON && literal == "\n" {
			continue
		}
		if len(lines) == 0 || lines[len(lines)-1].number != number {
			lines = append(lines, line{file: file, number: number})
		}
		l := &lines[len(lines)-1]
		shape := kind.String()
		switch {
		case kind == token.IDENT:
			shape, literal = "_", "_"+literal
		case kind.IsLiteral():
			shape, literal = ".", "." // any
		default:
			literal = shape
		}
		l.tokens, l.shape = append(l.tokens, literal), l.shape+" "+shape
	}
	return slices.DeleteFunc(lines, func(l line) bool {
		return !slices.ContainsFunc(l.tokens, func(t string) bool { return !slices.Contains(brackets, t) })
	})
}
