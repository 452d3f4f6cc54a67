package lint

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// directive is a comment that ignores rules. It is looked for line by line: a text in
// quotes that has one in it would be taken for it.
var directive = regexp.MustCompile(`(?:^|\s)(#\s*lint:(file-)?ignore)(?:\s+(\S+))?(?:\s+(.*\S))?\s*$`)

// directives sets Ignored in the findings of the file that comments ignore, and adds
// findings about the comments.
func directives(file string, lines []string, all []Finding) []Finding {
	var own []Finding
	for i, line := range lines {
		m := directive.FindStringSubmatchIndex(line)
		if m == nil {
			continue
		}
		group := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return line[m[2*n]:m[2*n+1]]
		}
		whole, names, reason := group(2) != "", group(3), group(4)
		wrong := func(message, fix string) {
			own = append(own, Finding{
				Rule: ruleDirective, Severity: Warning, File: file,
				Line: i + 1, Column: utf8.RuneCountInString(line[:m[2]]) + 1, Message: message, Fix: Fix{Text: fix},
			})
		}
		if names == "" {
			wrong("the comment ignores no rule", "write # lint:ignore RULE REASON")
			continue
		}
		from, to := i+1, i+1
		if strings.TrimSpace(line[:m[2]]) == "" {
			from, to = below(lines, i), below(lines, i)
		}
		if whole {
			from, to = 1, len(lines)
		}
		for id := range strings.SplitSeq(names, ",") {
			if _, known := rule(id); !known {
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
			if !ignore(file, id, reason, from, to, all) {
				where := fmt.Sprintf("line %d", from)
				if whole {
					where = "the file"
				}
				wrong(fmt.Sprintf("%s finds nothing in %s that could be ignored", id, where), "remove the comment")
			}
		}
	}
	return append(all, own...)
}

// below is the number of the first line after the given one that has more than a comment.
func below(lines []string, i int) int {
	for i++; i < len(lines); i++ {
		if text := strings.TrimSpace(lines[i]); text != "" && text[0] != '#' {
			break
		}
	}
	return i + 1
}

// ignore tells whether there was a finding of the rule in the lines.
func ignore(file, id, reason string, from, to int, all []Finding) bool {
	found := false
	for i := range all {
		f := &all[i]
		if f.File == file && f.Rule == id && f.Line >= from && f.Line <= to {
			found = true
			if f.Ignored == nil {
				f.Ignored = &Ignored{"comment", reason}
			}
		}
	}
	return found
}
