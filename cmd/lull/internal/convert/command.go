// Package convert is the command lull convert. It reads files, has package cmd/lull/convert
// convert them, prints the report, and writes the result.
package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/lullgo/lull/cmd/lull/convert"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
)

// Command is lull convert. Its flags are text, so that all mistakes are reported at once.
type Command struct {
	Files      []string `arg:"" optional:"" name:"file" help:"Files, directories and patterns, converted all together. - is standard input."`
	To         cli.Text `placeholder:"FORMAT" help:"The format to write (--list shows the formats). Default: lull, if the files have another format."`
	From       cli.Text `placeholder:"FORMAT" help:"The format of the files. Default: each document is recognised by its structure."`
	Output     cli.Text `short:"o" placeholder:"FILE" help:"The file to write. It is written completely or not at all. Default: standard output."`
	Strict     bool     `help:"Fail, and write nothing, if anything would be lost or changed."`
	Dependency cli.Text `placeholder:"NAME" help:"Convert only this dependency."`
	Base       cli.Text `placeholder:"PRESET" help:"Settings that the files leave out are taken from this preset; lull is the recommended policy. Default: the defaults of the other system."`
	GAPIC      bool     `name:"gapic" help:"Read gRPC service configs as the generators of Google's API clients do: a retryPolicy may have no maxAttempts."`
	JSON       bool     `name:"json" help:"Write JSON where YAML is usual."`
	ReportJSON bool     `name:"report-json" help:"Write the report as JSON, one object on each line."`
	Quiet      bool     `help:"Write no report. Mistakes in the files are reported all the same."`
	List       bool     `help:"List the formats."`
}

func (Command) Help() string {
	return `Translates the retry settings of other systems into lull's policy file, and back.
A report on standard error lists each setting that the other format cannot
express exactly, with file, line, field, value and reason. Each is lost, changed
or assumed. Fields that do not concern how calls are made are listed as aside.

  lull convert service-config.json
      a gRPC service config as policies
  lull convert virtual-services.yaml destination-rules.yaml -o policies.yaml
      Istio; routes and rules for the same host become one dependency
  lull convert deploy/ -o policies.yaml
      all that is in a directory; other files there are listed as aside
  lull convert application.yml
      resilience4j's instances in Spring Boot; they can be read, and not written
  lull convert policies.yaml --to grpc --dependency payments
      for a client that does not use lull
  lull convert envoy.yaml --to istio --strict
      from Envoy to Istio, and only if nothing is lost or changed

Exit codes:

  0  the result is written, whatever the report contains
  1  nothing is written: the files are valid and have nothing to convert, or
     something would be lost or changed and --strict is set, or a file cannot be
     read or written
  2  the command line is wrong, or a file has mistakes`
}

// Run converts.
func (f Command) Run(env cli.Env) error {
	if f.List {
		return f.list(env.Stdout)
	}
	var out convert.Output
	err := env.UntilInterrupted(func() (err error) {
		if out, err = f.convert(env); err == nil && f.Output == "" {
			_, err = env.Stdout.Write(out.Data)
		}
		return err
	})
	if err != nil || f.Output == "" {
		return err
	}
	return cli.WriteWhole(string(f.Output), out.Data) // quick, and all or nothing: no reason to interrupt it
}

// convert converts the files and prints the report. Its caller writes the output.
func (f Command) convert(env cli.Env) (out convert.Output, err error) {
	to, o, err := f.options()
	names := f.Files
	if err != nil { // which is reported at once, whoever writes to standard input
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "-" })
	}
	found, unread := env.ReadFiles(names, "standard input")
	var files []convert.File
	o.Found = map[string]bool{}
	for _, f := range found {
		files = append(files, convert.File{Name: f.Name, Data: f.Data})
		o.Found[f.Name] = f.Found
	}
	if err != nil || unread != nil {
		return out, errors.Join(err, unread, mistakes(files, o))
	}
	if to == nil {
		if slices.ContainsFunc(files, func(f convert.File) bool {
			return o.From != nil && *o.From == convert.Lull || o.From == nil && convert.IsPolicyFile(f)
		}) {
			return out, problem.List{{Field: "--to", Value: "missing", Allowed: "the format that policies become: " + convert.TargetNames()}}
		}
		to = new(convert.Lull)
	}
	out, err = convert.Convert(files, *to, o)
	if err != nil && !errors.Is(err, convert.ErrNothing) {
		return out, converted(err)
	}
	losses := len(out.Report.Losses())
	if !f.Quiet {
		if err := f.report(env.Stderr, term.StyleOf(env.Stderr, env.Getenv), out.Report); err != nil {
			return out, err
		}
	}
	if err != nil {
		return out, fmt.Errorf("nothing is written: %w", err)
	}
	if f.Strict && losses > 0 {
		return out, fmt.Errorf("nothing is written: %s would be lost or changed, and --strict is set", term.Counted(losses, "field"))
	}
	return out, nil
}

