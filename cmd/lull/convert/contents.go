package convert

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"

	proxyfile "github.com/lullgo/lull/cmd/lull/internal/proxy/file"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/tree"
)

// What a file is, before it is read. lull lint and lull convert ask the same functions.

// A Skip is a file that was not read, and why.
type Skip struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// Reasons why a file is skipped.
const (
	// NothingThere is the reason for a file that has nothing of what is read here.
	NothingThere = "nothing in it says how calls are made"
	templateWhy  = "it is a template: read what is made of it, such as the output of helm template"
)

// actions are the marks of templates: of Go and Jinja, and of ERB.
var actions = regexp.MustCompile(`\{\{[^{}\n]*\}\}|\{%[^\n]*%\}|<%[^\n]*%>`)

var comments = regexp.MustCompile(`(?m)^[ \t]*#.*\n?`)

// templated reports whether a value in n, or a key, is that of a template. A text of several lines is a file within the file.
func templated(n *tree.Node) bool {
	if n.Kind == tree.Text {
		return !strings.Contains(n.Text, "\n") && actions.MatchString(n.Text)
	}
	return slices.ContainsFunc(n.Members, func(m tree.Member) bool { return actions.MatchString(m.Key) }) || n.Any(templated)
}

// Unread returns why a file that was found is no file for lull: it is a template, it cannot be parsed, or it has nothing to read. Of a
// file that somebody has named only the first is a reason. Empty: it is to be read.
func Unread(f File, found bool) string {
	if !found && !actions.Match(f.Data) {
		return ""
	}
	roots, err := parse(f.Name, f.Data)
	wrong, broken := errors.AsType[config.Mistakes](err)
	switch {
	case broken && actions.Match(comments.ReplaceAll(f.Data, nil)), slices.ContainsFunc(roots, func(root *tree.Node) bool {
		format, ok := recognise(root)
		return ok && format != Lull && templated(root)
	}):
		return templateWhy
	case !found:
		return ""
	case broken && !firstLines.Match(f.Data):
		return cannotRead(wrong)
	case !broken && !slices.ContainsFunc(roots, func(root *tree.Node) bool { return len(formatsIn(root)) > 0 || len(texts(root, f)) > 0 }),
		len(roots) == 1 && isLull(roots[0]) && !IsPolicyFile(f):
		return NothingThere
	}
	return ""
}

func cannotRead(wrong config.Mistakes) string {
	m := wrong[0]
	m.File = ""
	return "it cannot be read: " + m.Error()
}

// firstLines are those of policy files, by which a text that cannot be parsed is taken for one.
var firstLines = regexp.MustCompile(`(?m)^(dependencies|defaults|attempts|backoff|budget|breaker):`)

func isLull(root *tree.Node) bool {
	format, ok := recognise(root)
	return ok && format == Lull
}

// policyFields are fields by which a file is known to be a policy file: others, too, have dependencies and services.
var policyFields = []string{"attempts", "attempt_timeout", "deadline", "backoff", "budget", "breaker", "hedge", "preset", "hint_limit", "rate_limited_base", "nested"}

// IsPolicyFile reports whether a file is one of lull's own, perhaps with mistakes: it can be read, or has a field of a policy.
func IsPolicyFile(f File) bool {
	roots, err := parse(f.Name, f.Data)
	if err != nil || len(roots) != 1 || !isLull(roots[0]) {
		return false
	}
	if _, err := proxyfile.ParsePolicies(f.Name, f.Data); err == nil {
		return true
	}
	has := func(n *tree.Node) bool {
		return slices.ContainsFunc(policyFields, func(name string) bool { return n.Get(name) != nil })
	}
	root := roots[0]
	dependencies := root.Get("dependencies")
	return has(root) || has(root.Get("defaults")) || dependencies != nil && slices.ContainsFunc(dependencies.Members, func(m tree.Member) bool { return has(m.Value) })
}

// An Embedded is a file within a file: the value of a key of a ConfigMap.
type Embedded struct {
	// Key is the key, and File the file within, under the name of the one around it. It has the same
	// lines and columns as there; other lines are empty.
	Key string
	File
	// At is where the key is. Whole: what is within is not in the file line by line, and all of it is at that line.
	At    config.Position
	Whole bool

	path string // of the key
}

// InConfigMaps returns the policy files, and the files of other systems, within the ConfigMaps of a file.
func InConfigMaps(f File) (all []Embedded) {
	roots, _ := parse(f.Name, f.Data)
	for _, root := range roots {
		all = append(all, texts(root, f)...)
	}
	return all
}

