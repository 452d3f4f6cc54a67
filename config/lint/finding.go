package lint

import (
	"cmp"
	"slices"
	"strings"
)

// A Finding is one thing that a rule has to say about one place in a file.
type Finding struct {
	// Rule is the id of the rule, such as "jitter-missing".
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// File, Line and Column say where; lines and columns count from 1, columns in
	// characters.
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Path is the field, such as "dependencies.payments.backoff.jitter", whether or not
	// it stands in the file: the place is then that of what it belongs to.
	Path string `json:"path,omitempty"`
	// Message is the reason: one sentence, with the figures that decide.
	Message string `json:"message"`
	// Sum is how the figures come about, line by line.
	Sum []Step `json:"sum,omitempty"`
	// Fix is what to write instead.
	Fix Fix `json:"fix"`
	// Ignored is set when somebody has switched the rule off, with the reason.
	Ignored *Ignored `json:"ignored,omitempty"`

	about string // the dependency whose policy it is about
}

// A Step is one line of a sum.
type Step struct {
	What string `json:"what"`
	// Value is what is added (or multiplied: then it begins with "×").
	Value string `json:"value,omitempty"`
	// Total is what it has come to.
	Total string `json:"total,omitempty"`
}

// A Fix is what to write instead.
type Fix struct {
	Text string `json:"text"`
	// Changes are the fields that Text speaks of, with the values to write. Made all
	// together they end the finding. Empty where only the user can know.
	Changes []Change `json:"changes,omitempty"`
}

// A Change is a field of a file and the value to write there.
type Change struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Ignored says who does not want to hear of a finding, and why.
type Ignored struct {
	// By is "comment" or "flag".
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// sortFindings brings findings into the order of the files, and in each of its lines.
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

// merged are findings of which those are one that say the same about the same line: the
// field of the defaults that several dependencies have their value from. The one about
// the defaults is kept, if there is one.
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
		for _, i := range first[k] {
			if g := &out[i]; f.about != "" && g.about != "" && f.about != g.about && f.Severity == g.Severity && slices.Equal(f.Sum, g.Sum) {
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
