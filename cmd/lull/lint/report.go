package lint

import (
	"fmt"
	"strings"
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
	kept := r.Findings
	r.Findings = nil
	for _, f := range kept {
		if f.Severity == Note && f.Ignored == nil {
			r.leftOut++
			continue
		}
		r.Findings = append(r.Findings, f)
	}
	return r
}

// Ignored returns the number of findings that are ignored.
func (r Report) Ignored() int { return len(r.Findings) - r.Count(Note) }

// Summary returns the report in a line.
func (r Report) Summary() string {
	var b strings.Builder
	n := r.Count(Note)
	switch n {
	case 0:
		b.WriteString("nothing found")
	default:
		b.WriteString(count(n, "finding"))
	}
	fmt.Fprintf(&b, " in %s", count(len(r.Files), "file"))
	if n > 0 {
		var parts []string
		for s := Error; ; s-- {
			k := r.Count(s)
			if s < Error {
				k -= r.Count(s + 1)
			}
			if k > 0 {
				parts = append(parts, count(k, s.String()))
			}
			if s == Note {
				break
			}
		}
		b.WriteString(": " + strings.Join(parts, ", "))
	}
	if k := r.Ignored(); k > 0 {
		fmt.Fprintf(&b, "; %d ignored", k)
	}
	if r.leftOut > 0 {
		them := "them"
		if r.leftOut == 1 {
			them = "it"
		}
		fmt.Fprintf(&b, "; %s (--notes shows %s)", count(r.leftOut, "note"), them)
	}
	if k := len(r.Skipped); k > 0 {
		fmt.Fprintf(&b, "; %d skipped", k)
	}
	return b.String()
}
