// Package cards prints what lull torture and lull probe find: cards, matrices, JSON, JUnit's XML and pages.
package cards

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/lab/torture"
)

// Output is the flags of both commands: what is printed, and where.
type Output struct {
	All      bool      `help:"Print the verdict of every case, also of those that passed."`
	Timeline bool      `help:"Print the time line of every case that is printed."`
	JSON     bool      `name:"json" help:"Print cards and time lines as JSON, instead of the table."`
	JUnit    cli.Text  `name:"junit" placeholder:"FILE" help:"Also write a file in JUnit's XML."`
	Report   cli.Text  `placeholder:"FILE" help:"Also write an HTML page: the matrix, with the time line of each cell."`
	From     cli.Texts `placeholder:"FILE,..." help:"Also read cards from the JSON output of earlier runs."`
	Quiet    bool      `help:"Show no progress."`
}

// Check adds a mistake for each file that could not be written: the cases take long.
func (o Output) Check(wrong *cli.Mistakes) {
	for flag, name := range map[string]cli.Text{"--junit": o.JUnit, "--report": o.Report} {
		if name != "" {
			wrong.In(flag, cli.CanWrite(string(name)))
		}
	}
}

// Earlier returns the cards of --from: of servers, or of clients.
func (o Output) Earlier(servers bool) ([]*torture.Card, error) {
	var cards []*torture.Card
	for _, name := range o.From.Split() {
		earlier, err := Read(name, servers)
		if err != nil {
			return nil, err
		}
		cards = append(cards, earlier...)
	}
	return cards, nil
}

// Read returns the cards of a file that an earlier run has printed: of servers, or of clients.
func Read(name string, servers bool) ([]*torture.Card, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, cli.CannotRead(err)
	}
	cards, err := torture.ReadJSON(bytes.NewReader(text))
	if err == nil && !json.Valid(text) {
		err = errors.New("something stands after the cards")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: want the output of one run with --json", name, err)
	}
	if len(cards) > 0 && cards[0].Server != servers {
		return nil, fmt.Errorf("%s: the cards are those of %s", name, map[bool]string{true: "servers: lull probe --from", false: "clients: lull torture --from"}[cards[0].Server])
	}
	return cards, nil
}

// Progress returns what shows the progress of cards. of returns what is called after each case of one.
func (o Output) Progress(env cli.Env) (p *term.Progress, of func(name string) func(done, all int, last torture.Result)) {
	p = term.NewProgress(env.Stderr, env.Getenv, o.Quiet)
	return p, func(name string) func(int, int, torture.Result) {
		return func(done, all int, _ torture.Result) {
			p.Show(func(took time.Duration) string {
				return fmt.Sprintf("%s: %d of %d cases, %v", name, done, all, took.Round(time.Second))
			})
		}
	}
}

// Print prints the cards in the forms that the flags name. It returns an error if a case has failed.
func (o Output) Print(env cli.Env, cards []*torture.Card) error {
	if err := o.Write(env, cards); err != nil {
		return err
	}
	failed := 0
	for _, c := range cards {
		failed += c.Count(torture.Fail)
	}
	if failed > 0 {
		return fmt.Errorf("%s failed", term.Counted(failed, "case"))
	}
	return nil
}

// Write is Print without a look at the grades.
func (o Output) Write(env cli.Env, cards []*torture.Card) error {
	for _, file := range []struct {
		name  cli.Text
		write func(io.Writer, []*torture.Card) error
	}{{o.JUnit, torture.WriteJUnit}, {o.Report, torture.WritePage}} {
		if file.name == "" {
			continue
		}
		var b bytes.Buffer
		if err := file.write(&b, cards); err != nil {
			return err
		}
		if err := cli.WriteWhole(string(file.name), b.Bytes()); err != nil {
			return err
		}
	}
	return o.print(env.Stdout, cards)
}

func (o Output) print(w io.Writer, cards []*torture.Card) error {
	if o.JSON {
		return torture.WriteJSON(w, cards)
	}
	out := bufio.NewWriter(w)
	for i, c := range cards {
		if i > 0 {
			fmt.Fprintln(out)
		}
		o.card(out, c)
	}
	if len(cards) > 1 {
		fmt.Fprintln(out)
		Matrix(out, cards)
	}
	if o.Report != "" {
		fmt.Fprintf(out, "\nThe page is in %s.\n", o.Report)
	}
	return out.Flush()
}

