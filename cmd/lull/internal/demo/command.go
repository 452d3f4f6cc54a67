// Package demo is the command lull demo. It runs clients against real HTTP backends on loopback, one backend for each, takes
// the backends down, and shows what happens: live, as a picture or as plain lines, and at the end as a table.
//
// There are two scenarios, storm and tail. What differs between them is in files of those
// names, behind the interface scenario.
package demo

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/internal/choice"
)

// Command is lull demo. Its flags are text, so that all mistakes are reported at once; setting reads them.
type Command struct {
	Scenario   cli.Text  `placeholder:"storm" default:"storm" help:"What is shown: storm (backends go down, calls are retried) or tail (some requests are slow, calls are hedged). Defaults of tail are in brackets."`
	Duration   cli.Texts `sep:"none" placeholder:"25s" help:"How long the clients make calls: 2s to 10m [28s]."`
	Load       cli.Texts `sep:"none" placeholder:"0.75" help:"Calls per second, as a share of the capacity of a backend: 0.05 to 2."`
	Outage     cli.Text  `placeholder:"5s" help:"How long the backends are down [slow]; 0s: never. They go down after 4s or a quarter of the duration [become slow after 9s or a third of it]. Default: 5s or a fifth of the duration [6s or a quarter]."`
	Kind       cli.Texts `sep:"none" placeholder:"stall" help:"What down means: stall (workers freeze, requests queue) or errors (a 503 at once). Storm only."`
	Timeout    cli.Texts `sep:"none" placeholder:"500ms" help:"How long each attempt may take, for all clients [2s]."`
	Attempts   cli.Texts `sep:"none" placeholder:"3" help:"The most attempts that a call makes: 1 to 10. Without this flag lull makes as many as its zero policy does. Storm only."`
	Capacity   cli.Texts `sep:"none" placeholder:"100" help:"Requests per second that a backend can serve: 10 to 2000 [280, while everything is slow]."`
	Queue      cli.Text  `placeholder:"N" help:"Requests that may wait at a backend: 1 to 100000. Default: as many as it serves in ten timeouts [in half a second]."`
	Tail       cli.Texts `sep:"none" placeholder:"0.02" help:"The share of requests that take 50 times as long as most: 0 to 0.5. Tail only."`
	HedgeDelay cli.Texts `sep:"none" placeholder:"20ms" help:"When the naive client sends its second request: 1ms to 10s. Tail only."`
	Clients    cli.Text  `placeholder:"NAMES" help:"Show only these, separated by commas: no-retry, immediate, fixed-interval, exponential, full-jitter, lull [no-hedging, naive, lull]."`
	Seed       cli.Text  `placeholder:"1" default:"1" help:"The seed of the start times of calls and of the service times."`
	Plain      bool      `help:"Print a line each second instead of the picture, as if there were no terminal."`
}

func (Command) Help() string {
	return `Compares several clients. Each has its own HTTP backend on loopback. All backends
have the same capacity and a queue. All clients make their calls at the same
moments. At the end a table shows the results of each client.

--scenario storm: six clients that retry. At the same second every backend goes
down for some seconds.

--scenario tail: three clients. Two of them hedge: if an answer is late, they
send a second request. One request in fifty takes 50 times as long as the
others. In the middle all requests are that slow for some seconds. The backends
have just enough capacity for that, but not for twice as many requests.

Everything is measured: requests are counted where they are sent or arrive, and
the callers measure results and times.

lull is not the best client in every setting. Some examples:

  - In a short outage (--outage 2s) the client without retries does as well.
  - If the errors are quick (--kind errors), all clients do as well.
  - If there is capacity for two requests a call (--scenario tail --load 0.4),
    naive hedging does no harm.
  - If more of the requests are slow (--scenario tail --tail 0.08), naive hedging
    is quicker than lull, which hedges one call in twenty.

Ctrl-C ends the run and prints what was measured until then; the exit
code is 1.`
}

func (f Command) Check() error { _, err := f.setting(); return err }

func (Command) Complete() map[string][]string {
	return map[string][]string{
		"scenario": {"storm", "tail"}, "kind": {string(stall), string(errors503)}, "clients": flagNames(storm.clients()),
	}
}

func (f Command) Run(env cli.Env) error {
	s, err := f.setting()
	if err != nil {
		return err
	}
	v := newView(s, env.Stdout, env.Getenv)
	if f.Plain {
		v = &plain{out: env.Stdout}
	}
	r, err := runDemo(env.Context, s, v)
	if err != nil {
		return err
	}
	if err = printTable(env.Stdout, r); err == nil && r.interrupted {
		err = errors.New("interrupted: the figures are of what was measured until then")
	}
	return err
}

func printTable(w io.Writer, r result) error {
	out := bufio.NewWriter(w)
	of, words := r.setting.Scenario, r.setting.Scenario.words()
	fmt.Fprint(out, settingText(r.setting))
	if r.interrupted {
		fmt.Fprintf(out, "\nInterrupted after %.1f s. These are the calls begun until then; %d of them had\n%s\n",
			r.measured.Seconds(), r.unfinished, words.unfinished)
	}
	of.table(out, r)
	for _, text := range append([]string{strings.Join(of.findings(r), "\n")}, warnings(r)...) {
		if text != "" {
			fmt.Fprintf(out, "\n%s\n", text)
		}
	}
	fmt.Fprintf(out, "\n%s", words.definitions)
	return out.Flush()
}

func settingText(s setting) string {
	var b strings.Builder
	b.WriteString("The setting: a backend for each client, all alike, called at the same moments\n")
	fmt.Fprintf(&b, "  %-9s %.0f a second for %v, at random (Poisson, seed %d)\n", "calls", s.offered(), s.Duration, s.Seed)
	for _, line := range s.Scenario.describe(s) {
		fmt.Fprintf(&b, "  %-9s %s\n", line[0], line[1])
	}
	b.WriteString("The clients\n")
	for _, c := range s.Clients {
		for i, line := range strings.Split(c.about(s), "\n") {
			name := choice.Either(i > 0, "", c.name)
			fmt.Fprintf(&b, "  %-*s %s\n", s.Scenario.words().nameWidth, name, line)
		}
	}
	return b.String()
}

func warnings(r result) (texts []string) {
	const advice = "A lower --capacity or fewer --clients ask less."
	words := r.setting.Scenario.words()
	if lateness := r.late.p99(); lateness > words.late {
		texts = append(texts, fmt.Sprintf("Doubt: this machine was busy. One call in a hundred began %v late or more,\n"+
			"so %s are blurred. %s", lateness.Round(time.Millisecond), words.affected, advice))
	}
	if r.dialErrors > 0 {
		texts = append(texts, fmt.Sprintf("Doubt: %d %s could not even connect, for want of ports or open files here.\n%s",
			r.dialErrors, words.requests, advice))
	}
	return texts
}
