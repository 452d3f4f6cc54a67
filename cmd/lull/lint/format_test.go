package lint

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// report has findings of all severities, of which some are ignored.
func someReport(t *testing.T) Report {
	t.Helper()
	r := must.Have(Check([]File{
		{Name: "dir/a b,c.yaml", Data: []byte("dependencies:\n  a: {budget: {unlimited: true}}\n  b: {backoff: {jitter: none}} # lint:ignore jitter-missing 100% sure\n  c: {breaker: {metrics_only: true}}\n  d: {backoff: {kind: constant}}\n")},
		{Name: "broken.yaml", Data: []byte("dependencies:\n  a: {atempts: 3}\n")},
		{Name: `sub\win.yaml`, Data: []byte("services: {a: {calls: [x]}}\n")},
	}, Options{Off: map[string]string{"backoff-missing": "known"}}))
	return r
}

// The objects of SARIF 2.1.0 that a report may have, with all of their properties that we
// use and (with *) those that must be there, from
// https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json,
// in which no object has others.
var sarifObjects = map[string]map[string]string{
	"log":           {"$schema": "string", "version*": "string", "runs*": "[]run"},
	"run":           {"tool*": "tool", "invocations": "[]invocation", "columnKind": "string", "results": "[]result"},
	"tool":          {"driver*": "component"},
	"component":     {"name*": "string", "version": "string", "informationUri": "string", "rules": "[]rule"},
	"rule":          {"id*": "string", "shortDescription": "multi", "fullDescription": "multi", "help": "multi", "helpUri": "string", "defaultConfiguration": "configuration"},
	"multi":         {"text*": "string", "markdown": "string"},
	"configuration": {"level": "string", "enabled": "bool", "rank": "float64"},
	"invocation":    {"executionSuccessful*": "bool"},
	"result":        {"ruleId": "string", "ruleIndex": "float64", "level": "string", "message*": "message", "locations": "[]location", "partialFingerprints": "fingerprints", "suppressions": "[]suppression"},
	"message":       {"text*": "string", "markdown": "string"}, // text or id
	"location":      {"physicalLocation": "physical"},
	"physical":      {"artifactLocation*": "artifact", "region": "region"}, // or address
	"artifact":      {"uri": "string"},
	"region":        {"startLine": "float64", "startColumn": "float64"},
	"fingerprints":  {"ruleAndField/v1": "string"},
	"suppression":   {"kind*": "string", "justification": "string"},
}

// decoded is the content of JSON.
func decoded[T any](t *testing.T, text string) (v T) {
	t.Helper()
	must.Succeed(json.Unmarshal([]byte(text), &v))
	return v
}

func validSARIF(t *testing.T, path, kind string, v any) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		if element, ok := strings.CutPrefix(kind, "[]"); ok {
			for _, e := range v {
				validSARIF(t, path+"[]", element, e)
			}
			return
		}
	case map[string]any:
		properties := sarifObjects[kind]
		for name := range properties {
			if plain, required := strings.CutSuffix(name, "*"); required && v[plain] == nil {
				t.Errorf("%s.%s is missing", path, plain)
			}
		}
		for name, e := range v {
			of := cmp.Or(properties[name], properties[name+"*"])
			if of == "" {
				t.Errorf("%s.%s is no property of a %s", path, name, kind)
				continue
			}
			validSARIF(t, path+"."+name, of, e)
		}
		return
	}
	check.Equal(t, fmt.Sprintf("%T", v), kind, "kind of %s", path)
}

// A sarifLog is what the tests read of SARIF.
type sarifLog struct {
	Version string
	Runs    []struct {
		Tool struct {
			Driver struct {
				Version string
				Rules   []struct {
					ID                                string
					ShortDescription, FullDescription struct{ Text string }
				}
			}
		}
		Invocations []map[string]bool
		Results     []struct {
			RuleID    string
			RuleIndex int
			Locations []struct {
				PhysicalLocation struct {
					ArtifactLocation map[string]string
					Region           struct{ StartLine, StartColumn int }
				}
			}
			Suppressions []struct{ Kind, Justification string }
		}
	}
}

