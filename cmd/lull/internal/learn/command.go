// Package learn is the command lull learn. It reads logs and metrics (package source), makes a world of them (package
// estimate), and writes it as a scenario.
package learn

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/learn/estimate"
	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
	"github.com/lullgo/lull/cmd/lull/internal/learn/source"
	"github.com/lullgo/lull/cmd/lull/internal/simulate"
	"github.com/lullgo/lull/cmd/lull/internal/simulate/report"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// Command is lull learn. Its flags are text, so that all mistakes are reported at once.
type Command struct {
	Sources   []string  `arg:"" optional:"" name:"source" help:"Access logs, CSV, dumps of metrics, OTLP JSON, which may be compressed with gzip; - is standard input; the URL of a Prometheus. All are of the same system."`
	Output    cli.Text  `short:"o" placeholder:"FILE" help:"The world to write: a scenario for lull simulate. Default: none; only the summary is printed."`
	Report    cli.Text  `placeholder:"FILE" help:"Also write an HTML page, with charts of what was measured."`
	Ask       bool      `help:"Ask on the terminal for what the sources do not show."`
	Format    cli.Text  `placeholder:"FORMAT" help:"nginx, envoy, haproxy, alb, json, csv, prometheus or otlp. Default: each source is recognised by its content."`
	LogFormat cli.Text  `placeholder:"TEXT" help:"The log format as it is configured in nginx, HAProxy or Envoy."`
	Field     cli.Texts `placeholder:"KEY=NAME" help:"Which field of JSON lines, or which column of CSV, is the time, start, duration, status, service, host or attempt. unit=ms and side=attempts are settings. May be repeated."`
	Service   cli.Text  `placeholder:"NAME" help:"The service to read, if the sources have several, or its name, if they have none."`
	Zone      cli.Text  `placeholder:"ZONE" help:"The time zone of times that have none, such as UTC or Europe/Berlin."`
	From      cli.Text  `placeholder:"TIME" help:"Leave out what ended before, such as 2026-11-29T14:00:00Z."`
	To        cli.Text  `placeholder:"TIME" help:"Leave out what ended then or later."`
	Step      cli.Text  `placeholder:"DURATION" help:"The length of a step. Default: by the length of the sources."`
	Quiet     bool      `help:"Show no progress."`
}

func (Command) Help() string {
	return `Makes a scenario of what was measured: arrivals, times, errors, timeouts, and
what happened, as faults of the simulator. Each value has a 95 % interval, and
each that the sources do not show has a question. No paths, addresses or names of
hosts are kept.

  lull learn access.log -o world.yaml
      a log of nginx with $request_time at the end of each line
  lull simulate world.yaml
      policies in the world that was learned
  lull learn access.log http://localhost:9090 --ask -o world.yaml
      a log and metrics, with questions on the terminal

Exit codes: 0 the world is written, 1 it is not, or a file cannot be read,
2 the command line or a source is wrong.`
}

func (f Command) Check() error { _, err := f.options(); return err }

func (Command) Complete() map[string][]string { return map[string][]string{"format": source.Formats} }

func (f Command) options() (source.Options, error) {
	var l problem.List
	o := source.Options{Format: string(f.Format), LogFormat: string(f.LogFormat), Service: string(f.Service), Fields: map[string]string{}}
	l.Check(len(f.Sources) > 0, "SOURCE", "missing", "at least one file, or the URL of a Prometheus")
	l.Check(!slices.ContainsFunc(f.Sources, source.IsPrometheus) || f.From != "" && f.To != "", "--from or --to", "missing", "both, since a Prometheus is read")
	l.Check(f.Format == "" || slices.Contains(source.Formats, o.Format), "--format", f.Format.Quoted(), strings.Join(source.Formats, ", "))
	l.Check(!f.Ask || !slices.Contains(f.Sources, "-"), "--ask", "given for standard input", "sources that are files, because the answers are read from there")
	for i, source := range f.Sources {
		again := func(earlier string) bool { return earlier == source || isSame(earlier, source) }
		l.Check(!slices.ContainsFunc(f.Sources[:i], again), source, "named twice", "each source once: its requests would count twice")
		for _, file := range []cli.Text{f.Output, f.Report} {
			l.Check(!isSame(string(file), source), string(file), "a source, and would be written over", "another file")
		}
	}
	for _, field := range f.Field {
		key, name, _ := strings.Cut(string(field), "=")
		l.Check(key != "" && name != "", "--field", field.Quoted(), "KEY=NAME, such as duration=latency_ms")
		o.Fields[key] = name
	}
	if f.Zone != "" {
		zone, err := time.LoadLocation(string(f.Zone))
		l.Check(err == nil, "--zone", f.Zone.Quoted(), "a time zone such as UTC or Europe/Berlin")
		o.Zone = zone
	}
	moment := func(flag string, text cli.Text) time.Time {
		t, err := time.Parse(time.RFC3339, string(text))
		l.Check(err == nil || text == "", flag, text.Quoted(), "a time such as 2026-11-29T14:00:00Z")
		return t
	}
	o.From, o.To = moment("--from", f.From), moment("--to", f.To)
	if f.Step != "" {
		o.Step = cli.Duration(&l, "--step", f.Step, 100*time.Millisecond, time.Hour)
	}
	return o, l.Err()
}

