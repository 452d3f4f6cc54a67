package lint

import (
	"fmt"

	"github.com/lullgo/lull/internal/choice"
)

// Rules about the files themselves.
const (
	ruleCap       = "cap-below-base"
	ruleMistake   = "file-mistake"
	ruleUnknown   = "policy-unknown"
	ruleDirective = "ignore-comment"
)

func fileRules() []Rule {
	return []Rule{{
		ID:       ruleUnknown,
		Severity: Note,
		Title:    "Nothing is known of the policy of a call",
		Why: `If no file has a policy for a dependency, calls to it are left out of all sums: their time
is missing in that of the service, and their attempts in the layers. Files that are checked
together are read like one file. So the call graph may be in one file, and the policies in
others.

The rule finds calls whose dependency is in no file. It also finds calls whose dependency is
in several files, but not in the file of the call.`,
		Sources: []Source{{Title: "The format of policy files, package config of lull", URL: "https://pkg.go.dev/github.com/lullgo/lull/config"}},
		Bad: `services:
  shop: {slo: 2s, calls: [payments]}
`,
		Good: `dependencies:
  payments: {attempts: 2, attempt_timeout: 250ms, deadline: 650ms}
services:
  shop: {slo: 2s, calls: [payments]}
`,
		check: policyUnknown,
	}, {
		ID:       ruleMistake,
		Severity: Error,
		Title:    "The file has a mistake",
		Why: `Every program refuses a policy file that has a mistake, or a part of it. So no other rule
can look at it. This covers what a policy's own Validate finds, such as an attempt timeout
that is longer than the deadline. It cannot be ignored, and the exit code is 2.`,
		Sources: []Source{{Title: "The format of policy files, package config of lull", URL: "https://pkg.go.dev/github.com/lullgo/lull/config"}},
		Bad: `dependencies:
  stock: {atempts: 2, deadline: 3 sec}
`,
		Good: `dependencies:
  stock: {attempts: 2, attempt_timeout: 1s, deadline: 3s}
`,
		check: func(*pass) {}, // Check does it when it reads files
	}, {
		ID:       ruleDirective,
		Severity: Warning,
		Title:    "A comment that should ignore a rule ignores nothing",
		Why: `A comment "# lint:ignore RULE reason" at the end of a line ignores findings of the rule in
that line; in a line of its own, those in the next line that is not a comment. "#
lint:file-ignore RULE reason" ignores those in the whole file. Several rules are joined by
commas. A reason is needed: somebody who reads the file during an outage wants to know why
the warning did not matter. Remove a comment that no longer matches a finding.

The rule finds comments without a reason, with the name of a rule that does not exist, and
without a finding to ignore. It cannot be ignored itself.`,
		Sources: []Source{{"staticcheck, ignoring problems with linter directives", "https://staticcheck.dev/docs/configuration/#ignoring-problems"}},
		Bad: `dependencies:
  stock: {attempts: 2} # lint:ignore jitter-missing
`,
		Good: `dependencies:
  # lint:ignore jitter-missing one process calls it, once a day
  stock: {backoff: {jitter: none}}
`,
		check: func(*pass) {}, // Check does it when all findings are known
	}}
}

// mostGuesses is for how many names a similar one is looked for.
const mostGuesses = 20

func policyUnknown(p *pass) {
	var names []string
	for _, d := range p.dependencies {
		names = append(names, d.Name)
	}
	seen := map[string]bool{}
	for _, s := range p.services {
		for _, c := range s.calls {
			if c.to != nil || seen[s.in.name+"\x00"+c.Dependency] {
				continue
			}
			seen[s.in.name+"\x00"+c.Dependency] = true
			if c.policies > 1 {
				p.report(s.in, c.path, fmt.Sprintf("%s calls %s, and %d files say with what policy, but not its own: it is left out of all sums", s.Name, c.Dependency, c.policies), nil,
					Fix{Text: fmt.Sprintf("add %s to the dependencies of %s, or check the files of one program at a time", c.Dependency, s.in.name)})
				continue
			}
			guess := ""
			if near := choice.Nearest(c.Dependency, names); near != "" && len(seen) < mostGuesses {
				guess = "; did you mean " + near + "?"
			}
			p.report(s.in, c.path, fmt.Sprintf("%s calls %s, and no file says with what policy: it is left out of all sums", s.Name, c.Dependency), nil,
				Fix{Text: fmt.Sprintf("add %s to the dependencies of a file, and check the files together%s", c.Dependency, guess)})
		}
	}
}