func texts(root *tree.Node, f File) (all []Embedded) {
	if items := root.Get("items"); items != nil {
		for i, item := range items.Items {
			for _, e := range texts(item, f) {
				e.path = tree.Concat(tree.Element("items", i), e.path)
				all = append(all, e)
			}
		}
		return all
	}
	field := map[string]string{"ConfigMap": "data", "Secret": "stringData"}[textOf(root.Get("kind"))]
	data := root.Get(field)
	if field == "" || data == nil || textOf(root.Get("apiVersion")) != "v1" {
		return nil
	}
	for _, m := range data.Members {
		if m.Value.Kind != tree.Text || !strings.Contains(m.Value.Text, ":") {
			continue
		}
		own := File{m.Key, []byte(m.Value.Text)}
		formats := Recognise(own)
		if len(formats) == 0 || formats[0] == Lull && !IsPolicyFile(own) || Unread(own, true) != "" {
			continue
		}
		e := Embedded{Key: m.Key, File: File{f.Name, inPlace(m, f.Data)}, At: config.Position{File: f.Name, Line: m.Line, Column: m.Column}, path: tree.Join(field, m.Key)}
		if e.Data == nil {
			e.Whole, e.Data = true, onOneLine(m)
		}
		all = append(all, e)
	}
	return all
}

// inPlace is the text of a member where it stands in data, behind empty lines. Nil: it does not stand there line by line, as after "|".
func inPlace(m tree.Member, data []byte) []byte {
	lines := bytes.Split(data, []byte("\n"))
	if m.Value.Line < 1 || m.Value.Line >= len(lines) {
		return nil
	}
	head := bytes.TrimRight(lines[m.Value.Line-1], " \t\r")
	if at := bytes.LastIndexByte(head, ':'); at < 0 || !bytes.HasPrefix(bytes.TrimLeft(head[at+1:], " "), []byte("|")) {
		return nil
	}
	first := lines[m.Value.Line]
	indent := len(first) - len(bytes.TrimLeft(first, " "))
	out := bytes.Repeat([]byte("\n"), m.Value.Line)
	for i, text := range strings.Split(strings.TrimRight(m.Value.Text, "\n"), "\n") {
		if m.Value.Line+i >= len(lines) {
			return nil
		}
		own := strings.TrimRight(string(lines[m.Value.Line+i]), "\r")
		switch {
		case len(own) < indent && strings.TrimSpace(own) == "" && text == "":
			own = ""
		case len(own) < indent || own[indent:] != text:
			return nil
		case strings.HasPrefix(text, "---"): // which begins a document in the first column only
			own = text
		}
		out = append(append(out, own...), '\n')
	}
	return out
}

// onOneLine are the values in the text of a member, all in its line.
func onOneLine(m tree.Member) []byte {
	roots, _ := parse("", []byte(m.Value.Text))
	out := bytes.Repeat([]byte("\n"), max(m.Line-1, 0))
	for _, root := range roots {
		out = append(append(out, root.Compact()...), ' ')
	}
	return out
}

// Read reads files as policies. The report has what a policy cannot hold. See [Convert].
//
// A file of another system that is listed in o.Found, and that is a template or has a mistake, is left
// out: see [Set.Skipped].
func Read(files []File, o Options) (*Set, Report, error) {
	var skipped []Skip
	var told Report
	skip := func(f File, why string) {
		kind := choice.Either(o.Found[f.Name], Aside, Lost)
		skipped = append(skipped, Skip{f.Name, why})
		told = append(told, Entry{Kind: kind, Position: config.Position{File: f.Name}, Path: "(all)", Why: why})
	}
	if o.From == nil {
		files = slices.DeleteFunc(slices.Clone(files), func(f File) bool {
			why := Unread(f, o.Found[f.Name])
			if why != "" {
				skip(f, why)
			}
			return why != ""
		})
	}
	for {
		set, report, err := readAll(files, o)
		wrong, _ := errors.AsType[config.Mistakes](err)
		bad := map[string]config.Mistakes{}
		for _, m := range wrong {
			if o.Found[m.File] {
				bad[m.File] = append(bad[m.File], m)
			}
		}
		for _, f := range files {
			if bad[f.Name] != nil && IsPolicyFile(f) { // whose mistakes are the user's own
				delete(bad, f.Name)
			}
		}
		if len(bad) == 0 {
			if set != nil {
				set.skipped = skipped
			}
			if err == nil && len(skipped) > 0 && len(set.File.Dependencies) == 0 {
				err = ErrNothing
			}
			return set, append(told, report...), err
		}
		files = slices.DeleteFunc(slices.Clone(files), func(f File) bool {
			if m := bad[f.Name]; m != nil {
				skip(f, cannotRead(m))
			}
			return bad[f.Name] != nil
		})
	}
}

// Skipped are the files that were left out, with the reason.
func (s *Set) Skipped() []Skip { return s.skipped }

func (r *reading) within(f File, root *tree.Node) int {
	all := texts(root, f)
	for _, e := range all {
		roots, err := parse(f.Name, e.Data)
		switch {
		case err != nil: // it was parsed before
		case len(roots) == 1 && isLull(roots[0]):
			if !r.options.Foreign {
				r.readPolicyFile(e.File)
			}
		default:
			r.sortAll(e.File, roots, e.path, e.Key)
		}
	}
	return len(all)
}