// card prints the lines of a card, and what is not passed. Of a server, what could not be seen is a part of the result, too.
func (o Output) card(out io.Writer, c *torture.Card) {
	title := c.Name
	if c.Version != "" {
		title += " " + c.Version
	}
	fmt.Fprintf(out, "%s: %d pass, %d warn, %d fail, %d do not apply; %v\n\n", term.Printable(title),
		c.Count(torture.Pass), c.Count(torture.Warn), c.Count(torture.Fail), c.Count(torture.NotApplicable), c.Took.Round(100*time.Millisecond))
	for _, line := range c.Lines() {
		fmt.Fprintf(out, "%-22s %-5s %s\n", line.Group, line.Grade, counts(line))
		for i, r := range c.Results {
			if r.Group != line.Group || !o.All && (r.Grade == torture.Pass || r.Grade == torture.NotApplicable && !c.Server) {
				continue
			}
			name := r.Case
			if !o.Timeline && r.Grade == torture.NotApplicable { // what could not be seen is one reason for several
				if i > 0 && sameVerdict(r, c.Results[i-1]) {
					continue
				}
				for _, next := range c.Results[i+1:] {
					if !sameVerdict(r, next) {
						break
					}
					name += ", " + next.Case
				}
			}
			fmt.Fprint(out, term.Fill(fmt.Sprintf("    %-4s  ", r.Grade), name+": "+term.Printable(r.Why)))
			if r.Note != "" {
				fmt.Fprint(out, term.Fill("          ", term.Printable(r.Note)))
			}
			if o.Timeline {
				for _, e := range r.Events {
					call := choice.Either(r.Calls > 1, fmt.Sprintf("call %d: ", e.Call), "")
					fmt.Fprintf(out, "          %9.3f s  %s%s\n", e.At.Seconds(), call, term.Printable(e.Text))
				}
			}
		}
	}
}

func sameVerdict(a, b torture.Result) bool { return a.Group == b.Group && a.Verdict == b.Verdict }

func counts(l torture.Line) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{l.Pass, "pass"}, {l.Warn, "warn"}, {l.Fail, "fail"}, {l.NotApplies, "n/a"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

// Matrix prints a line for each card, and a column for each group: the worst grade, and how many cases have it.
func Matrix(out io.Writer, cards []*torture.Card) {
	groups, lines := torture.Matrix(cards)
	head := []string{"client"}
	if cards[0].Server {
		head[0] = "server"
	}
	for _, group := range groups {
		head = append(head, cmp.Or(short[group], group))
	}
	rows := [][]string{head}
	for i, c := range cards {
		row := []string{term.Printable(c.Name)}
		for _, l := range lines[i] {
			n := map[torture.Grade]int{torture.Pass: l.Pass, torture.Warn: l.Warn, torture.Fail: l.Fail}[l.Grade]
			cell := choice.Either(l.Grade == torture.Warn || l.Grade == torture.Fail, fmt.Sprintf("%d %s", n, l.Grade), string(l.Grade))
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	term.Table(out, rows, term.Width)
}

// short are names of groups for the head of a column.
var short = map[string]string{"connections that break": "broken", "must not be repeated": "forbidden"}

// A Case is what List prints of a case.
type Case struct{ Name, Group, Does, Right, Source string }

// List prints cases: who does what, and whose answer is right.
func List[C any](w io.Writer, cases []C, of func(C) Case, does, right string) error {
	out := bufio.NewWriter(w)
	groups := choice.Each(cases, func(c C) string { return of(c).Group })
	fmt.Fprintf(out, "%d cases in %d groups.\n", len(cases), len(slices.Compact(groups)))
	group := ""
	for _, each := range cases {
		c := of(each)
		if c.Group != group {
			group = c.Group
			fmt.Fprintf(out, "\n%s\n", group)
		}
		fmt.Fprintf(out, "\n  %s\n", c.Name)
		fmt.Fprint(out, term.Fill("    "+does+" ", c.Does+"."), term.Fill("    "+right+" ", c.Right+"."), term.Fill("    ", c.Source))
	}
	return out.Flush()
}
