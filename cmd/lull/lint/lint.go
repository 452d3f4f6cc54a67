// Package lint checks policy files (package config) and the files that package convert reads: whether a policy can do what
// it promises, before an outage shows that it cannot. A valid policy may have attempts that need more time than its deadline, and three
// harmless policies in a row may make 64 attempts of one call. Each finding has the problem in one sentence, the sum line by
// line, what to write instead, and a source. rules.md has the rules, and docs/examples/policies breaks each of them.
//
// Times and attempts are those of the engine ([lull.Policy.WorstCase]). A finding is gone after the changes of its fix, and
// the file is valid. Facts of a file (p99, idempotent, server, handler) are taken as true. Whether a policy is right for a load is a question
// for the simulator. A file of ten lines takes a tenth of a millisecond, one of 9,000 services up to a second. At most 100 leaves of the
// call graph and 20 circles are reported, the worst leaves first. Nothing here keeps state; all functions may be called concurrently.
package lint

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/choice"
)

// A File is a policy file, a file of another system that package convert reads, or a stream of such documents and other objects.
type File struct {
	// Name is its path, as in findings.
	Name string
	// Data is its content.
	Data []byte
	// Found: it was found in a directory, and is skipped if it is none of these. Otherwise it is a policy file with mistakes.
	Found bool
}

// Options switch rules off.
type Options struct {
	// Off are the rules that are switched off, each with the reason.
	Off map[string]string
}

// A Report is the result of a check.
type Report struct {
	// Files are the names of the files that were checked, in the order in which they were given.
	Files []string
	// Skipped are files and documents in which there was nothing to check, with the reason.
	Skipped []Skip
	// Findings are in the order of the files and lines. They include those that are ignored.
	Findings []Finding
	// Unreadable are the files with mistakes. Nothing else was checked in them.
	Unreadable []string

	lines   map[string][]string // of the files, for Text
	leftOut int                 // notes
}

// Check checks files together by all rules. Problems of the files are findings; the error is about the options.
func Check(files []File, o Options) (Report, error) {
	for id, reason := range o.Off {
		if err := mayIgnore(id, reason); err != nil {
			return Report{}, err
		}
	}
	r := Report{lines: map[string][]string{}}
	g := &gathering{report: &r, known: map[string]bool{}, found: map[string]bool{}}
	var names []string
	for _, f := range files {
		if _, twice := r.lines[f.Name]; twice {
			continue
		}
		names = append(names, f.Name)
		data := bytes.TrimPrefix(f.Data, byteOrderMark) // editors neither show it nor count it as a column
		r.lines[f.Name] = split(data)
		g.add(f, data)
	}
	if len(g.foreign) > 0 {
		g.readForeign()
	}
	slices.SortStableFunc(r.Files, func(a, b string) int { return slices.Index(names, a) - slices.Index(names, b) })
	p := &pass{units: g.units}
	p.run()
	r.Findings = append(r.Findings, merged(p.findings)...)
	for _, name := range r.Files {
		if !slices.Contains(r.Unreadable, name) {
			r.Findings = directives(name, r.lines[name], r.Findings)
		}
	}
	for i, f := range r.Findings {
		if reason, off := o.Off[f.Rule]; off && f.Ignored == nil {
			r.Findings[i].Ignored = &Ignored{"flag", reason}
		}
	}
	sortFindings(r.Files, r.Findings)
	return r, nil
}

func mayIgnore(id, reason string) error {
	if _, err := FindRule(id); err != nil {
		return err
	}
	switch {
	case id == ruleMistake:
		return fmt.Errorf("%s cannot be ignored: the file is not used by anything that reads it", id)
	case id == ruleDirective:
		return fmt.Errorf("%s cannot be ignored: correct the comment", id)
	case strings.TrimSpace(reason) == "":
		return fmt.Errorf("%s is ignored without a reason", id)
	}
	return nil
}

func mistakes(file string, err error) []Finding {
	all, _ := errors.AsType[config.Mistakes](err)
	var out []Finding
	for _, m := range all {
		f := Finding{
			Rule: ruleMistake, Severity: Error, File: cmp.Or(m.File, file), Line: max(m.Line, 1), Column: max(m.Column, 1), Path: m.Path,
			Message: strings.TrimPrefix(m.Path+" is "+m.Found, " is "),
		}
		if base, ok := strings.CutPrefix(m.Allowed, "zero or at least Base ("); ok && strings.HasSuffix(m.Path, "backoff.cap") {
			base = strings.TrimSuffix(base, ")")
			f.Rule = ruleCap
			f.Message = fmt.Sprintf("the cap of the waits is %s, below their base of %s", m.Found, base)
			f.Sum = []Step{{"backoff.base", base, ""}, {"backoff.cap", m.Found, ""}}
			f.Fix = Fix{Text: fmt.Sprintf("write a backoff.cap of several times the base, leave it out (then it is %s), or write a backoff.base below %s", pretty(backoff.DefaultCap), m.Found)}
			out = append(out, f)
			continue
		}
		f.Fix = Fix{Text: "correct the file"}
		if wanted := slices.DeleteFunc([]string{m.Suggestion, m.Allowed}, isBlank); len(wanted) > 0 {
			f.Fix.Text = "write " + strings.Join(wanted, ", or else ")
		}
		out = append(out, f)
	}
	return out
}

