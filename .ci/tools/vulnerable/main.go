// Command vulnerable judges the known vulnerabilities that govulncheck has found.
//
//	govulncheck -format json ... | vulnerable -released go1.26.11
//
// One that is called in a dependency is an error. One that is in a required module, but is not called, is printed. One
// that is called in the standard library is printed with the release of Go that mends it. It is an error
// if the Go that archives and images are built with has it too: -released names that. With -strict each of the standard library is an error.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/lullgo/lull/internal/must"
)

func main() {
	released := flag.String("released", "", "the `release` of Go that archives and images are built with, such as go1.26.11")
	strict := flag.Bool("strict", false, "a vulnerability of the standard library is an error")
	flag.Parse()
	must.Main("vulnerable", 1, func() error { return must.Have(read(os.Stdin)).judge(os.Stdout, *released, *strict) })
}

// A message is what is read of one of govulncheck's; see golang.org/x/vuln/internal/govulncheck.
type message struct {
	Config *struct {
		GoVersion string `json:"go_version"`
		ScanLevel string `json:"scan_level"`
	}
	SBOM *struct{ Roots []string }
	OSV  *struct{ ID, Summary string }

	Finding *struct {
		OSV          string
		FixedVersion string `json:"fixed_version"`
		Trace        []frame
	}
}

// A frame is a place on the way from lull to the vulnerable function, which is the first. If the vulnerable package is imported and
// nothing of it is called there is one frame without a function; if the module is only required, there is one without a package.
type frame struct {
	Module, Version, Package, Receiver, Function string
}

func (f frame) String() string {
	name := f.Function
	if f.Receiver != "" {
		name = strings.TrimPrefix(f.Receiver, "*") + "." + name
	}
	return f.Package + "." + name
}

const library = "stdlib" // the standard library, as a module

// A vulnerability is one that a module has in the version that is used.
type vulnerability struct {
	id, summary      string
	module, version  string
	mended           string // the version without it; empty: none
	called, calledBy string // functions; empty: lull does not call it
}

func (v *vulnerability) String() string {
	mended := "not mended in any version"
	if v.mended != "" {
		mended = "mended in " + v.mended
	}
	text := fmt.Sprintf("%s in %s %s, %s: %s", v.id, v.module, v.version, mended, v.summary)
	if v.called != "" {
		text += fmt.Sprintf("\n  %s is called by %s", v.called, v.calledBy)
	}
	return text
}

// A scan is what govulncheck has found.
type scan struct {
	packages int    // that were looked at
	version  string // of Go
	all      []*vulnerability
}

// read reads the messages of a scan. It returns an error if they are not those of a whole one.
func read(in io.Reader) (*scan, error) {
	s := new(scan)
	summaries := map[string]string{}
	found := map[[2]string]*vulnerability{}
	level := ""
	for d := json.NewDecoder(in); ; {
		var m message
		if err := d.Decode(&m); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read govulncheck: %w", err)
		}
		switch {
		case m.Config != nil:
			s.version, level = m.Config.GoVersion, m.Config.ScanLevel
		case m.SBOM != nil:
			s.packages += len(m.SBOM.Roots)
		case m.OSV != nil:
			summaries[m.OSV.ID] = m.OSV.Summary
		case m.Finding != nil && len(m.Finding.Trace) > 0:
			f, first, last := m.Finding, m.Finding.Trace[0], m.Finding.Trace[len(m.Finding.Trace)-1]
			v := found[[2]string{f.OSV, first.Module}]
			if v == nil {
				v = &vulnerability{id: f.OSV, module: first.Module, version: first.Version, mended: f.FixedVersion}
				found[[2]string{f.OSV, first.Module}] = v
			}
			if first.Function != "" && v.called == "" {
				v.called, v.calledBy = first.String(), last.String()
			}
		}
	}
	if level != "symbol" || s.packages == 0 {
		return nil, fmt.Errorf("this is no scan of what is called: level %q, %d packages", level, s.packages)
	}
	s.all = slices.SortedFunc(maps.Values(found), func(a, b *vulnerability) int { return strings.Compare(a.id+a.module, b.id+b.module) })
	for _, v := range s.all {
		v.summary = summaries[v.id]
	}
	return s, nil
}

// judge prints what was found, and returns those that must not be.
func (s *scan) judge(out io.Writer, released string, strict bool) error {
	var problems []error
	mended, all := "v0", true // the first release of Go that mends all of the library's, if there is one
	var inGo []string
	for _, v := range s.all {
		switch {
		case v.module != library && v.called != "":
			problems = append(problems, errors.New(v.String()))
		case v.module != library:
			fmt.Fprintf(out, "not called: %s\n", v)
		case v.called != "":
			inGo = append(inGo, v.id)
			all = all && v.mended != ""
			if semver.Compare(v.mended, mended) > 0 {
				mended = v.mended
			}
			if strict || s.remains(v, released) {
				problems = append(problems, errors.New(v.String()))
			}
		}
	}
	if len(inGo) > 0 {
		by := "no release mends all of it"
		if all {
			by = "go" + strings.TrimPrefix(mended, "v") + " mends it"
		}
		fmt.Fprintf(out, "%s has vulnerabilities in what lull calls, %s: %s\n", s.version, by, strings.Join(inGo, ", "))
	}
	if len(problems) == 0 {
		fmt.Fprintf(out, "no known vulnerability of a dependency is called by %d packages\n", s.packages)
	}
	return errors.Join(problems...)
}

// remains reports whether the release of Go has a vulnerability of the one that runs this scan. Of another minor
// release nothing is known.
func (s *scan) remains(v *vulnerability, released string) bool {
	release := "v" + strings.TrimPrefix(released, "go")
	return v.mended == "" || semver.MajorMinor(release) == semver.MajorMinor(v.version) && semver.Compare(release, v.mended) < 0
}
