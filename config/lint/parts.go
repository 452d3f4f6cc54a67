package lint

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/config/convert"
	"github.com/lullgo/lull/config/internal/syntax"
	"github.com/lullgo/lull/internal/tree"
)

// A file may be more than a policy file: a stream of documents, as helm prints it, with objects of
// Kubernetes among which are the routes of a proxy, and ConfigMaps with policy files in them. Its
// parts are read one by one.

// A Skip is a file, or a part of one, in which there was nothing to check.
type Skip struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// A part is a document of a file, or a text within one.
type part struct {
	file string
	data []byte
	// line and column are added to the places of data to get those of the file.
	line, column int
	fixed        *config.Position // if not nil, the place of everything: data is not in the file as it is
}

// place returns the place in the file of one in data.
func (t part) place(line, column int) (int, int) {
	if t.fixed != nil {
		return t.fixed.Line, t.fixed.Column
	}
	return line + t.line, column + t.column
}

// rules are those of package convert: files of other systems can be large.
var rulesOfParts = syntax.Rules{Bytes: 16 << 20, Documents: 10_000, Aliased: 100_000}

// A gathering is what Check has found in files so far.
type gathering struct {
	report *Report
	units  []*unit
	// foreign are the documents of other systems, a text for each file in which the lines of all
	// others are empty. They are read together.
	foreign []convert.File
	known   map[string]bool // the files that are in report.Files
}

// add takes a file apart.
func (g *gathering) add(f File, data []byte) {
	docs := documents(f.Name, data)
	if len(docs) == 1 {
		g.single(f, docs[0])
		return
	}
	checked := false
	var other []string // of no known kind
	var foreign []part
	for _, d := range docs {
		switch kind, roots := kindOf(d); kind {
		case foreignPart:
			foreign = append(foreign, d)
		case policyPart:
			checked = g.policy(d) || checked
		case objectPart:
			checked = g.configMaps(d, roots) || checked
		case brokenPart:
			if reason := template(f, d.data); reason != "" {
				g.skip(f.Name, reason)
				return
			}
			checked = g.policy(d) || checked
		case otherPart:
			if !f.Found {
				other = append(other, fmt.Sprint(d.line+1))
			}
		}
	}
	if len(foreign) > 0 {
		g.foreign = append(g.foreign, convert.File{Name: f.Name, Data: only(data, foreign)})
		return
	}
	switch {
	case len(other) > 0:
		g.skip(f.Name, "the document in line "+strings.Join(other, ", ")+" is nothing that is known here")
	case !checked:
		g.skip(f.Name, nothingThere)
	}
}

const nothingThere = "nothing in it says how calls are made"

// single takes a file of one document apart. If its user has named it, and it is nothing that is
// known, it is taken for a policy file with mistakes.
func (g *gathering) single(f File, d part) {
	kind, roots := kindOf(d)
	switch {
	case kind == foreignPart:
		g.foreign = append(g.foreign, convert.File{Name: f.Name, Data: d.data})
	case kind == objectPart:
		if !g.configMaps(d, roots) {
			g.skip(f.Name, nothingThere)
		}
	case kind == brokenPart && template(f, d.data) != "":
		g.skip(f.Name, template(f, d.data))
	case f.Found && (kind == otherPart || kind == emptyPart), f.Found && kind == policyPart && !isPolicy(d, roots):
		g.skip(f.Name, nothingThere)
	default:
		g.policy(d)
	}
}

func (g *gathering) skip(file, why string) {
	g.report.Skipped = append(g.report.Skipped, Skip{file, why})
}

// read marks a file as one that was checked.
func (g *gathering) read(file string) {
	if !g.known[file] {
		g.known[file] = true
		g.report.Files = append(g.report.Files, file)
	}
}

// policy reads a policy file, and reports true.
func (g *gathering) policy(t part) bool {
	g.read(t.file)
	f, err := config.ParsePolicyFile(t.file, t.data)
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
		return true
	}
	g.units = append(g.units, &unit{name: t.file, policy: f, place: func(path string) (int, int) {
		at := f.Position(path)
		return t.place(at.Line, at.Column)
	}})
	return true
}

func (g *gathering) unreadable(file string) {
	if !slices.Contains(g.report.Unreadable, file) {
		g.report.Unreadable = append(g.report.Unreadable, file)
	}
}