// Run learns, and prints a summary.
func (f Command) Run(env cli.Env, ctx *kong.Context) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	for _, file := range []cli.Text{f.Output, f.Report} {
		if file != "" {
			if err := cli.CanWrite(string(file)); err != nil {
				return err
			}
		}
	}
	o.Stdin = env.Stdin
	p := term.NewProgress(env.Stderr, env.Getenv, f.Quiet)
	o.Progress = func(done, total int64) {
		p.Show(func(time.Duration) string { return fmt.Sprintf("%d of %d MB", done>>20, total>>20) })
	}
	data, err := source.Read(env.Context, f.Sources, o)
	p.End()
	if err != nil {
		return coded(env.Context, err)
	}
	w, err := estimate.Make(data)
	if err != nil {
		printProblems(env.Stdout, data.Problems)
		return cli.Fail(cli.Misused, err)
	}
	if f.Ask {
		if err := ask(&w, env.Stdin, env.Stderr); err != nil {
			return err
		}
		w.Unknown = w.Open()
	}
	text, err := scenario.FormatLearned(w.Scenario, w.Learned)
	if err != nil {
		return err
	}
	for _, sentence := range []string{w.Normal, w.Happened, w.Unknown} {
		fmt.Fprint(env.Stdout, term.Fill("", sentence))
	}
	if n := len(w.Learned.Unknown); n > 0 {
		has := choice.Either(f.Output == "", "-o FILE writes ", "The file has ") + term.Counted(n, "question")
		fmt.Fprint(env.Stdout, term.Fill("", has+" about that, and --ask asks."))
	}
	printProblems(env.Stdout, append(data.Problems, w.Problems...))
	if f.Output != "" {
		if err := cli.WriteWhole(string(f.Output), text); err != nil {
			return err
		}
		fmt.Fprintf(env.Stdout, "\nThe world is in %s: lull simulate %[1]s\n", f.Output)
	}
	if f.Report == "" {
		return nil
	}
	var page bytes.Buffer
	if err := report.Write(&page, pageOf(w, string(text), "lull "+strings.Join(ctx.Args, " "))); err != nil {
		return err
	}
	if err := cli.WriteWhole(string(f.Report), page.Bytes()); err != nil {
		return err
	}
	fmt.Fprintf(env.Stdout, "\nThe page is in %s.\n", f.Report)
	return nil
}

func isSame(a, b string) bool {
	one, err := os.Stat(a)
	other, failed := os.Stat(b)
	return err == nil && failed == nil && os.SameFile(one, other)
}

// coded gives a source that is wrong the exit code of that, and leaves one that cannot be read at 1.
func coded(ctx context.Context, err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		address, _, _ := strings.Cut(request.URL, "/api/")
		return fmt.Errorf("%s cannot be read: %w", address, request.Err)
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok || ctx.Err() != nil {
		return err
	}
	return cli.Fail(cli.Misused, err)
}

func printProblems(out io.Writer, all []observed.Problem) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(out, "\nProblems of the sources:")
	for _, p := range all {
		where := p.Source
		if p.Line > 0 {
			where += fmt.Sprintf(":%d", p.Line)
		}
		text := term.Printable(p.Text)
		if p.Count > 1 {
			text += fmt.Sprintf(" (%d times)", p.Count)
		}
		fmt.Fprint(out, term.Fill("  ", cmp.Or(where, "all")+": "+text))
	}
}

// ask asks the questions of a world that one value answers. An empty answer leaves a question open; after one that is no value it is asked again.
func ask(w *estimate.World, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for _, q := range slices.Clone(w.Learned.Unknown) {
		s := w.Scenario
		for scenario.Set(&s, q.Path+"={}") != nil && scenario.Set(&s, q.Path+"=[]") != nil { // else it has many values
			fmt.Fprint(out, "\n"+term.Fill("", q.Ask))
			fmt.Fprintf(out, "%s (empty: not known): ", q.Path)
			if !lines.Scan() {
				fmt.Fprintln(out)
				return lines.Err()
			}
			answer := strings.TrimSpace(lines.Text())
			if answer == "" {
				break
			}
			err := w.Learned.Answer(&w.Scenario, q, answer)
			if err == nil {
				break
			}
			fmt.Fprintln(out, err)
		}
	}
	return nil
}

// pageOf returns the page of what was measured.
func pageOf(w estimate.World, text, command string) report.Page {
	o := w.Learned.Observed
	s := sim.Series{Step: o.Step}
	known := func(values []float64, i int) float64 {
		if values[i] < 0 {
			return math.NaN()
		}
		return values[i]
	}
	for i := range o.Calls {
		s.Calls = append(s.Calls, known(o.Calls, i))
		s.First = append(s.First, known(o.Attempts, i))
		s.Good = append(s.Good, 1-known(o.Failed, i))
		s.P50 = append(s.P50, time.Duration(max(o.P50[i], 0)*1e9))
		s.P99 = append(s.P99, time.Duration(max(o.P99[i], 0)*1e9))
	}
	return report.Page{
		Scenario: w.Scenario, ScenarioYAML: text, Command: command, Version: cli.Version(), Measured: true,
		Windows:   simulate.Windows(w.Scenario),
		Summaries: []sim.Summary{{Contender: sim.Contender{Name: "measured"}, Results: []sim.Result{{Series: s}}}},
		Notes:     []string{w.Normal, w.Happened, w.Unknown, "0 s is " + w.Learned.Zero + "."},
	}
}
