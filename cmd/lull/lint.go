package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/lullgo/lull/config/lint"
	"github.com/lullgo/lull/internal/problem"
)

// Exit codes of lull lint.
const (
	exitFindings = 1
	exitWrong    = 2
)

// lintFlags are text, so that all that is wrong with them can be said at once.
type lintFlags struct {
	Files     []string `arg:"" optional:"" name:"file" help:"Policy files, which may hold a call graph; - is standard input. They are checked as one."`
	Format    text     `placeholder:"FORMAT" default:"text" help:"text, json, sarif (2.1.0), or github (annotations of GitHub Actions). Default: text."`
	Threshold text     `placeholder:"SEVERITY" default:"warning" help:"From where on findings make the exit code 1: note, warning, error, or never. Default: warning. All are printed."`
	Off       texts    `placeholder:"RULE=REASON" help:"Switch a rule off, and say why. May be repeated. In a file: # lint:ignore RULE REASON, or # lint:file-ignore."`
	Explain   text     `placeholder:"RULE" help:"Say what a rule is for, with its source, a bad and a good example."`
	Rules     bool     `help:"List the rules."`
}

// Help is shown above the flags.
func (lintFlags) Help() string {
	return `Checks policy files: worst-case times against deadlines and SLOs, retries that
multiply from layer to layer, jitter, budgets, breakers, and what must not be
repeated. Each finding has the sum that led to it, and the fix.

  lull lint retry.yaml
  lull lint policies/*.yaml graph.yaml --threshold error
  lull lint retry.yaml --format sarif > lint.sarif
  lull lint --explain retries-in-layers

A comment ignores findings of its own line, or of the next if it stands alone:
  # lint:ignore budget-too-large the partner asks for it
and # lint:file-ignore RULE REASON those of the whole file.

Exit codes: 0 nothing at or above the threshold, 1 findings, 2 the command line
or a file is wrong, or nothing can be printed.`
}

// linting is what lintFlags say.
type linting struct {
	files     []lint.File
	options   lint.Options
	threshold lint.Severity
	never     bool // nothing makes the exit code 1
	format    func(lint.Report, io.Writer) error
}

var lintFormats = map[string]func(lint.Report, io.Writer) error{
	"text":   lint.Report.Text,
	"json":   lint.Report.JSON,
	"sarif":  func(r lint.Report, w io.Writer) error { return r.SARIF(w, moduleVersion()) },
	"github": lint.Report.GitHub,
}

// moduleVersion is the version of this build, if it has one.
func moduleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		return info.Main.Version
	}
	return ""
}

// Run checks files and prints what there is to say about them.
func (f lintFlags) Run(env surroundings) error {
	err := untilInterrupted(env.ctx, func() error { return f.lint(env) })
	if errors.Is(err, errStopped) {
		return failure{err, exitWrong} // there may be findings, or none
	}
	return err
}

func (f lintFlags) lint(env surroundings) error {
	switch {
	case f.Explain != "":
		rule, err := lint.FindRule(string(f.Explain))
		if err != nil {
			return failure{fmt.Errorf("--explain: %w", err), exitWrong}
		}
		_, err = io.WriteString(env.stdout, rule.Explain())
		return unprinted(err)
	case f.Rules:
		return unprinted(printRules(env.stdout))
	}
	l, err := f.linting()
	if err != nil {
		return err
	}
	report, err := lint.Check(l.files, l.options)
	if err != nil {
		return failure{fmt.Errorf("--off: %w", err), exitWrong}
	}
	if err := l.format(report, env.stdout); err != nil {
		return unprinted(err)
	}
	switch n := report.Count(l.threshold); {
	case len(report.Unreadable) > 0:
		return failure{fmt.Errorf("%s cannot be read", strings.Join(report.Unreadable, ", ")), exitWrong}
	case n > 0 && !l.never:
		return failure{fmt.Errorf("%s at or above %s", counted(n, "finding"), l.threshold), exitFindings}
	}
	return nil
}

// unprinted makes an error of printing one of the program, and no finding.
func unprinted(err error) error {
	if err == nil {
		return nil
	}
	return failure{err, exitWrong}
}

func (f lintFlags) linting() (linting, error) {
	var wrong problem.List
	l := linting{options: lint.Options{Off: map[string]string{}}}
	wrong.Check(len(f.Files) > 0, "FILE", "none", "at least one policy file")
	if l.format = lintFormats[string(f.Format)]; l.format == nil {
		wrong.Add("--format", quoted(f.Format), "text, json, sarif or github")
	}
	if l.never = f.Threshold == "never"; l.never {
		l.threshold = lint.Error
	} else if l.threshold.UnmarshalText([]byte(f.Threshold)) != nil {
		wrong.Add("--threshold", quoted(f.Threshold), "note, warning, error or never")
	}
	for _, off := range f.Off {
		rule, reason, _ := strings.Cut(string(off), "=")
		if strings.TrimSpace(reason) == "" {
			wrong.Add("--off", quoted(off), "RULE=REASON, such as budget-too-large=\"the partner asks for it\"")
			continue
		}
		l.options.Off[strings.TrimSpace(rule)] = strings.TrimSpace(reason)
	}
	if err := wrong.Err(); err != nil {
		return linting{}, err
	}
	var failed []error
	for _, name := range f.Files {
		file, err := readPolicy(name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		l.files = append(l.files, file)
	}
	if len(failed) > 0 {
		return linting{}, failure{errors.Join(failed...), exitWrong}
	}
	return l, nil
}

// maxPolicy is one byte more than a policy file may have, so that the reader of such
// files sees that there is more.
const maxPolicy = 1<<20 + 1

// readPolicy reads a file, which has one name however it was typed.
func readPolicy(name string) (lint.File, error) {
	if name == "-" {
		data, err := io.ReadAll(io.LimitReader(stdin, maxPolicy))
		return lint.File{Name: "stdin", Data: data}, err
	}
	name = filepath.ToSlash(filepath.Clean(name))
	file, err := os.Open(name)
	if err != nil {
		return lint.File{}, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return lint.File{}, fmt.Errorf("%s is a directory: name the files in it, such as %s", name, filepath.Join(name, "*.yaml"))
	}
	data, err := io.ReadAll(io.LimitReader(file, maxPolicy))
	return lint.File{Name: name, Data: data}, err
}

func printRules(w io.Writer) error {
	rules := lint.Rules()
	width := 0
	for _, r := range rules {
		width = max(width, len(r.ID))
	}
	for _, r := range rules {
		if _, err := fmt.Fprintf(w, "%-*s  %-7s  %s\n", width, r.ID, r.Severity, r.Title); err != nil {
			return err
		}
	}
	return nil
}