// readForeign reads the documents of other systems. A file with a mistake is left out, and the
// others are read without it.
func (g *gathering) readForeign() {
	for {
		set, _, err := convert.Read(g.foreign, convert.Options{})
		wrong, ok := errors.AsType[config.Mistakes](err)
		if !ok {
			g.policiesOf(set)
			return
		}
		bad := map[string]bool{}
		for _, m := range mistakes("", err) {
			g.report.Findings = append(g.report.Findings, m)
			bad[m.File] = true
		}
		for _, m := range wrong {
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

// policiesOf makes a unit of the dependencies of each file.
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
	for _, f := range g.foreign {
		switch u := of[f.Name]; {
		case u != nil:
			g.read(f.Name)
			g.units = append(g.units, u)
		case used[f.Name]: // by dependencies that begin in another file
			g.read(f.Name)
		case !g.known[f.Name]:
			g.skip(f.Name, nothingThere)
		}
	}
}

// split splits a path into the name of a dependency and the field.
func (u *unit) split(path string) (dependency, field string) {
	after := strings.TrimPrefix(path, "dependencies.")
	for _, d := range u.policy.Dependencies {
		if rest, ok := strings.CutPrefix(after, d.Name); ok && (rest == "" || rest[0] == '.') && len(d.Name) > len(dependency) {
			dependency, field = d.Name, strings.TrimPrefix(rest, ".")
		}
	}
	return dependency, field
}

// A partKind is what a document is.
type partKind uint8

const (
	otherPart   partKind = iota // nothing that is known
	policyPart                  // a policy file
	foreignPart                 // a document of another system that says how calls are made
	objectPart                  // another object of Kubernetes
	emptyPart                   // nothing but comments
	brokenPart                  // it cannot be parsed
)

func kindOf(t part) (partKind, []*tree.Node) {
	roots, err := syntax.Parse(t.file, t.data, rulesOfParts)
	if err != nil {
		return brokenPart, nil
	}
	roots = slices.DeleteFunc(roots, func(n *tree.Node) bool { return n.Kind == tree.Null })
	formats := convert.Recognise(convert.File{Name: t.file, Data: t.data})
	switch {
	case len(roots) == 0:
		return emptyPart, nil
	case slices.ContainsFunc(formats, func(f convert.Format) bool { return f != convert.Lull }):
		return foreignPart, roots
	case len(formats) > 0 && len(roots) == 1:
		return policyPart, roots
	case slices.ContainsFunc(roots, isObject):
		return objectPart, roots
	}
	return otherPart, roots
}

// isObject reports whether n is an object of Kubernetes.
func isObject(n *tree.Node) bool { return n.Get("apiVersion") != nil }

// policyFields are fields by which a file in a directory is known to be a policy file: others, too,
// have dependencies and services.
var policyFields = []string{"attempts", "attempt_timeout", "deadline", "backoff", "budget", "breaker", "hedge", "preset", "hint_limit", "rate_limited_base", "nested"}

// isPolicy reports whether a document in a file that nobody has named is a policy file.
func isPolicy(t part, roots []*tree.Node) bool {
	if _, err := config.ParsePolicyFile(t.file, t.data); err == nil {
		return true
	}
	has := func(n *tree.Node) bool {
		return n != nil && slices.ContainsFunc(policyFields, func(name string) bool { return n.Get(name) != nil })
	}
	for _, root := range roots {
		if has(root) || has(root.Get("defaults")) {
			return true
		}
		for _, key := range []string{"dependencies", "policies"} {
			if n := root.Get(key); n != nil && slices.ContainsFunc(n.Members, func(m tree.Member) bool { return has(m.Value) }) {
				return true
			}
		}
	}
	return false
}

// template returns why a file that cannot be parsed is skipped: it is a template.
func template(f File, data []byte) string {
	if f.Found && bytes.Contains(data, []byte("{{")) {
		return "it is a template: check what is made of it, such as helm template . | lull lint -"
	}
	return ""
}

// documents splits a stream of YAML into its documents.
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

// isEmpty reports whether there is nothing in t but comments.
func isEmpty(t part) bool {
	for text := range bytes.Lines(t.data) {
		if text = bytes.TrimSpace(text); len(text) > 0 && text[0] != '#' && string(text) != "---" {
			return false
		}
	}
	return true
}

// only returns data with empty lines in place of those that are in none of the parts.
func only(data []byte, parts []part) []byte {
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