func (f Command) list(w io.Writer) error {
	if f.JSON {
		type format struct {
			Name  string `json:"name"`
			Title string `json:"title"`
		}
		return json.NewEncoder(w).Encode(choice.Each(convert.Formats(), func(f convert.Format) format { return format{f.String(), f.Title()} }))
	}
	return term.Left(w, choice.Each(convert.Formats(), func(f convert.Format) []string { return []string{f.String(), f.Title()} }))
}

// options reads the flags. If to is nil the files determine it.
func (f Command) options() (to *convert.Format, o convert.Options, err error) {
	var l problem.List
	format := func(flag string, v cli.Text) *convert.Format {
		if v == "" {
			return nil
		}
		var named convert.Format
		err := named.UnmarshalText([]byte(v))
		if err != nil {
			l.Add(flag, v.Quoted(), convert.FormatNames())
			return nil
		}
		return &named
	}
	to = format("--to", f.To)
	if to != nil && !slices.Contains(convert.Targets(), *to) {
		l.Add("--to", f.To.Quoted(), convert.TargetNames())
	}
	o = convert.Options{From: format("--from", f.From), Base: string(f.Base), Only: string(f.Dependency), GAPIC: f.GAPIC, JSON: f.JSON}
	l.Check(len(f.Files) > 0, "FILE", "missing", "at least one file, or - for standard input")
	dashes := slices.DeleteFunc(slices.Clone(f.Files), func(name string) bool { return name != "-" })
	l.Check(len(dashes) < 2, "FILE", `"-" twice`, "standard input once")
	l.Check(f.Base == "" || f.Base == "lull" || slices.Contains(config.Presets(), string(f.Base)), "--base", f.Base.Quoted(), "lull, or a preset: "+strings.Join(config.Presets(), ", "))
	return to, o, l.Err()
}

func (f Command) Check() error { _, _, err := f.options(); return err }

func (Command) Complete() map[string][]string {
	return map[string][]string{
		"to": choice.Each(convert.Targets(), convert.Format.String), "from": choice.Each(convert.Formats(), convert.Format.String), "base": config.Presets(),
	}
}

// mistakes are those in the text of files, with the exit code for them.
func mistakes(files []convert.File, o convert.Options) error {
	_, err := convert.Convert(files, convert.Lull, convert.Options{From: o.From, GAPIC: o.GAPIC, Found: o.Found})
	if all, ok := errors.AsType[config.Mistakes](err); ok {
		return cli.Fail(cli.Misused, all)
	}
	return nil
}

// converted gives an error of Convert its exit code, and its fields the names of flags.
func converted(err error) error {
	if mistakes, ok := errors.AsType[config.Mistakes](err); ok {
		return cli.Fail(cli.Misused, mistakes)
	}
	if wrong, ok := errors.AsType[problem.List](err); ok {
		var l problem.List
		for _, p := range wrong {
			l.Add("--"+p.Field, p.Value, p.Allowed)
		}
		return l
	}
	return err
}

func (f Command) report(w io.Writer, style term.Style, r convert.Report) error {
	if f.ReportJSON {
		lines := json.NewEncoder(w)
		for _, e := range r {
			if err := lines.Encode(e); err != nil {
				return err
			}
		}
		return nil
	}
	counts := map[convert.Kind]int{}
	var b strings.Builder
	for _, e := range r {
		counts[e.Kind]++
		b.WriteString(term.Printable(e.String()) + "\n")
	}
	if len(r) > 0 {
		fmt.Fprintf(&b, "%d lost, %d changed, %d assumed, %d aside\n", counts[convert.Lost], counts[convert.Changed], counts[convert.Assumed], counts[convert.Aside])
	}
	_, err := io.WriteString(w, style.Mark(b.String(), kinds, colours))
	return err
}

var kinds = regexp.MustCompile(`(?m)^(?:\S.*?: )??(lost|changed|assumed|aside): `)

var colours = map[string]string{"lost": term.Bold + term.Red, "changed": term.Bold + term.Yellow, "assumed": term.Bold, "aside": term.Dim}
