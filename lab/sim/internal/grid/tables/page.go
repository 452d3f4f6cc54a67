package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// block is a table of a page, between two comments that Markdown does not show.
var block = regexp.MustCompile(`(?s)(<!-- table (\w+) -->\n).*?(<!-- end -->)`)

// refresh replaces the tables of the page that are named, or all. It writes after
// each, so that what was computed is not lost.
func (p *printer) refresh(page string, names []string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	var found []string
	for _, m := range block.FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[2])
	}
	for _, n := range names {
		if !slices.Contains(found, n) {
			return fmt.Errorf("%s has no table %q: it has %s", page, n, strings.Join(found, ", "))
		}
	}
	if len(names) == 0 {
		names = found
	}
	for _, n := range names {
		var out bytes.Buffer
		one := *p
		one.out = &out
		if err := one.table(n); err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, n)
		if text, err = os.ReadFile(page); err != nil {
			return err
		}
		if err := os.WriteFile(page, replaced(text, n, out.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// replaced is text with the table of that name exchanged.
func replaced(text []byte, name, table string) []byte {
	return block.ReplaceAllFunc(text, func(b []byte) []byte {
		m := block.FindSubmatch(b)
		if string(m[2]) != name {
			return b
		}
		return slices.Concat(m[1], []byte(table), m[3])
	})
}
