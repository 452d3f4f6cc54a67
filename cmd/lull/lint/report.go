package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lullgo/lull/cmd/lull/internal/term"
)

// Count returns the number of findings of at least the given severity that are not ignored.
func (r Report) Count(least Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Ignored == nil && f.Severity >= least {
			n++
		}
	}
	return n
}

// WithoutNotes returns the report without its notes, except for those that are ignored. Its Summary counts
// them.
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
	if n > 0 {
		b.WriteString(term.Counted(n, "finding"))
	} else {
		b.WriteString("nothing found")
	}
	fmt.Fprintf(&b, " in %s", term.Counted(len(r.Files), "file"))
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
