package lint

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/lullgo/lull/internal/choice"
)

type document struct {
	Version    int             `json:"version"`
	Files      []string        `json:"files"`
	Unreadable []string        `json:"unreadable"`
	Skipped    []Skip          `json:"skipped"`
	Errors     int             `json:"errors"`
	Warnings   int             `json:"warnings"`
	Notes      int             `json:"notes"`
	Ignored    int             `json:"ignored"`
	Findings   []Finding       `json:"findings"`
	Rules      map[string]Rule `json:"rules"`
}

// JSON writes the report as one JSON document, including the findings that are ignored.
func (r Report) JSON(w io.Writer) error {
	d := document{
		Version: 1, Files: some(r.Files), Unreadable: some(r.Unreadable), Skipped: some(r.Skipped),
		Errors: r.Count(Error), Warnings: r.Count(Warning) - r.Count(Error), Notes: r.Count(Note) - r.Count(Warning),
		Ignored: r.Ignored(), Findings: some(r.Findings), Rules: map[string]Rule{},
	}
	for _, f := range r.Findings {
		if rule, err := FindRule(f.Rule); err == nil {
			rule.Why = paragraph(rule.Why)
			d.Rules[f.Rule] = rule
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

// An object is one of JSON, whose keys are written in the order of the alphabet.
type object map[string]any

const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

// SARIF writes the report in SARIF (Static Analysis Results Interchange Format, OASIS) 2.1.0. Ignored findings are suppressed
// results. version is the program's; empty: it is left out.
// https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
func (r Report) SARIF(w io.Writer, version string) error {
	rules, results, index := []object{}, []object{}, map[string]int{}
	for i, rule := range catalogue() {
		index[rule.ID] = i
		about := object{
			"id":                   rule.ID,
			"shortDescription":     object{"text": rule.Title},
			"fullDescription":      object{"text": paragraphs(rule.Why)[0]},
			"help":                 object{"text": rule.Explain(), "markdown": rule.Markdown()},
			"defaultConfiguration": object{"level": rule.Severity},
		}
		if i := slices.IndexFunc(rule.Sources, func(s Source) bool { return s.URL != "" }); i >= 0 {
			about["helpUri"] = rule.Sources[i].URL
		}
		rules = append(rules, about)
	}
	for _, f := range r.Findings {
		result := object{
			"ruleId": f.Rule, "ruleIndex": index[f.Rule], "level": f.Severity, "message": object{"text": f.inFull()},
			"locations": []object{{"physicalLocation": object{
				"artifactLocation": object{"uri": fileURI(f.File)},
				"region":           object{"startLine": max(f.Line, 1), "startColumn": max(f.Column, 1)},
			}}},
			"partialFingerprints": object{"ruleAndField/v1": f.Rule + " " + f.Path},
		}
		if f.Ignored != nil {
			kind := choice.Either(f.Ignored.By == "comment", "inSource", "external")
			result["suppressions"] = []object{{"kind": kind, "justification": f.Ignored.Reason}}
		}
		results = append(results, result)
	}
	driver := object{"name": "lull lint", "informationUri": "https://github.com/lullgo/lull", "rules": rules}
	if version != "" {
		driver["version"] = version
	}
	return encode(w, struct { // the version should come before what depends on it
		Schema  string   `json:"$schema"`
		Version string   `json:"version"`
		Runs    []object `json:"runs"`
	}{sarifSchema, "2.1.0", []object{{
		"tool":        object{"driver": driver},
		"invocations": []object{{"executionSuccessful": len(r.Unreadable) == 0}},
		"columnKind":  "unicodeCodePoints",
		"results":     results,
	}}})
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

// The parts of JUnit's XML that a report has. There is no standard: these are the elements and
// attributes that Jenkins, GitLab and Azure Pipelines read.
// https://github.com/testmoapp/junitxml
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string       `xml:"classname,attr"`
		Name    string       `xml:"name,attr"`
		File    string       `xml:"file,attr"`
		Line    int          `xml:"line,attr,omitempty"`
		Failure *junitResult `xml:"failure"`
		Error   *junitResult `xml:"error"`
		Skipped *junitResult `xml:"skipped"`
		Out     string       `xml:"system-out,omitempty"`
	}
	junitResult struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the report as the XML of JUnit: a test suite for each file, a case for each finding. Findings of at least the severity
// least are failures, and mistakes of files are errors, also if least is above Error. Others are cases that pass, with the finding as
// their output; ignored ones are skipped. A file without findings has one case that passes.
func (r Report) JUnit(w io.Writer, least Severity) error {
	all := junitSuites{Name: "lull lint"}
	index := map[string]int{}
	for _, name := range r.Files {
		index[name] = len(all.Suites)
		all.Suites = append(all.Suites, junitSuite{Name: slashed(name)})
	}
	for _, f := range r.Findings {
		s := &all.Suites[index[f.File]]
		c := junitCase{Class: s.Name, File: s.Name, Line: f.Line, Name: fmt.Sprintf("%s:%d:%d %s", s.Name, f.Line, f.Column, f.Rule)}
		result := &junitResult{Message: f.Message, Type: f.Severity.String(), Text: f.inFull()}
		switch {
		case f.Ignored != nil:
			c.Skipped = &junitResult{Message: f.Ignored.Reason}
			s.Skipped++
		case f.Rule == ruleMistake:
			c.Error = result
			s.Errors++
		case f.Severity >= least:
			c.Failure = result
			s.Failures++
		default:
			c.Out = f.Severity.String() + ": " + f.inFull()
		}
		s.Cases = append(s.Cases, c)
	}
	for i := range all.Suites {
		s := &all.Suites[i]
		if len(s.Cases) == 0 {
			s.Cases = []junitCase{{Class: s.Name, File: s.Name, Name: s.Name}}
		}
		s.Tests = len(s.Cases)
		all.Tests, all.Failures, all.Errors = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}

var gitlabSeverities = [severities]string{"info", "major", "critical"}

// GitLab writes the findings that are not ignored as a code quality report, a subset of the format of Code Climate. A finding
// keeps its fingerprint when its line moves.
// https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
func (r Report) GitLab(w io.Writer) error {
	all := []object{}
	seen := map[string]int{}
	for _, f := range r.heeded() {
		file := slashed(f.File)
		key := fmt.Sprintf("%q %q %q", f.Rule, file, f.Path)
		seen[key]++
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", key, seen[key])) // several findings may be about one field
		all = append(all, object{
			"description": f.Message + ". Fix: " + f.Fix.Text,
			"check_name":  f.Rule,
			"fingerprint": hex.EncodeToString(sum[:16]),
			"severity":    gitlabSeverities[min(f.Severity, Error)],
			"location":    object{"path": file, "lines": object{"begin": max(f.Line, 1)}},
		})
	}
	return encode(w, all)
}

// Characters with a meaning in workflow commands of GitHub Actions. The first three have it
// everywhere, the others only in properties.
// https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts
var (
	githubText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

var githubCommands = [severities]string{"notice", "warning", "error"}

// GitHub writes the findings that are not ignored as commands of GitHub Actions, which shows them beside the changed lines.
func (r Report) GitHub(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, f := range r.heeded() {
		fmt.Fprintf(b, "::%s file=%s,line=%d,col=%d,title=%s::%s\n", githubCommands[min(f.Severity, Error)],
			githubProperty.Replace(slashed(f.File)), max(f.Line, 1), max(f.Column, 1), githubProperty.Replace(f.Rule), githubText.Replace(f.inFull()))
	}
	return b.Flush()
}
