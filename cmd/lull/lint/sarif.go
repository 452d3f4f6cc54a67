package lint

import (
	"io"
	"net/url"
	"path"
	"strings"
)

// The parts of SARIF (Static Analysis Results Interchange Format, OASIS, version 2.1.0) for a
// report.
// https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		ColumnKind  string            `json:"columnKind"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID                   string       `json:"id"`
		ShortDescription     sarifMessage `json:"shortDescription"`
		FullDescription      sarifMessage `json:"fullDescription"`
		Help                 sarifMessage `json:"help"`
		HelpURI              string       `json:"helpUri,omitempty"`
		DefaultConfiguration struct {
			Level Severity `json:"level"`
		} `json:"defaultConfiguration"`
	}
	sarifMessage struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifInvocation struct {
		ExecutionSuccessful bool `json:"executionSuccessful"`
	}
	sarifResult struct {
		RuleID              string             `json:"ruleId"`
		RuleIndex           int                `json:"ruleIndex"`
		Level               Severity           `json:"level"`
		Message             sarifMessage       `json:"message"`
		Locations           []sarifLocation    `json:"locations"`
		PartialFingerprints map[string]string  `json:"partialFingerprints,omitempty"`
		Suppressions        []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifLocation struct {
		PhysicalLocation struct {
			ArtifactLocation struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region struct {
				StartLine   int `json:"startLine"`
				StartColumn int `json:"startColumn"`
			} `json:"region"`
		} `json:"physicalLocation"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
)

const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

// SARIF writes the report in SARIF 2.1.0, which code hosts and editors show beside the lines.
// Findings that are ignored are suppressed results. version is that of the program; empty: it is
// left out.
func (r Report) SARIF(w io.Writer, version string) error {
	run := sarifRun{
		Invocations: []sarifInvocation{{len(r.Unreadable) == 0}},
		ColumnKind:  "unicodeCodePoints",
		Results:     []sarifResult{},
	}
	run.Tool.Driver = sarifDriver{Name: "lull lint", Version: version, InformationURI: "https://github.com/lullgo/lull"}
	index := map[string]int{}
	for i, rule := range catalogue() {
		index[rule.ID] = i
		s := sarifRule{
			ID: rule.ID, ShortDescription: sarifMessage{Text: rule.Title}, FullDescription: sarifMessage{Text: paragraphs(rule.Why)[0]},
			Help: sarifMessage{Text: rule.Explain(), Markdown: rule.Markdown()},
		}
		s.DefaultConfiguration.Level = rule.Severity
		for _, source := range rule.Sources {
			if s.HelpURI == "" {
				s.HelpURI = source.URL
			}
		}
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, s)
	}
	for _, f := range r.Findings {
		res := sarifResult{
			RuleID: f.Rule, RuleIndex: index[f.Rule], Level: f.Severity,
			Message:             sarifMessage{Text: f.inFull()},
			Locations:           make([]sarifLocation, 1),
			PartialFingerprints: map[string]string{"ruleAndField/v1": f.Rule + " " + f.Path},
		}
		at := &res.Locations[0].PhysicalLocation
		at.ArtifactLocation.URI = fileURI(f.File)
		at.Region.StartLine, at.Region.StartColumn = max(f.Line, 1), max(f.Column, 1)
		if f.Ignored != nil {
			kind := "external"
			if f.Ignored.By == "comment" {
				kind = "inSource"
			}
			res.Suppressions = []sarifSuppression{{kind, f.Ignored.Reason}}
		}
		run.Results = append(run.Results, res)
	}
	return encode(w, sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{run}})
}

func (f Finding) inFull() string {
	var b strings.Builder
	b.WriteString(f.Message)
	for _, line := range table(f.Sum) {
		b.WriteString("\n  " + line)
	}
	b.WriteString("\nFix: " + f.Fix.Text)
	return b.String()
}

// fileURI is a path as a URI reference, with slashes. A relative path stays relative.
func fileURI(file string) string {
	file = slashed(file)
	switch {
	case len(file) > 2 && file[1] == ':' && file[2] == '/':
		return (&url.URL{Scheme: "file", Path: "/" + file}).String()
	case strings.HasPrefix(file, "/"):
		return (&url.URL{Scheme: "file", Path: file}).String()
	}
	return (&url.URL{Path: file}).String()
}

func slashed(file string) string { return path.Clean(strings.ReplaceAll(file, `\`, "/")) }
