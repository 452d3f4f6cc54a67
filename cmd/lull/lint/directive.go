package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// directive is a comment that ignores rules. Lines are searched one by one, so a text in quotes
// that looks like one is taken for one.
var directive = regexp.MustCompile(`(?:^|\s)(#\s*lint:(file-)?ignore)(?:\s+(\S+))?(?:\s+(.*\S))?\s*$`)

// directives marks the findings of the file that comments ignore, and adds findings about wrong
// comments.
func directives(file string, lines []string, all []Finding) []Finding {
	var own []Finding
	below, at := below(lines), locate(file, all)
	done := map[scope]bool{} // whose findings are marked, so that each is marked once
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
			found := at[scope{id, on}]
			if !done[scope{id, on}] {
				for _, f := range found {
					if f.Ignored == nil {
						f.Ignored = &Ignored{"comment", reason}
					}
				}
			}
			done[scope{id, on}] = true
			if len(found) == 0 {
				where := fmt.Sprintf("line %d", on)
				if whole {
					where = "the file"
				}
				wrong(fmt.Sprintf("%s finds nothing in %s that could be ignored", id, where), "remove the comment")
			}
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
