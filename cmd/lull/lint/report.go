package lint

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/choice"
)

// Count returns the number of findings of at least the given severity that are not ignored.
func (r Report) Count(least Severity) int {
	return len(slices.DeleteFunc(r.heeded(), func(f Finding) bool { return f.Severity < least }))
}

// heeded are the findings that are not ignored.
func (r Report) heeded() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Ignored != nil })
}

// WithoutNotes returns the report without its notes, except for those that are ignored. Its Summary counts them.
func (r Report) WithoutNotes() Report {
	all := len(r.Findings)
	r.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Severity == Note && f.Ignored == nil })
	r.leftOut += all - len(r.Findings)
	return r
}

// Ignored returns the number of findings that are ignored.
func (r Report) Ignored() int { return len(r.Findings) - r.Count(Note) }

// Summary returns the report in a line.
func (r Report) Summary() string {
	var b strings.Builder
	n := r.Count(Note)
	fmt.Fprintf(&b, "%s in %s", choice.Either(n > 0, term.Counted(n, "finding"), "nothing found"), term.Counted(len(r.Files), "file"))
	if n > 0 {
		var parts []string
		for _, s := range []Severity{Error, Warning, Note} {
			if k := r.Count(s) - r.Count(s+1); k > 0 {
				parts = append(parts, term.Counted(k, s.String()))
			}
		}
		b.WriteString(": " + strings.Join(parts, ", "))
	}
	if k := r.Ignored(); k > 0 {
		fmt.Fprintf(&b, "; %d ignored", k)
	}
	if r.leftOut > 0 {
		fmt.Fprintf(&b, "; %s (--notes shows %s)", term.Counted(r.leftOut, "note"), verb(r.leftOut, "it", "them"))
	}
	if k := len(r.Skipped); k > 0 {
		fmt.Fprintf(&b, "; %d skipped", k)
	}
	return b.String()
}

// Text writes the report for people: each finding with the line of the file, the sum, the fix and the source.
func (r Report) Text(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, f := range r.heeded() {
		r.finding(b, f)
		b.WriteByte('\n')
	}
	b.WriteString(r.Summary() + "\n")
	for _, f := range r.Findings {
		if f.Ignored != nil {
			fmt.Fprintf(b, "ignored: %s:%d: %s: %s\n", printable(f.File), f.Line, f.Rule, printable(f.Ignored.Reason))
		}
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(b, "skipped: %s: %s\n", printable(s.File), printable(s.Why))
	}
	return b.Flush()
}

func (r Report) finding(b *bufio.Writer, f Finding) {
	fmt.Fprintf(b, "%s:%d:%d: %s: %s [%s]\n", printable(f.File), f.Line, f.Column, f.Severity, printable(f.Message), f.Rule)
	if lines := r.lines[f.File]; f.Line > 0 && f.Line <= len(lines) {
		line, column := window(lines[f.Line-1], f.Column)
		fmt.Fprintf(b, "%5d | %s\n      | %s\n", f.Line, line, caret(line, column))
	}
	for _, s := range table(f.Sum) {
		fmt.Fprintf(b, "        %s\n", s)
	}
	fmt.Fprintf(b, "      fix: %s\n", printable(f.Fix.Text))
	if rule, err := FindRule(f.Rule); err == nil && len(rule.Sources) > 0 {
		fmt.Fprintf(b, "      source: %s\n", rule.Sources[0])
	}
}

// String returns the title and the address.
func (s Source) String() string {
	return choice.Either(s.URL == "", s.Title, s.Title+", "+s.URL)
}

const tableWidth = 64

