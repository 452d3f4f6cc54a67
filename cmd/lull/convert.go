package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/config/convert"
	"github.com/lullgo/lull/internal/problem"
)

// convertFlags are those of lull convert. They are text, so that all that is wrong with
// them can be said at once.
type convertFlags struct {
	Files      []string `arg:"" optional:"" name:"file" help:"What is converted, all files together. - is standard input."`
	To         text     `placeholder:"FORMAT" help:"What it becomes (--list names the formats). Default: lull, if the files are something else."`
	From       text     `placeholder:"FORMAT" help:"What the files are. Default: what each document of theirs looks like."`
	Output     text     `short:"o" placeholder:"FILE" help:"Where it goes, whole or not at all. Default: standard output."`
	Strict     bool     `help:"Write nothing if anything would be lost or changed, and fail."`
	Dependency text     `placeholder:"NAME" help:"Only this one of the dependencies that are read."`
	Base       text     `placeholder:"PRESET" help:"What the files do not say is as this preset has it, or lull, the recommended policy. Default: as the other system does it."`
	JSON       bool     `name:"json" help:"Write JSON where YAML is usual."`
	ReportJSON bool     `name:"report-json" help:"Write the report as JSON, an object a line."`
	Quiet      bool     `help:"Write no report. What is wrong with the files is said all the same."`
	List       bool     `help:"List the formats."`
}

// Help is shown above the flags.
func (convertFlags) Help() string {
	return `Turns what other systems say of retries into lull's policy file, and back. All
that the other form cannot say, or not so, is reported on standard error, with
file, line, field, value and reason: what is lost, what is changed, and what had
to be assumed. Fields that are not about how calls are made are listed as aside.

  lull convert service-config.json
      a gRPC service config as policies
  lull convert virtual-services.yaml destination-rules.yaml -o policies.yaml
      Istio; routes and rules for the same host become one dependency
  lull convert policies.yaml --to grpc --dependency payments
      for a client that knows nothing of lull
  lull convert envoy.yaml --to istio --strict
      by way of a policy, or not at all

Exit codes: 0 it is written (whatever the report says), 1 nothing is: the files
are valid and have nothing to convert, or something would be lost or changed and
--strict is set, or a file cannot be read or written; 2 the command line is
wrong, or a file is not what it should be.`
}

// stdin is what "-" reads.
var stdin io.Reader = os.Stdin

// Run converts.
func (f convertFlags) Run(env surroundings) error {
	if f.List {
		return f.list(env.stdout)
	}
	var out convert.Output
	err := untilInterrupted(env.ctx, func() (err error) {
		if out, err = f.convert(env); err == nil && f.Output == "" {
			_, err = env.stdout.Write(out.Data)
		}
		return err
	})
	if err != nil || f.Output == "" {
		return err
	}
	return writeWhole(string(f.Output), out.Data) // which takes no time, and leaves nothing behind
}

// errStopped is what comes of a command that the user has ended.
var errStopped = errors.New("interrupted: nothing is written")

// untilInterrupted runs work, which knows no context, and returns its error. When ctx ends it
// returns at once, and leaves work behind: the process ends.
func untilInterrupted(ctx context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errStopped
	}
}

