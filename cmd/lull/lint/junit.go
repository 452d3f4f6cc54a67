package lint

import (
	"encoding/xml"
	"fmt"
	"io"
)

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

// JUnit writes the report as the XML of JUnit, which most CI systems show: a test suite for each
// file, and a test case for each finding. Findings of at least the severity least are failures, and
// mistakes of files are errors. Others are cases that pass, with the finding as their output;
// ignored ones are skipped. A file without findings has one case that passes. If least is above
// Error only mistakes of files do not pass.
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
