package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lullgo/lull/internal/choice"
)

// A Kind is what became of something that could not be carried over as it was.
type Kind uint8

const (
	// Lost: it is not in what was written.
	Lost Kind = iota
	// Changed: it is there, but means something else now, or was rounded.
	Changed
	// Assumed: the one form must say what the other leaves open, or can leave out.
	// Nothing is lost by it.
	Assumed
	// Aside: it is not about how calls are made (where they go, who may make them), so
	// that it has no place in a policy.
	Aside
	kinds
)

var kindNames = [kinds]string{"lost", "changed", "assumed", "aside"}

// String is the kind in lower case, such as "lost".
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// MarshalText is String, for a kind that is one.
func (k Kind) MarshalText() ([]byte, error) { return choice.Marshal("Kind", kindNames[:], k) }

// UnmarshalText takes what MarshalText gives.
func (k *Kind) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Kind", kindNames[:], k, text)
}

// Loss tells whether something is gone or not what it was: what --strict does not let pass.
func (k Kind) Loss() bool { return k == Lost || k == Changed }

// An Entry is a field that could not be carried over as it was, and why.
type Entry struct {
	Kind Kind `json:"kind"`
	// File, Line and Column are where the field stands, or what it belongs to. Lines and
	// columns count from 1; Line is 0 where there is no file.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Path is the field in the form that was read or, where that is a policy,
	// "dependencies.NAME.FIELD".
	Path string `json:"path"`
	// Value is what the field has, as a file would, if that is a single value. Empty: it
	// is not, or the file does not say it.
	Value string `json:"value,omitempty"`
	// Values is how many single values there are in a mapping or a list of which the entry
	// is all that is made. Zero: it is about a single value, or about what is not in the file.
	Values int `json:"values,omitempty"`
	// To is the format into which it could not be carried over.
	To  Format `json:"to"`
	Why string `json:"why"`

	// about is what a form can take over although no policy can hold it. Empty: nothing.
	about about
}

// about is something that is no policy's but can go from one proxy to another.
type about string

const (
	selection about = "selection" // which failures are retried, with a colon and the dependency
	ejected   about = "ejection"  // outlier detection
	bounds    about = "bounds"    // how retries are bounded
	hints     about = "hints"     // that no heed is paid to Retry-After
	heard     about = "heard"     // how heed is paid to it, by Envoy
	repeated  about = "repeated"  // that requests are repeated whether that is safe or not
	hosted    about = "hosted"    // which host a retry goes to
)

// String says all of it, on one line:
//
//	shop.yaml:12:9: lost: spec.http[0].retries.retryRemoteLocalities is true: why
func (e Entry) String() string {
	place := ""
	switch {
	case e.Line > 0:
		place = fmt.Sprintf("%s:%d:%d: ", e.File, e.Line, e.Column)
	case e.File != "":
		place = e.File + ": "
	}
	value := ""
	if e.Value != "" {
		value = " is " + e.Value
	}
	switch {
	case e.Values == 1:
		value = " (1 value)"
	case e.Values > 1:
		value = fmt.Sprintf(" (%d values)", e.Values)
	}
	return place + e.Kind.String() + ": " + e.Path + value + ": " + e.Why
}

// A Report is all that could not be carried over as it was, in the order of the files.
type Report []Entry

// Losses are the entries that are a loss (see [Kind.Loss]).
func (r Report) Losses() Report {
	return slices.DeleteFunc(slices.Clone(r), func(e Entry) bool { return !e.Kind.Loss() })
}

// String is one line for each entry.
func (r Report) String() string {
	var b strings.Builder
	for _, e := range r {
		b.WriteString(e.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// sorted is r in the order of files and lines, each entry once.
func (r Report) sorted(files []string) Report {
	r = slices.Clone(r)
	slices.SortStableFunc(r, func(a, b Entry) int {
		return cmp.Or(slices.Index(files, a.File)-slices.Index(files, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	return slices.CompactFunc(r, func(a, b Entry) bool { return a == b })
}
