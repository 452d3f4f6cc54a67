// Package lint is the command lull lint. It reads files, has package cmd/lull/lint check them, and prints the report.
package lint

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/cmd/lull/lint"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
)

// Exit codes of lull lint.
const (
	exitFindings = 1
	exitWrong    = 2
)

// Command is lull lint. Its flags are text, so that all mistakes are reported at once.
type Command struct {
	Files     []string  `arg:"" optional:"" name:"file" help:"Files, directories and patterns; - is standard input. They are checked together, like one file."`
	Format    cli.Text  `placeholder:"FORMAT" default:"text" help:"text, json, sarif (2.1.0), github (annotations of GitHub Actions), gitlab (code quality) or junit. Default: text."`
	Threshold cli.Text  `placeholder:"SEVERITY" default:"warning" help:"The least severity that makes the exit code 1: note, warning, error, or never. Default: warning."`
	Notes     bool      `help:"Show notes as well: what is worth knowing, such as what a file leaves to the defaults of its system. Without it they are counted in the last line. --threshold note shows them, too."`
	Off       cli.Texts `placeholder:"RULE=REASON" help:"Switch a rule off, with a reason. May be repeated. In a file: # lint:ignore RULE REASON, or # lint:file-ignore."`
	Fix       bool      `help:"Change policy files as the fixes of the findings advise, for findings at or above the threshold. Comments and layout stay."`
	Explain   cli.Text  `placeholder:"RULE" help:"Explain a rule, with its sources, a bad and a good example."`
	Rules     bool      `help:"List the rules."`
}

func (Command) Help() string {
	return `Checks policies. It compares worst-case times with deadlines and SLOs. It finds
retries that multiply from layer to layer, problems of jitter, budgets and
breakers, and operations that must not be repeated. Each finding has the
arithmetic that led to it, and a fix.

It reads policy files, the files of other systems that lull convert reads, and
ConfigMaps with such files in them. In a directory other files are skipped, with
the reason.

  lull lint retry.yaml
  lull lint deploy/ 'teams/**/retry.yaml' graph.yaml --threshold error
  helm template . | lull lint -
  lull lint retry.yaml --format sarif > lint.sarif
  lull lint --explain retries-in-layers

A comment switches a rule off for its own line, or for the next line if it is in
a line of its own:
  # lint:ignore budget-too-large the partner asks for it
This comment does it for the whole file:
  # lint:file-ignore RULE REASON

Exit codes: 0 no finding at or above the threshold, 1 such findings, 2 the command
line or a file is wrong, or the output cannot be written.`
}

type linting struct {
	files     []lint.File
	options   lint.Options
	threshold lint.Severity
	never     bool // nothing makes the exit code 1
	format    string
	style     term.Style // of the format text
}

var severities = regexp.MustCompile(`(?m)^\S.*?:\d+:\d+: (error|warning|note): `)

var colours = map[string]string{"error": term.Bold + term.Red, "warning": term.Bold + term.Yellow, "note": term.Bold}

var formats = []string{"text", "json", "sarif", "github", "gitlab", "junit"}

func (l linting) print(r lint.Report, w io.Writer) error {
	switch l.format {
	case "json":
		return r.JSON(w)
	case "sarif":
		return r.SARIF(w, cli.ModuleVersion())
	case "github":
		return r.GitHub(w)
	case "gitlab":
		return r.GitLab(w)
	case "junit":
		least := choice.Either(l.never, lint.Error+1, l.threshold)
		return r.JUnit(w, least)
	}
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		return err
	}
	_, err := io.WriteString(w, l.style.Mark(b.String(), severities, colours))
	return err
}

// Run checks files and prints the findings.
func (f Command) Run(env cli.Env) error {
	var fixed []fixedFile
	err := env.UntilInterrupted(func() (err error) {
		fixed, err = f.lint(env)
		return err
	})
	if errors.Is(err, cli.ErrInterrupted) {
		return cli.Fail(exitWrong, err) // there may be findings, or none
	}
	for _, file := range fixed { // each whole or not at all: no reason to interrupt it
		if failed := cli.WriteWhole(file.name, file.data); failed != nil {
			return cli.Fail(exitWrong, errors.Join(failed, err))
		}
		fmt.Fprintf(env.Stderr, "lull: %s in %s\n", term.Counted(file.findings, "finding")+" fixed", file.name)
	}
	return err
}

type fixedFile struct {
	name     string
	data     []byte
	findings int
}