func TestSARIF(t *testing.T) {
	r := someReport(t)
	text := printed(t, func(w io.Writer) error { return r.SARIF(w, "v1.2.3") })
	validSARIF(t, "", "log", decoded[any](t, text))
	log := decoded[sarifLog](t, text)
	if log.Version != "2.1.0" || len(log.Runs) != 1 || log.Runs[0].Invocations[0]["executionSuccessful"] {
		t.Errorf("%s, %d runs", log.Version, len(log.Runs))
	}
	run := log.Runs[0]
	if len(run.Results) != len(r.Findings) || len(run.Tool.Driver.Rules) != len(Rules()) || run.Tool.Driver.Version != "v1.2.3" {
		t.Errorf("%d results, %d rules", len(run.Results), len(run.Tool.Driver.Rules))
	}
	for _, rule := range run.Tool.Driver.Rules { // what GitHub shows of them
		if n := max(len(rule.ShortDescription.Text), len(rule.FullDescription.Text)); n == 0 || n > 1024 {
			t.Errorf("%s: a description of %d bytes", rule.ID, n)
		}
	}
	var suppressed []string
	uris := map[string]bool{}
	for i, res := range run.Results {
		check.Equal(t, run.Tool.Driver.Rules[res.RuleIndex].ID, res.RuleID, "index %d", res.RuleIndex)
		at := res.Locations[0].PhysicalLocation
		if at.Region.StartLine != r.Findings[i].Line || at.Region.StartColumn != r.Findings[i].Column || at.Region.StartLine < 1 {
			t.Errorf("%+v", at)
		}
		uris[at.ArtifactLocation["uri"]] = true
		for _, s := range res.Suppressions {
			suppressed = append(suppressed, s.Kind+" "+s.Justification)
		}
	}
	if !uris["dir/a%20b,c.yaml"] || !uris["sub/win.yaml"] {
		t.Errorf("%v", uris)
	}
	check.Slices(t, suppressed, []string{"inSource 100% sure", "external known"}, "suppressed")
}

func TestFileURI(t *testing.T) {
	for file, want := range map[string]string{
		"a.yaml": "a.yaml", "./a.yaml": "a.yaml", "a/b.yaml": "a/b.yaml", `a\b.yaml`: "a/b.yaml", "/tmp/a b.yaml": "file:///tmp/a%20b.yaml",
		`C:\x\y.yaml`: "file:///C:/x/y.yaml", "ü%.yaml": "%C3%BC%25.yaml", "a:b.yaml": "./a:b.yaml", "-": "-",
	} {
		check.Equal(t, fileURI(file), want, "%s", file)
	}
}

// One command a line, with what means something in it escaped.
func TestGitHub(t *testing.T) {
	r := someReport(t)
	lines := strings.Split(strings.TrimSuffix(printed(t, r.GitHub), "\n"), "\n")
	if len(lines) != r.Count(Note) {
		t.Fatalf("%d lines for %d findings:\n%s", len(lines), r.Count(Note), strings.Join(lines, "\n"))
	}
	if want := "::error file=dir/a b%2Cc.yaml,line=2,col=27,title=budget-missing::the retries of calls to a have no budget: when it is down it gets up to 5 attempts for each call%0A"; !strings.HasPrefix(lines[0], want) {
		t.Errorf("%s\nwant %s", lines[0], want)
	}
	if !strings.Contains(lines[0], "10%25 of") || !strings.Contains(lines[0], "%0AFix: write budget.unlimited: false") {
		t.Errorf("%s", lines[0])
	}
	if !strings.HasPrefix(lines[1], "::notice file=dir/a b%2Cc.yaml,line=4,") || !strings.HasPrefix(lines[2], "::error file=broken.yaml,line=2,col=7,title=file-mistake::") {
		t.Errorf("%s", strings.Join(lines[1:], "\n"))
	}
	// A file is called as in the repository.
	r = Report{Findings: []Finding{{File: "./a:b%\r\n,.yaml", Rule: "x", Message: "50%: a,\r\nb::c", Fix: Fix{Text: "y"}}}}
	check.Equal(t, printed(t, r.GitHub), "::notice file=a%3Ab%25%0D%0A%2C.yaml,line=1,col=1,title=x::50%25: a,%0D%0Ab::c%0AFix: y\n", "printed(t, r.GitHub)")
}

func TestJSON(t *testing.T) {
	d := decoded[document](t, printed(t, someReport(t).JSON))
	if d.Errors != 2 || d.Warnings != 0 || d.Notes != 2 || d.Ignored != 2 || len(d.Findings) != 6 || len(d.Files) != 3 || !slices.Equal(d.Unreadable, []string{"broken.yaml"}) {
		t.Errorf("%+v", d)
	}
	if a := d.Rules["budget-missing"]; a.Severity != Error || len(a.Sources) == 0 || a.Why == "" {
		t.Errorf("%+v", a)
	}
	if got := printed(t, linted(t, "dependencies:\n  a: {}\n").JSON); !strings.Contains(got, `"findings": []`) || !strings.Contains(got, `"unreadable": []`) {
		t.Error(got)
	}
}

func TestText(t *testing.T) {
	got := printed(t, someReport(t).Text)
	for _, want := range []string{
		"dir/a b,c.yaml:2:27: error: the retries of calls to a have no budget: when it is down it gets up to 5 attempts for each call [budget-missing]\n" +
			"    2 |   a: {budget: {unlimited: true}}\n" +
			"      |                           ^~~~\n",
		"\n4 findings in 3 files: 2 errors, 2 notes; 2 ignored\n",
		"\nignored: dir/a b,c.yaml:3: jitter-missing: 100% sure\n",
		"\nignored: dir/a b,c.yaml:5: backoff-missing: known\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nis missing in\n%s", want, got)
		}
	}
}

