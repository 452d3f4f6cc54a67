package lint

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lullgo/lull/cmd/lull/convert"
	proxyfile "github.com/lullgo/lull/cmd/lull/internal/proxy/file"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/tree"
)

// A file may be a stream of documents, as helm prints it: routes of a proxy, ConfigMaps with policy files, other objects.

// A Skip is a file, or a part of one, in which there was nothing to check.
type Skip = convert.Skip

type part struct {
	file  string
	data  []byte
	line  int              // is added to the lines of data to get those of the file
	fixed *config.Position // if not nil, the place of everything: data is not in the file as it is
}

func (t part) asFile() convert.File { return convert.File{Name: t.file, Data: t.data} }

// place returns the place in the file of one in data.
func (t part) place(line, column int) (int, int) {
	if t.fixed != nil {
		return t.fixed.Line, t.fixed.Column
	}
	return line + t.line, column
}

type gathering struct {
	report *Report
	units  []*unit
	// foreign are the documents of other systems, which are read together. Lines of other documents are empty.
	foreign []convert.File
	found   map[string]bool // the files of foreign that nobody has named
	known   map[string]bool // the files that are in report.Files
}

func (g *gathering) add(f File, data []byte) {
	if why := convert.Unread(convert.File{Name: f.Name, Data: data}, f.Found); why != "" {
		g.skip(f.Name, why)
		return
	}
	docs := documents(f.Name, data)
	checked := false
	var other []part // of no known kind
	var foreign []part
	for _, d := range docs {
		switch kind := kindOf(d); {
		case kind == foreignPart:
			foreign = append(foreign, d)
		case kind == objectPart:
			read, others := g.configMaps(d)
			if checked = read || checked; others {
				foreign = append(foreign, d)
			}
		case kind == policyPart && (!f.Found || convert.IsPolicyFile(d.asFile())), kind == brokenPart, len(docs) == 1 && !f.Found:
			// A file that its user has named, and that is nothing that is known, is a policy file with mistakes.
			g.policy(d)
			checked = true
		default:
			other = append(other, d)
		}
	}
	if slices.ContainsFunc(foreign, func(p part) bool { return slices.Contains(convert.Recognise(p.asFile()), convert.Resilience4j) }) {
		foreign, other = append(foreign, other...), nil // documents of one application
		slices.SortStableFunc(foreign, func(a, b part) int { return a.line - b.line })
	}
	if len(foreign) > 0 {
		g.foreign = append(g.foreign, convert.File{Name: f.Name, Data: keepLines(data, foreign)})
		g.found[f.Name] = f.Found
		return
	}
	switch {
	case len(other) > 0 && !f.Found:
		lines := choice.Each(other, func(p part) string { return fmt.Sprint(p.line + 1) })
		g.skip(f.Name, "the document in line "+strings.Join(lines, ", ")+" is nothing that is known here")
	case !checked:
		g.skip(f.Name, convert.NothingThere)
	}
}

func (g *gathering) skip(file, why string) {
	g.report.Skipped = append(g.report.Skipped, Skip{File: file, Why: why})
}

func (g *gathering) read(file string) {
	if !g.known[file] {
		g.known[file] = true
		g.report.Files = append(g.report.Files, file)
	}
}

func (g *gathering) policy(t part) {
	g.read(t.file)
	f, err := proxyfile.ParsePolicies(t.file, t.data)
	if err != nil {
		g.unreadable(t.file)
		lines := split(t.data)
		for _, m := range mistakes(t.file, err) {
			if last := len(lines); m.Line > last { // it is about the end of the text
				m.Line, m.Column = last, utf8.RuneCountInString(lines[last-1])+1
			}
			m.Line, m.Column = t.place(m.Line, m.Column)
			g.report.Findings = append(g.report.Findings, m)
		}
		return
	}
	g.units = append(g.units, &unit{name: t.file, policy: f, place: func(path string) (int, int) {
		at := f.Position(path)
		return t.place(at.Line, at.Column)
	}})
}

func (g *gathering) unreadable(file string) {
	if !slices.Contains(g.report.Unreadable, file) {
		g.report.Unreadable = append(g.report.Unreadable, file)
	}
}

// configMaps reads the policy files in ConfigMaps, and reports whether there are any, and any of other systems.
func (g *gathering) configMaps(t part) (read, others bool) {
	for _, e := range convert.InConfigMaps(t.asFile()) {
		if !convert.IsPolicyFile(e.File) {
			others = true
			continue
		}
		inner := part{file: t.file, data: e.Data, line: t.line}
		if e.Whole {
			line, column := t.place(e.At.Line, e.At.Column)
			inner.fixed = &config.Position{File: t.file, Line: line, Column: column}
		}
		g.policy(inner)
		read = true
	}
	return read, others
}