// convert converts, and prints the report. The output is what is to be written.
func (f convertFlags) convert(env surroundings) (out convert.Output, err error) {
	to, o, err := f.options()
	if err != nil {
		return out, err
	}
	files, err := f.read()
	if err != nil {
		return out, err
	}
	if to == nil {
		if to, err = otherThan(files, o); err != nil {
			return out, err
		}
	}
	out, err = convert.Convert(files, *to, o)
	if err != nil && !errors.Is(err, convert.ErrNothing) {
		return out, converted(err)
	}
	losses := len(out.Report.Losses())
	if !f.Quiet {
		if err := f.report(env.stderr, out.Report); err != nil {
			return out, err
		}
	}
	if err != nil {
		return out, fmt.Errorf("nothing is written: %w", err)
	}
	if f.Strict && losses > 0 {
		return out, fmt.Errorf("nothing is written: %s would be lost or changed, and --strict is set", counted(losses, "field"))
	}
	return out, nil
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// list names the formats.
func (f convertFlags) list(w io.Writer) error {
	if f.JSON {
		type format struct {
			Name  string `json:"name"`
			Title string `json:"title"`
		}
		var all []format
		for _, each := range convert.Formats() {
			all = append(all, format{each.String(), each.Title()})
		}
		return json.NewEncoder(w).Encode(all)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, each := range convert.Formats() {
		fmt.Fprintf(t, "%s\t%s\n", each, each.Title())
	}
	return t.Flush()
}

// options are what the flags say. A nil to is one that the files decide.
func (f convertFlags) options() (to *convert.Format, o convert.Options, err error) {
	var l problem.List
	format := func(flag string, v text) *convert.Format {
		if v == "" {
			return nil
		}
		var named convert.Format
		err := named.UnmarshalText([]byte(v))
		l.Check(err == nil, flag, quoted(v), convert.FormatNames())
		return &named
	}
	to = format("--to", f.To)
	o = convert.Options{From: format("--from", f.From), Base: string(f.Base), Only: string(f.Dependency), JSON: f.JSON}
	l.Check(len(f.Files) > 0, "FILE", "missing", "at least one file, or - for standard input")
	dashes := 0
	for _, name := range f.Files {
		if name == "-" {
			dashes++
		}
	}
	l.Check(dashes < 2, "FILE", `"-" twice`, "standard input once")
	l.Check(f.Base == "" || f.Base == "lull" || isPreset(string(f.Base)), "--base", quoted(f.Base), "lull, or a preset: "+strings.Join(config.Presets(), ", "))
	return to, o, l.Err()
}

func isPreset(name string) bool {
	_, ok := config.PresetPolicy(name)
	return ok
}

// mostRead is a byte more than Convert takes, so that it refuses a file that is longer.
const mostRead = 16<<20 + 1

// read reads the files. Those that cannot be read are all named.
func (f convertFlags) read() ([]convert.File, error) {
	var files []convert.File
	var errs []error
	for _, name := range f.Files {
		file, err := readFile(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		files = append(files, file)
	}
	return files, errors.Join(errs...)
}

func readFile(name string) (convert.File, error) {
	if name == "-" {
		data, err := io.ReadAll(io.LimitReader(stdin, mostRead))
		return convert.File{Name: "standard input", Data: data}, err
	}
	f, err := os.Open(name)
	if err != nil {
		return convert.File{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostRead))
	return convert.File{Name: name, Data: data}, err
}

// otherThan is lull, unless that is what the files are.
func otherThan(files []convert.File, o convert.Options) (*convert.Format, error) {
	to := convert.Lull
	for _, file := range files {
		if o.From != nil && *o.From == convert.Lull || o.From == nil && convert.IsPolicyFile(file) {
			return nil, problem.List{{Field: "--to", Value: "missing", Allowed: "the format that policies become: " + convert.FormatNames()}}
		}
	}
	return &to, nil
}

// converted gives an error of Convert the exit code that it deserves, and its fields the
// names of flags.
func converted(err error) error {
	if mistakes, ok := errors.AsType[config.Mistakes](err); ok {
		return failure{mistakes, exitUsage}
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

// report prints what could not be carried over, in the order of the files, and a summary.
func (f convertFlags) report(w io.Writer, r convert.Report) error {
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
		b.WriteString(printable(e.String()) + "\n")
	}
	if len(r) > 0 {
		fmt.Fprintf(&b, "%d lost, %d changed, %d assumed, %d aside\n", counts[convert.Lost], counts[convert.Changed], counts[convert.Assumed], counts[convert.Aside])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeWhole writes a file whole or not at all: beside it first, and then in its place.
// It keeps the permissions of a file that is there.
func writeWhole(name string, data []byte) (err error) {
	info, err := os.Stat(name)
	there := err == nil
	if there && !info.Mode().IsRegular() { // a pipe or a device cannot be replaced
		return os.WriteFile(name, data, 0o666)
	}
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target // what a link leads to is replaced, not the link
	}
	t, err := createBeside(name)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			t.Close()
			os.Remove(t.Name())
		}
	}()
	if _, err := t.Write(data); err != nil {
		return err
	}
	if there {
		if err := t.Chmod(info.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := t.Sync(); err != nil {
		return err
	}
	if err := t.Close(); err != nil {
		return err
	}
	return os.Rename(t.Name(), name)
}

// createBeside creates a file in the folder of another, with the permissions that the
// user's files have: those of os.CreateTemp are for nobody else.
func createBeside(name string) (*os.File, error) {
	for {
		beside := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%d", filepath.Base(name), rand.Uint32()))
		f, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, os.ErrExist) {
			return f, err
		}
	}
}