// The caret stands below the column, however long the line is.
func TestCaret(t *testing.T) {
	long := "dependencies: {" + strings.Repeat("p: {attempts: 1}, ", 20) + "späť: {backoff: {jitter: none}}, " + strings.Repeat("q: {attempts: 1}, ", 20) + "r: {}}"
	column := len([]rune(long[:strings.Index(long, "none")])) + 1
	line, at := window(long, column)
	if got := string([]rune(line)[at-1 : at+3]); got != "none" || len([]rune(line)) > lineShown+2 {
		t.Errorf("%q at %d: %q", line, at, got)
	}
	if got := caret(line, at); !strings.HasSuffix(got, " ^~~~") || len(got) != at+3 {
		t.Errorf("%q", got)
	}
	for _, c := range []int{0, 1, 99, 100000} {
		line, at := window(long, c)
		caret(line, at)
	}
}

// What a terminal would obey is not printed.
func TestNothingMovesTheCursor(t *testing.T) {
	for _, r := range []Report{
		linted(t, "dependencies:\n  \"a\u202eb\": {backoff: {jitter: none}} # lint:ignore jitter-missing \u202e\n"),
		{Findings: []Finding{{File: "\u202e.yaml"}, {File: "\u202e.yaml", Ignored: &Ignored{}}}},
	} {
		if got := printed(t, r.Text); strings.ContainsRune(got, '\u202e') {
			t.Errorf("%q", got)
		}
	}
}

// JUnit's XML has a suite for each file and a case for each finding; what is below the threshold
// passes, and what is ignored is skipped.
func TestJUnit(t *testing.T) {
	junit := func(r Report, least Severity) (text string, all junitSuites) {
		text = printed(t, func(w io.Writer) error { return r.JUnit(w, least) })
		if err := xml.Unmarshal([]byte(text), &all); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return text, all
	}
	for least, wanted := range []int{Note: 3, Warning: 1, Error: 1, Error + 1: 0} {
		_, all := junit(someReport(t), Severity(least))
		if all.Tests != 6 || all.Failures != wanted || all.Errors != 1 || len(all.Suites) != 3 || all.Suites[0].Skipped != 2 {
			t.Errorf("%d: %+v", least, all)
		}
		if first := all.Suites[0].Cases[0]; first.File != "dir/a b,c.yaml" || first.Line != 2 || wanted > 0 && (first.Failure == nil || !strings.Contains(first.Failure.Text, "Fix: ")) {
			t.Errorf("%+v", first)
		}
		for _, s := range all.Suites {
			failures := 0
			for _, each := range s.Cases {
				if each.Failure != nil {
					failures++
				}
			}
			if failures != s.Failures || len(s.Cases) != s.Tests {
				t.Errorf("%+v", s)
			}
		}
	}
	text, _ := junit(Report{Files: []string{`x\good.yaml`}}, Note)
	if !strings.Contains(text, `<testcase classname="x/good.yaml" name="x/good.yaml" file="x/good.yaml">`) {
		t.Error(text)
	}
	junit(Report{Files: []string{"a"}, Findings: []Finding{{File: "a", Message: "<&\"\x01", Fix: Fix{Text: "]]>"}}}}, Note)
}

type gitlabEntry struct {
	Description, Fingerprint, Severity string
	CheckName                          string `json:"check_name"`
	Location                           struct {
		Path  string
		Lines struct{ Begin int }
	}
}

// GitLab's report has an entry for each finding that is not ignored, and their fingerprints differ.
func TestGitLab(t *testing.T) {
	r := someReport(t)
	r.Findings = append(r.Findings, r.Findings[0]) // the same field once more
	all := decoded[[]gitlabEntry](t, printed(t, r.GitLab))
	check.Equal(t, len(all), r.Count(Note), "entries")
	prints := map[string]bool{}
	for _, e := range all {
		if e.Description == "" || e.CheckName == "" || len(e.Fingerprint) != 32 || prints[e.Fingerprint] || e.Location.Lines.Begin < 1 {
			t.Errorf("%+v", e)
		}
		prints[e.Fingerprint] = true
	}
	if all[0].Severity != "critical" || all[1].Severity != "info" || all[3].Location.Path != "sub/win.yaml" {
		t.Errorf("%+v", all)
	}
	// An entry keeps its fingerprint when its line moves.
	r.Findings[0].Line = 99
	if again := printed(t, r.GitLab); !strings.Contains(again, all[0].Fingerprint) {
		t.Error(again)
	}
	check.Equal(t, printed(t, Report{}.GitLab), "[]\n", "printed(t, Report{}.GitLab)")
}
