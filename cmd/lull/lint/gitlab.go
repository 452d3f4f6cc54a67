package lint

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// An entry of GitLab's code quality report, a subset of the format of Code Climate.
// https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
type gitlabEntry struct {
	Description string `json:"description"`
	CheckName   string `json:"check_name"`
	Fingerprint string `json:"fingerprint"`
	Severity    string `json:"severity"`
	Location    struct {
		Path  string `json:"path"`
		Lines struct {
			Begin int `json:"begin"`
		} `json:"lines"`
	} `json:"location"`
}

var gitlabSeverities = [severities]string{"info", "major", "critical"}

// GitLab writes the findings that are not ignored as a code quality report of GitLab, which shows
// them in merge requests. A finding keeps its fingerprint when its line moves.
func (r Report) GitLab(w io.Writer) error {
	all := []gitlabEntry{}
	seen := map[string]int{}
	for _, f := range r.Findings {
		if f.Ignored != nil {
			continue
		}
		e := gitlabEntry{Description: f.Message + ". Fix: " + f.Fix.Text, CheckName: f.Rule, Severity: gitlabSeverities[min(f.Severity, Error)]}
		e.Location.Path, e.Location.Lines.Begin = slashed(f.File), max(f.Line, 1)
		key := fmt.Sprintf("%q %q %q", f.Rule, e.Location.Path, f.Path)
		seen[key]++
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", key, seen[key])) // several findings may be about one field
		e.Fingerprint = hex.EncodeToString(sum[:16])
		all = append(all, e)
	}
	return encode(w, all)
}