func (f Command) lint(env cli.Env) (fixed []fixedFile, err error) {
	switch {
	case f.Explain != "":
		rule, err := lint.FindRule(string(f.Explain))
		if err != nil {
			return nil, cli.Fail(exitWrong, fmt.Errorf("--explain: %w", err))
		}
		_, err = io.WriteString(env.Stdout, rule.Explain())
		return nil, cli.Fail(exitWrong, err)
	case f.Rules:
		row := func(r lint.Rule) []string { return []string{r.ID, r.Severity.String(), r.Title} }
		return nil, cli.Fail(exitWrong, term.Left(env.Stdout, choice.Each(lint.Rules(), row)))
	}
	l, err := f.linting()
	l.style = term.StyleOf(env.Stdout, env.Getenv)
	names := f.Files
	if err != nil { // which is reported at once, whoever writes to standard input
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "-" })
	}
	files, unread := env.ReadFiles(names, "stdin")
	for _, f := range files {
		l.files = append(l.files, lint.File(f))
	}
	if err != nil || unread != nil {
		return nil, cli.Fail(exitWrong, errors.Join(err, unread, mistakes(l.files)))
	}
	for i := range l.files {
		file := &l.files[i]
		if !f.Fix || file.Name == "stdin" {
			continue
		}
		data, findings, err := lint.FixFile(*file, l.options, l.threshold)
		if err == nil && len(findings) > 0 {
			fixed = append(fixed, fixedFile{file.Name, data, len(findings)})
			file.Data = data
		}
	}
	report, err := lint.Check(l.files, l.options)
	if err != nil {
		return nil, cli.Fail(exitWrong, fmt.Errorf("--off: %w", err))
	}
	shown := report
	if !f.Notes && (l.never || l.threshold > lint.Note) {
		shown = report.WithoutNotes()
	}
	if err := l.print(shown, env.Stdout); err != nil {
		return nil, cli.Fail(exitWrong, err)
	}
	switch n := report.Count(l.threshold); {
	case len(report.Unreadable) > 0:
		return fixed, cli.Fail(exitWrong, fmt.Errorf("mistakes in %s", strings.Join(report.Unreadable, ", ")))
	case n > 0 && !l.never:
		return fixed, cli.Fail(exitFindings, fmt.Errorf("%s at or above %s", term.Counted(n, "finding"), l.threshold))
	}
	return fixed, nil
}

func (f Command) linting() (linting, error) {
	var wrong problem.List
	l := linting{options: lint.Options{Off: map[string]string{}}, format: string(f.Format)}
	wrong.Check(!f.Fix || !slices.Contains(f.Files, "-"), "--fix", "given for standard input", "files")
	wrong.Check(len(f.Files) > 0, "FILE", "missing", "at least one file or directory")
	wrong.Check(slices.Contains(formats, l.format), "--format", f.Format.Quoted(), "text, json, sarif, github, gitlab or junit")
	if l.never = f.Threshold == "never"; l.never {
		l.threshold = lint.Error
	} else if l.threshold.UnmarshalText([]byte(f.Threshold)) != nil {
		wrong.Add("--threshold", f.Threshold.Quoted(), "note, warning, error or never")
	}
	for _, off := range f.Off {
		rule, reason, _ := strings.Cut(string(off), "=")
		if strings.TrimSpace(reason) == "" {
			wrong.Add("--off", off.Quoted(), "RULE=REASON, such as budget-too-large=\"the partner asks for it\"")
			continue
		}
		l.options.Off[strings.TrimSpace(rule)] = strings.TrimSpace(reason)
	}
	return l, wrong.Err()
}

func (f Command) Check() error { _, err := f.linting(); return err }

func (Command) Complete() map[string][]string {
	rules := choice.Each(lint.Rules(), func(r lint.Rule) string { return r.ID })
	return map[string][]string{
		"format": formats, "threshold": {"note", "warning", "error", "never"}, "explain": rules,
	}
}

// mistakes are those in the text of files. Without all files nothing else is certain.
func mistakes(files []lint.File) error {
	report, err := lint.Check(files, lint.Options{})
	all := []error{err}
	for _, finding := range report.Findings {
		if slices.Contains(report.Unreadable, finding.File) && finding.Severity == lint.Error {
			all = append(all, fmt.Errorf("%s:%d:%d: %s", finding.File, finding.Line, finding.Column, finding.Message))
		}
	}
	return errors.Join(all...)
}