// readForeign reads the documents of other systems. A file with a mistake is left out, and the others are read without it.
func (g *gathering) readForeign() {
	for {
		set, _, err := convert.Read(g.foreign, convert.Options{Found: g.found, Foreign: true})
		if _, wrong := errors.AsType[config.Mistakes](err); !wrong {
			g.policiesOf(set)
			return
		}
		bad := map[string]bool{}
		for _, m := range mistakes("", err) {
			g.report.Findings = append(g.report.Findings, m)
			bad[m.File] = true
		}
		left := slices.DeleteFunc(slices.Clone(g.foreign), func(f convert.File) bool { return bad[f.Name] })
		for _, f := range g.foreign {
			if bad[f.Name] {
				g.read(f.Name)
				g.unreadable(f.Name)
			}
		}
		if len(left) == len(g.foreign) {
			return
		}
		g.foreign = left
	}
}

func (g *gathering) policiesOf(set *convert.Set) {
	of, used := map[string]*unit{}, map[string]bool{}
	if set != nil {
		for _, d := range set.File.Dependencies {
			file := set.Position(d.Name, "").File
			u := of[file]
			if u == nil {
				u = &unit{name: file, policy: &config.PolicyFile{}, set: set}
				u.place = func(path string) (int, int) {
					dependency, field := u.split(path)
					at := set.Position(dependency, field)
					return at.Line, at.Column
				}
				of[file] = u
			}
			u.policy.Dependencies = append(u.policy.Dependencies, d)
			for _, file := range set.Files(d.Name) {
				used[file] = true
			}
		}
	}
	left := map[string]string{}
	for _, s := range set.Skipped() {
		left[s.File] = s.Why
	}
	for _, f := range g.foreign {
		switch u := of[f.Name]; {
		case u != nil:
			g.read(f.Name)
			g.units = append(g.units, u)
		case used[f.Name]: // by dependencies that begin in another file
			g.read(f.Name)
		case !g.known[f.Name]:
			g.skip(f.Name, cmp.Or(left[f.Name], convert.NothingThere))
		}
	}
}

func (u *unit) split(path string) (dependency, field string) {
	after := strings.TrimPrefix(path, "dependencies.")
	for _, d := range u.policy.Dependencies {
		if rest, ok := strings.CutPrefix(after, d.Name); ok && (rest == "" || rest[0] == '.') && len(d.Name) > len(dependency) {
			dependency, field = d.Name, strings.TrimPrefix(rest, ".")
		}
	}
	return dependency, field
}

type partKind uint8

const (
	otherPart   partKind = iota // nothing that is known
	policyPart                  // a policy file
	foreignPart                 // a document of another system that says how calls are made
	objectPart                  // another object of Kubernetes
	brokenPart                  // it cannot be parsed
)

func kindOf(t part) partKind {
	roots, err := convert.Parse(t.asFile())
	if err != nil {
		return brokenPart
	}
	formats := convert.Recognise(t.asFile())
	switch {
	case slices.ContainsFunc(formats, func(f convert.Format) bool { return f != convert.Lull }):
		return foreignPart
	case len(formats) > 0 && len(roots) == 1:
		return policyPart
	case slices.ContainsFunc(roots, func(n *tree.Node) bool { return n.Get("apiVersion") != nil }): // of Kubernetes
		return objectPart
	}
	return otherPart
}

func documents(file string, data []byte) []part {
	start := bytes.TrimLeft(data, " \t\r\n")
	if len(start) > 0 && (start[0] == '{' || start[0] == '[') {
		return []part{{file: file, data: data}} // JSON
	}
	var all []part
	from, line, number := 0, 0, 0
	for at := 0; at < len(data); number++ {
		end := bytes.IndexByte(data[at:], '\n') + 1 + at
		if end == at {
			end = len(data)
		}
		if text := data[at:end]; at > from && separates(text) {
			all = append(all, part{file: file, data: data[from:at], line: line})
			from, line = at, number
		}
		at = end
	}
	all = append(all, part{file: file, data: data[from:], line: line})
	if some := slices.DeleteFunc(slices.Clone(all), isEmpty); len(some) > 0 {
		return some
	}
	return []part{{file: file, data: data}}
}

// separates reports whether a line begins a document. In YAML such a line does so wherever it is.
func separates(line []byte) bool {
	return bytes.HasPrefix(line, []byte("---")) && (len(line) == 3 || bytes.IndexByte([]byte(" \t\r\n"), line[3]) >= 0)
}

func isEmpty(t part) bool {
	for text := range bytes.Lines(t.data) {
		if text = bytes.TrimSpace(text); len(text) > 0 && text[0] != '#' && string(text) != "---" {
			return false
		}
	}
	return true
}

// keepLines returns data with empty lines in place of those that are in none of the parts.
func keepLines(data []byte, parts []part) []byte {
	var out []byte
	line := 0
	for _, t := range parts {
		for ; line < t.line; line++ {
			out = append(out, '\n')
		}
		out = append(out, t.data...)
		line += bytes.Count(t.data, []byte("\n"))
	}
	return out
}