func table(sum []Step) []string {
	var what, value, total int
	words := make([][]string, len(sum))
	for i, s := range sum {
		words[i] = strings.Split(wrap(printable(s.What), tableWidth), "\n")
		for _, w := range words[i] {
			what = max(what, utf8.RuneCountInString(w))
		}
		value = max(value, utf8.RuneCountInString(s.Value))
		total = max(total, utf8.RuneCountInString(s.Total))
	}
	var lines []string
	for i, s := range sum {
		last := len(words[i]) - 1
		lines = append(lines, words[i][:last]...)
		line := fmt.Sprintf("%-*s", what, words[i][last])
		if value > 0 {
			line += fmt.Sprintf("  %*s", value, s.Value)
		}
		if total > 0 {
			line += fmt.Sprintf("  %*s", total, s.Total)
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

// The greatest part of a line that is shown, and how much of it is before the column.
const (
	lineShown  = 100
	lineBefore = 60
)

func window(line string, column int) (string, int) {
	runes := []rune(printable(line))
	if len(runes) <= lineShown {
		return string(runes), column
	}
	from := min(max(column-1-lineBefore, 0), len(runes))
	to := min(from+lineShown, len(runes))
	out, shift := string(runes[from:to]), from
	if from > 0 {
		out, shift = "…"+out, from-1
	}
	if to < len(runes) {
		out += "…"
	}
	return out, column - shift
}

func caret(line string, column int) string {
	runes := []rune(line)
	if column < 1 || column > len(runes) {
		return "^"
	}
	n := 0
	for _, c := range runes[column-1:] {
		if unicode.IsSpace(c) || strings.ContainsRune(":,}]", c) {
			break
		}
		n++
	}
	return strings.Repeat(" ", column-1) + "^" + strings.Repeat("~", max(n-1, 0))
}

// printable replaces characters that would move the cursor of a terminal or hide text.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '\uFFFD'
	}, s)
}

// A Finding is a problem that a rule has found at one place in a file.
type Finding struct {
	// Rule is the id of the rule, such as "jitter-missing".
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// File, Line and Column are the place. Lines and columns count from 1, columns in characters.
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Path is the field, such as "dependencies.payments.backoff.jitter". A missing one has the place of what it belongs to.
	Path string `json:"path,omitempty"`
	// Message is the reason, in one sentence with the deciding figures.
	Message string `json:"message"`
	// Sum shows line by line how the figures are calculated.
	Sum []Step `json:"sum,omitempty"`
	// Fix is the change that would mend it.
	Fix Fix `json:"fix"`
	// Ignored is set if the rule is switched off for this finding, with the reason.
	Ignored *Ignored `json:"ignored,omitempty"`

	about string // the dependency whose policy it is about
}

// A Step is one line of a sum.
type Step struct {
	What string `json:"what"`
	// Value is added. If it begins with "×" the sum is multiplied by it.
	Value string `json:"value,omitempty"`
	// Total is the result so far.
	Total string `json:"total,omitempty"`
}

// A Fix is the change that would mend a finding.
type Fix struct {
	Text string `json:"text"`
	// Changes are the fields of policies that Text names, with new values. Together they end the finding. Empty: only the user can know the
	// values, or whether a fact is true, for which Text asks.
	Changes []Change `json:"changes,omitempty"`

	unable bool // the system whose file it is cannot be set so
}

// A Change is a field of a file, and its new value.
type Change struct {
	Path string `json:"path"`
	// Value is the new value, as it is written in the file. Empty: the field is to be removed.
	Value string `json:"value"`
	// File and Line are set in a file of another system, where Path is that in a document. A fix may be for another file than the finding.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// Ignored is how a finding was switched off, and why.
type Ignored struct {
	// By is "comment" or "flag".
	By     string `json:"by"`
	Reason string `json:"reason"`
}

func sortFindings(files []string, all []Finding) {
	order := make(map[string]int, len(files))
	for i, f := range files {
		order[f] = i
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(order[a.File], order[b.File]),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Path, b.Path),
		)
	})
}

// merged combines findings that report the same at the same place, such as one field of the defaults for several dependencies.
func merged(all []Finding) []Finding {
	type key struct {
		rule, file   string
		line, column int
	}
	var out []Finding
	first := map[key][]int{}
	also := map[int][]string{}
next:
	for _, f := range all {
		k := key{f.Rule, f.File, f.Line, f.Column}
		there := len(f.Fix.Changes) > 0 && f.Fix.Changes[0].Line > 0
		if there { // one part of a file of another system may be used by many
			k = key{f.Rule + " " + f.Fix.Text, f.File, 0, 0}
		}
		for _, i := range first[k] {
			if g := &out[i]; f.about != "" && g.about != "" && f.about != g.about && f.Severity == g.Severity && (there || slices.Equal(f.Sum, g.Sum)) {
				if strings.HasPrefix(f.Path, "defaults.") {
					f, *g = *g, f
				}
				if !strings.HasPrefix(f.Path, "defaults.") {
					also[i] = append(also[i], f.about)
				}
				continue next
			}
		}
		first[k] = append(first[k], len(out))
		out = append(out, f)
	}
	for i, names := range also {
		slices.Sort(names)
		out[i].Message += "; the same goes for " + few(names)
	}
	return out
}
