package lint

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

func paragraph(s string) string { return strings.Join(strings.Fields(s), " ") }

func paragraphs(why string) []string {
	var out []string
	for p := range strings.SplitSeq(why, "\n\n") {
		out = append(out, paragraph(p))
	}
	return out
}

// Explain returns the full description of the rule, for people.
func (r Rule) Explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)\n%s.\n", r.ID, r.Severity, r.Title)
	for _, p := range paragraphs(r.Why) {
		b.WriteString("\n" + wrap(p, 80) + "\n")
	}
	b.WriteString("\nSources:\n")
	for _, s := range r.Sources {
		b.WriteString("  " + s.Title + "\n")
		if s.URL != "" {
			b.WriteString("    " + s.URL + "\n")
		}
	}
	fmt.Fprintf(&b, "\nBad:\n%s\nGood:\n%s", indented(r.Bad), indented(r.Good))
	return b.String()
}

// Markdown returns the section of the rule in rules.md.
func (r Rule) Markdown() string { return r.section }

func indented(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n  ") + "\n"
}

func wrap(s string, width int) string {
	lines := []string{}
	for _, word := range strings.Fields(s) {
		if last := len(lines) - 1; last >= 0 && utf8.RuneCountInString(lines[last]+" "+word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return strings.Join(lines, "\n")
}
