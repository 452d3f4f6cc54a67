package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/choice"
)

// A Kind is the result for something that could not be carried over unchanged.
type Kind uint8

const (
	// Lost: it is not in the result.
	Lost Kind = iota
	// Changed: it is in the result, but has another meaning, or was rounded.
	Changed
	// Assumed: the result must have a value where the source has none, or the other way round. Nothing is lost.
	Assumed
	// Aside: it is not about how calls are made (but where they go, who may make them), so it has no place in a policy.
	Aside
	kinds
)

var kindNames = [kinds]string{"lost", "changed", "assumed", "aside"}

// String returns the kind in lower case, such as "lost".
func (k Kind) String() string { return choice.Name("kind", kindNames[:], k) }

// MarshalText returns the name of the kind. The error is for a value that is no kind.
func (k Kind) MarshalText() ([]byte, error) { return choice.Marshal("Kind", kindNames[:], k) }

// UnmarshalText reads the name of a kind.
func (k *Kind) UnmarshalText(text []byte) error {
	return choice.Unmarshal("Kind", kindNames[:], k, text)
}

// Loss reports whether something is gone or changed: --strict does not accept that.
func (k Kind) Loss() bool { return k == Lost || k == Changed }

// An Entry is a field that could not be carried over unchanged, and the reason.
type Entry struct {
	Kind Kind `json:"kind"`
	// Position is the place of the field, or of what it belongs to. Line is 0 if there is no file.
	config.Position
	// Path is the field in the format that was read. Of a policy it is "dependencies.NAME.FIELD".
	Path string `json:"path"`
	// Value is the value of the field, as in a file. Empty: it is not a single one, or not in the file.
	Value string `json:"value,omitempty"`
	// Values is the number of single values in a mapping or a list that the entry is about. Zero: it is about no such thing.
	Values int `json:"values,omitempty"`
	// To is the format of the result.
	To  Format `json:"to"`
	Why string `json:"why"`

	// about is something that can be carried from one proxy to another although no policy can hold it.
	about about
}

// about is something that is no policy's but can go from one proxy to another.
type about string

const (
	selection about = "selection" // which failures are retried; a colon and the dependency follow
	ejected   about = "ejection"  // outlier detection
	bounds    about = "bounds"    // how retries are bounded
	hints     about = "hints"     // that Retry-After is ignored
	hintsUsed about = "heard"     // how Envoy follows Retry-After
	repeated  about = "repeated"  // that requests are repeated even if that is not safe
	hosted    about = "hosted"    // which host a retry goes to
)

// String returns the whole entry on one line:
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
	value := choice.Either(e.Value != "", " is "+e.Value, "")
	switch {
	case e.Values == 1:
		value = " (1 value)"
	case e.Values > 1:
		value = fmt.Sprintf(" (%d values)", e.Values)
	}
	return place + e.Kind.String() + ": " + e.Path + value + ": " + e.Why
}

// A Report is everything that could not be carried over unchanged, in the order of the files.
type Report []Entry

// Losses are the entries that are losses (see [Kind.Loss]).
func (r Report) Losses() Report {
	return slices.DeleteFunc(slices.Clone(r), func(e Entry) bool { return !e.Kind.Loss() })
}

// String returns one line for each entry.
func (r Report) String() string {
	var b strings.Builder
	for _, e := range r {
		b.WriteString(e.String())
		b.WriteByte('\n')
	}
	return b.String()
}

func (r Report) sorted(files []string) Report {
	r = slices.Clone(r)
	slices.SortStableFunc(r, func(a, b Entry) int {
		return cmp.Or(slices.Index(files, a.File)-slices.Index(files, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	return slices.CompactFunc(r, func(a, b Entry) bool { return a == b })
}
