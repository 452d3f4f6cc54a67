package lint

import (
	"fmt"
	"strings"
)

const docsHead = `# What lull lint checks

` + "`lull lint FILE...`" + ` reads policies, which may have a call graph (services, whom they call, within
what time they must answer), and reports what cannot work or does harm, with the sum that led to it and what to
write instead. Files that are checked together are read as one. This page is made of the rules themselves, and so is
` + "`lull lint --explain RULE`" + `. For each rule there is a file in [examples/policies/bad](../examples/policies/bad),
and beside it what is printed for it.

` + "```console" + `
$ lull lint retry.yaml graph.yaml           # policy files
$ lull lint deploy/                         # a directory, with all that is below it
$ lull lint 'teams/**/retry.yaml'           # a pattern; ** stands for any folders
$ helm template . | lull lint -             # standard input: a stream of documents
` + "```" + `

It reads

- policy files, [as files.md describes them](files.md). In a stream of several documents each is read by itself;
- files of all systems that [lull convert](convert.md) reads: Istio, Envoy, gRPC, the Gateway API and others. Their settings are checked
  as a policy of lull, and what a file leaves out is as in its system. A finding is at the field of that system, and its fix names the field
  ("in Istio attempts is retries.attempts"). What belongs together, such as a route and the rule for its host, may be in different files;
- ConfigMaps of Kubernetes whose data has policy files.

In a directory, files that end in ` + "`.yaml`, `.yml` or `.json`" + ` are read, but not those in folders that begin with a dot, ` + "`vendor` and `node_modules`" + `.
What has no policies in it is skipped, and listed at the end. Templates are skipped, too: check what helm prints.

| severity | means |
|---|---|
| error | It cannot do what it says, or does harm. |
| warning | It works until the day that it is for. |
| note | Worth knowing; there may be nothing to change. |

The exit code is 0 if nothing was found at or above the threshold (` + "`--threshold`" + `, warning by default), 1 if something
was, and 2 if the command line or a file is wrong, or nothing can be printed. ` + "`--format json`, `sarif`, `github`, `gitlab` and `junit`" + ` are for
machines.

With ` + "`--fix`" + ` the changes that fixes name are made, for findings at or above the threshold, in policy files that are a file of their own. Only values
change, and fields are added: comments and layout stay. After each fix the file is read again, by itself. If the finding is still there, if
there is a new one, or if anything else has changed, the fix is taken back. A file is written beside the old one and renamed, so that it is
never half changed. Some fixes need a figure that only you know; those remain.

A rule can be switched off where it does not matter, with the reason: at the end of a line, in a line of its own
before the one that is meant, or for a whole file.

` + "```yaml" + `
# lint:file-ignore breaker-cannot-trip tried out since November, see the dashboard
dependencies:
  partner:
    # lint:ignore budget-too-large the partner asks for it
    budget: {ratio: 40%}
    breaker: {metrics_only: true} # lint:ignore breaker-cannot-trip for this line alone
` + "```" + `

On the command line it is ` + "`--off 'budget-too-large=the partner asks for it'`" + `. What is ignored is listed at the end of
the text, is in the JSON, and is a suppressed result in SARIF.

In GitHub Actions, as annotations beside the lines of a change, or as code scanning alerts. The first step builds the program and needs nothing
else, the others have it already:

` + "```yaml" + `
- uses: lullgo/lull/.github/actions/lint@main # or a version
  with: {files: "policies deploy/**/*.yaml", threshold: warning}
- run: lull lint --format github policies/*.yaml
- run: lull lint --format sarif --threshold never policies/*.yaml > lint.sarif
- uses: github/codeql-action/upload-sarif@v3
  with: {sarif_file: lint.sarif}
` + "```" + `

Before each commit, with [pre-commit](https://pre-commit.com):

` + "```yaml" + `
repos:
- repo: https://github.com/lullgo/lull
  rev: main # or a version
  hooks:
  - id: lull-lint
    args: [policies, deploy] # . if it is missing
` + "```" + `

In GitLab, in the widget of a merge request, and as tests. In JUnit's XML a finding below the threshold is a test that
passes:

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