func (p *pass) run() {
	p.gather()
	p.graph = newGraph(p.services)
	p.now = p.plan()
	for i := range catalogue() {
		p.rule = &catalogue()[i]
		checks[p.rule.ID](p)
	}
}

func (p *pass) gather() {
	byName := map[string][]*dependency{}
	defaults := map[*unit]*dependency{}
	for _, u := range p.units {
		for _, d := range u.policy.Dependencies {
			dep := &dependency{d, u, "dependencies." + d.Name}
			p.dependencies = append(p.dependencies, dep)
			byName[d.Name] = append(byName[d.Name], dep)
		}
		if u.policy.Defaults != (config.Defaults{}) {
			defaults[u] = &dependency{config.Dependency{Name: "others", Policy: u.policy.Defaults.Policy}, u, "defaults"}
			p.dependencies = append(p.dependencies, defaults[u])
		}
	}
	provides, called := map[string][]*service{}, map[string][]*service{}
	for _, u := range p.units {
		for _, s := range u.policy.Services {
			svc := &service{Service: s, in: u, path: "services." + s.Name}
			p.services = append(p.services, svc)
			for _, n := range s.Provides {
				provides[n] = append(provides[n], svc)
			}
			if s.Provides == nil {
				called[s.Name] = append(called[s.Name], svc)
			}
		}
	}
	for _, s := range p.services {
		for i, e := range s.Calls {
			c := &call{Edge: e, path: s.path + ".calls." + strconv.Itoa(i), policies: len(byName[e.Dependency])}
			c.to = pick(byName[e.Dependency], func(d *dependency) *unit { return d.in }, s.in)
			if c.to == nil && c.policies == 0 {
				c.to = defaults[s.in]
			}
			in := func(s *service) *unit { return s.in }
			if c.answered = pick(provides[e.Dependency], in, s.in); c.answered == nil && len(provides[e.Dependency]) == 0 {
				c.answered = pick(called[e.Dependency], in, s.in)
			}
			s.calls = append(s.calls, c)
		}
	}
}

// pick returns the one in the file here; if there is none, the only one.
func pick[T any](all []*T, in func(*T) *unit, here *unit) *T {
	for _, v := range all {
		if in(v) == here {
			return v
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return nil
}

var byteOrderMark = []byte("\ufeff")

// lineBreaks are the ends of lines in YAML 1.1. It has more than version 1.2, and its readers still do.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

func split(data []byte) []string { return strings.Split(lineBreaks.Replace(string(data)), "\n") }

// directive is a comment that ignores rules. A text in quotes that looks like one is taken for one.
var directive = regexp.MustCompile(`(?:^|\s)(#\s*lint:(file-)?ignore)(?:\s+(\S+))?(?:\s+(.*\S))?\s*$`)

// directives marks the findings of the file that comments ignore, and adds findings about wrong comments.
func directives(file string, lines []string, all []Finding) []Finding {
	var own []Finding
	below, at := below(lines), locate(file, all)
	for i, line := range lines {
		m := directive.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		whole, names, reason := m[2] != "", m[3], m[4]
		before := line[:len(line)-len(m[0])+strings.IndexByte(m[0], '#')]
		wrong := func(message, fix string) {
			own = append(own, Finding{
				Rule: ruleDirective, Severity: Warning, File: file,
				Line: i + 1, Column: utf8.RuneCountInString(before) + 1, Message: message, Fix: Fix{Text: fix},
			})
		}
		if names == "" {
			wrong("the comment ignores no rule", "write # lint:ignore RULE REASON")
			continue
		}
		on := i + 1
		if strings.TrimSpace(before) == "" {
			on = below[i]
		}
		if whole {
			on = wholeFile
		}
		for id := range strings.SplitSeq(names, ",") {
			if _, err := FindRule(id); err != nil {
				fix := "write one of the rules that lull lint --rules lists"
				if near := nearestRule(id); near != "" {
					fix = "write " + near
				}
				wrong(fmt.Sprintf("no rule is called %q", id), fix)
				continue
			}
			if err := mayIgnore(id, reason); err != nil {
				wrong(err.Error(), "write # lint:ignore RULE REASON, with why it does not matter here")
				continue
			}
			found, there := at[scope{id, on}]
			if !there {
				where := choice.Either(whole, "the file", fmt.Sprintf("line %d", on))
				wrong(fmt.Sprintf("%s finds nothing in %s that could be ignored", id, where), "remove the comment")
				continue
			}
			for _, f := range found {
				if f.Ignored == nil {
					f.Ignored = &Ignored{"comment", reason}
				}
			}
			at[scope{id, on}] = nil // they are marked, each once
		}
	}
	return append(all, own...)
}

// below has, for each line, the number of the next line that is more than a comment.
func below(lines []string) []int {
	all := make([]int, len(lines))
	next := len(lines) + 1
	for i, line := range slices.Backward(lines) {
		all[i] = next
		if text := strings.TrimSpace(line); text != "" && text[0] != '#' {
			next = i + 1
		}
	}
	return all
}

// A scope is where findings of a rule can be: in a line, or anywhere in the file.
type scope struct {
	rule string
	line int
}

const wholeFile = 0

func locate(file string, all []Finding) map[scope][]*Finding {
	at := map[scope][]*Finding{}
	for i := range all {
		if f := &all[i]; f.File == file {
			for _, line := range []int{f.Line, wholeFile} {
				at[scope{f.Rule, line}] = append(at[scope{f.Rule, line}], f)
			}
		}
	}
	return at
}
