package main

import (
	"strings"
	"testing"
)

const begin = `{"config":{"go_version":"go1.26.8","scan_level":"symbol"}}
{"SBOM":{"go_version":"go1.26.8","modules":[{"path":"m"}],"roots":["m","m/n"]}}
{"progress":{"message":"Scanning"}}
{"osv":{"id":"GO-1","summary":"It is bad"}}
`

// finding is the message for a vulnerability in a module; trace is the rest of its frames.
func finding(id, module, version, mended, first, rest string) string {
	return `{"finding":{"osv":"` + id + `","fixed_version":"` + mended + `","trace":[{"module":"` + module + `","version":"` + version + `"` + first + `}` + rest + "]}}\n"
}

func TestJudge(t *testing.T) {
	const called, by = `,"package":"x/h","receiver":"*R","function":"F"`, `,{"module":"m","package":"m/n","function":"G"}`
	required := finding("GO-1", "x", "v0.1.0", "v0.2.0", "", "")
	imported := finding("GO-1", "x", "v0.1.0", "v0.2.0", `,"package":"x/h"`, "")
	inGo := finding("GO-2", "stdlib", "v1.26.8", "v1.26.9", called, by) + finding("GO-3", "stdlib", "v1.26.8", "v1.26.10", called, by)
	const good = "no known vulnerability of a dependency is called by 2 packages\n"
	const known = "go1.26.8 has vulnerabilities in what lull calls, go1.26.10 mends it: GO-2, GO-3\n"
	for name, c := range map[string]struct {
		in       string
		released string
		strict   bool
		out, err string
	}{
		"nothing":              {in: begin, out: good},
		"required":             {in: begin + required, out: "not called: GO-1 in x v0.1.0, mended in v0.2.0: It is bad\n" + good},
		"imported":             {in: begin + required + imported, out: "not called: GO-1 in x v0.1.0, mended in v0.2.0: It is bad\n" + good},
		"called":               {in: begin + required + imported + finding("GO-1", "x", "v0.1.0", "v0.2.0", called, by), err: "GO-1 in x v0.1.0, mended in v0.2.0: It is bad\n  x/h.R.F is called by m/n.G"},
		"called, not mended":   {in: begin + finding("GO-1", "x", "v0.1.0", "", called, by), err: "GO-1 in x v0.1.0, not mended in any version: It is bad"},
		"in two modules":       {in: begin + finding("GO-1", "x", "v1.0.0", "", "", "") + finding("GO-1", "y", "v1.0.0", "", called, by), out: "not called: GO-1 in x v1.0.0, not mended in any version: It is bad\n", err: "GO-1 in y v1.0.0"},
		"of Go":                {in: begin + inGo, released: "go1.26.10", out: known + good},
		"of Go, imported":      {in: begin + finding("GO-2", "stdlib", "v1.26.8", "v1.26.9", `,"package":"net"`, ""), released: "go1.26.8", strict: true, out: good},
		"of Go, released":      {in: begin + inGo, released: "go1.26.9", out: known, err: "GO-3 in stdlib v1.26.8, mended in v1.26.10"},
		"of Go, not mended":    {in: begin + finding("GO-1", "stdlib", "v1.26.8", "", called, by) + inGo, released: "go1.26.10", out: "go1.26.8 has vulnerabilities in what lull calls, no release mends all of it: GO-1, GO-2, GO-3\n", err: "GO-1"},
		"of Go, another minor": {in: begin + inGo, released: "go1.25.1", out: known + good},
		"of Go, for a release": {in: begin + inGo, released: "go1.26.10", strict: true, out: known, err: "GO-2"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := read(strings.NewReader(c.in))
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			err = s.judge(&out, c.released, c.strict)
			if out.String() != c.out || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("printed\n%swant\n%serror %v, want %q", out.String(), c.out, err, c.err)
			}
		})
	}
}

// A scan that did not happen finds nothing.
func TestNoScan(t *testing.T) {
	for name, in := range map[string]string{
		"nothing":        "",
		"no packages":    `{"config":{"scan_level":"symbol"}}`,
		"only modules":   strings.Replace(begin, "symbol", "module", 1),
		"broken off":     begin + `{"finding":{"osv":`,
		"something else": "vulncheck: no such file\n",
	} {
		if _, err := read(strings.NewReader(in)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
