package lint

import (
	"cmp"
	"slices"
	"strings"
)

// A Finding is a problem that a rule has found at one place in a file.
type Finding struct {
	// Rule is the id of the rule, such as "jitter-missing".
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// File, Line and Column are the place. Lines and columns count from 1, columns in characters.
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Path is the field, such as "dependencies.payments.backoff.jitter". If the file does not have
	// the field, the place is that of what it belongs to.
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
	// Changes are the fields of policies that Text names, with their new values. All of them together end the
	// finding. Empty: only the user can know the values, or whether a fact is true (an SLO, the visibility timeout of a queue, an
	// idempotency key). Text asks for a fact.
	Changes []Change `json:"changes,omitempty"`

	unable bool // the system whose file it is cannot be set so
}

// A Change is a field of a file, and its new value.
type Change struct {
	Path string `json:"path"`
	// Value is the new value, as it is written in the file. Empty: the field is to be removed.
	Value string `json:"value"`
	// File and Line are set in a file of another system, in which Path is the path in a document: the
	// file may have several, and a fix may be for another file than the finding. Line is one of the document.
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

// merged combines findings that report the same at the same place: a field of the defaults from
// which several dependencies have their value. It keeps the finding about the defaults, if there is
// one.
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
