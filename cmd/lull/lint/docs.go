package lint

import (
	"fmt"
	"strings"
)

const docsHead = `# What lull lint checks

` + "`lull lint FILE...`" + ` reads policies, and reports settings that cannot work or do harm. Each finding has the arithmetic that
led to it, and what to write instead. Policy files may have a call graph: the services, whom they call, and within what time they must
answer. Files that are checked together are read like one file.

This page and ` + "`lull lint --explain RULE`" + ` are generated from the same text. For each rule there is a file in
[docs/examples/policies/bad](examples/policies/bad), and beside it the output for that file.

` + "```console" + `
$ lull lint retry.yaml graph.yaml           # policy files
$ lull lint deploy/                         # a directory, with all that is below it
$ lull lint 'teams/**/retry.yaml'           # a pattern; ** stands for any folders
$ helm template . | lull lint -             # standard input: a stream of documents
` + "```" + `

It reads

- [policy files](files.md). In a stream of several documents each document is read by itself.
- files of all systems that [lull convert](convert.md) reads: Istio, Envoy, gRPC, the Gateway API and others. Their settings are checked
  like a policy of lull. A finding is at the field of that system, and its fix is written in the fields of that file ("write
  retries.attempts: 2 in spec.http[0] (line 7)"). A route and the rule for its host may be in different files. What a file leaves to the
  defaults of its system is at most a note. What the system cannot set, and what depends on a file that is not there, is not reported.
- ConfigMaps of Kubernetes whose data has such files, of lull or of other systems.

In a directory, files that end in ` + "`.yaml`, `.yml` or `.json`" + ` are read, but not those in folders that begin with a dot, ` + "`vendor` and `node_modules`" + `.
Files that are not for lull are skipped, and listed at the end with the reason: nothing in them says how calls are made, they cannot be parsed, or
they are files of other systems with a mistake. Only a file that you named is an error, and a policy file of lull. Templates are always skipped:
check the output of helm instead.

| severity | means |
|---|---|
| error | The setting cannot work as it is written, or does harm. |
| warning | The setting works on a normal day, but not in an outage. |
| note | Worth knowing. Perhaps there is nothing to change. Notes are counted in the last line; ` + "`--notes`" + ` shows them. |

The exit code is 0 if there is no finding at or above the threshold (` + "`--threshold`" + `, warning by default), and 1 if there is one. It is 2 if
the command line or a file is wrong, or the output cannot be written. ` + "`--format json`, `sarif`, `github`, `gitlab` and `junit`" + ` are for
programs.

` + "`--fix`" + ` changes the policy files as the fixes advise, for findings at or above the threshold. It does not change ConfigMaps,
streams of several documents, or files of other systems. It changes values and adds fields; comments and layout stay. After each fix the file is read again, by itself. If the
finding is still there, if there is a new one, or if anything else has changed, the fix is undone. The new file is written beside the old
one and then renamed, so a file is never half changed. Some fixes need a figure that only you know. Those are not made. A fix changes policies
alone. It writes no fact that nobody has checked (` + "`keyed`, `slo`, `visibility`" + `): such a fix is a question.

You can switch a rule off, with a reason, in three ways: at the end of a line, in a line of its own before the line, or for a whole
file:

` + "```yaml" + `
# lint:file-ignore breaker-cannot-trip tried out since November, see the dashboard
dependencies:
  partner:
    # lint:ignore budget-too-large the partner asks for it
    budget: {ratio: 40%}
    breaker: {metrics_only: true} # lint:ignore breaker-cannot-trip for this line alone
` + "```" + `

On the command line use ` + "`--off 'budget-too-large=the partner asks for it'`" + `. Ignored findings are listed at the end of the text and in
the JSON. In SARIF they are suppressed results.

In GitHub Actions, findings are annotations beside the lines of a change, or code scanning alerts. The first step builds the program; the
other steps use it:

` + "```yaml" + `
- uses: lullgo/lull/.github/actions/lint@main # or a version
  with: {files: "policies deploy/**/*.yaml", threshold: warning}
- run: lull lint --format github policies/*.yaml
- run: lull lint --format sarif --threshold never policies/*.yaml > lint.sarif
- uses: github/codeql-action/upload-sarif@v3
  with: {sarif_file: lint.sarif}
` + "```" + `

To check before each commit, use [pre-commit](https://pre-commit.com):

` + "```yaml" + `
repos:
- repo: https://github.com/lullgo/lull
  rev: main # or a version
  hooks:
  - id: lull-lint
    args: [policies, deploy] # . if it is missing
` + "```" + `

In GitLab, findings are shown in the widget of a merge request, and as tests. In JUnit's XML a finding below the threshold is a test
that passes:

` + "```yaml" + `
lint:
  script:
    - lull lint --format gitlab --threshold never policies/*.yaml > quality.json
    - lull lint --format junit policies/*.yaml > lint.xml
  artifacts:
    when: always
    reports: {codequality: quality.json, junit: lint.xml}
` + "```" + `

`

// Markdown returns the documentation of all rules, docs/lint.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(docsHead + "| rule | severity | finds |\n|---|---|---|\n")
	for _, r := range catalogue {
		fmt.Fprintf(&b, "| [%s](#%[1]s) | %s | %s |\n", r.ID, r.Severity, r.Title)
	}
	for _, r := range catalogue {
		b.WriteString("\n" + r.Markdown())
	}
	return b.String()
}
