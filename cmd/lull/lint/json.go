package lint

import (
	"encoding/json"
	"io"
)

type document struct {
	Version    int              `json:"version"`
	Files      []string         `json:"files"`
	Unreadable []string         `json:"unreadable"`
	Skipped    []Skip           `json:"skipped"`
	Errors     int              `json:"errors"`
	Warnings   int              `json:"warnings"`
	Notes      int              `json:"notes"`
	Ignored    int              `json:"ignored"`
	Findings   []Finding        `json:"findings"`
	Rules      map[string]about `json:"rules"`
}

type about struct {
	Severity Severity `json:"severity"`
	Title    string   `json:"title"`
	Why      string   `json:"why"`
	Sources  []Source `json:"sources"`
}

// JSON writes the report as one JSON document, including the findings that are ignored.
func (r Report) JSON(w io.Writer) error {
	d := document{
		Version: 1, Files: some(r.Files), Unreadable: some(r.Unreadable), Skipped: some(r.Skipped),
		Errors: r.Count(Error), Warnings: r.Count(Warning) - r.Count(Error), Notes: r.Count(Note) - r.Count(Warning),
		Ignored: r.Ignored(), Findings: some(r.Findings), Rules: map[string]about{},
	}
	for _, f := range r.Findings {
		if rule, err := FindRule(f.Rule); err == nil {
			d.Rules[f.Rule] = about{rule.Severity, rule.Title, paragraph(rule.Why), rule.Sources}
		}
	}
	return encode(w, d)
}

func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// some returns l, as an empty list if it is nil: JSON then has [] and not null.
func some[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
