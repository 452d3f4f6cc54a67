// Package probe is the command lull probe: it puts a server that its user owns to the cases of
// package lab/torture/probe, and prints a card.
package probe

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/lullgo/lull/cmd/lull/internal/cards"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/lab/torture/probe"
)

// Command is lull probe.
type Command struct {
	URL       cli.Text  `arg:"" optional:"" name:"url" help:"The URL of the server, with a path that accepts a GET."`
	IOwnThis  bool      `name:"i-own-this" help:"The server is yours, it may be put under load, and its POSTs may be carried out. Nothing is sent without this."`
	Post      cli.Text  `placeholder:"PATH" help:"The path for POSTs. Some sixty are sent, most with an idempotency key that was used before. Default: the URL's path."`
	NoPost    bool      `help:"Send no POSTs. Then idempotency keys are not graded."`
	Body      cli.Text  `placeholder:"FILE" help:"The body of the POSTs. Default: a small JSON object."`
	OtherBody cli.Text  `placeholder:"FILE" help:"Another body that the server accepts."`
	Type      cli.Text  `default:"application/json" placeholder:"TYPE" help:"The Content-Type of both bodies."`
	Busy      cli.Text  `placeholder:"PATH" help:"A path that refuses GETs, always or when many come at once. Default: the URL's path."`
	Slow      cli.Text  `placeholder:"PATH" help:"A path whose GET takes a second or longer."`
	Fail      cli.Text  `placeholder:"PATH" help:"A path whose POST is answered with 500 or above."`
	Header    cli.Texts `placeholder:"NAME: VALUE" help:"Send this header with every request, such as an Authorization. It is not printed. May be given several times."`
	Together  cli.Text  `default:"32" placeholder:"32" help:"Requests at once: 2 to 1000. Refusals can be graded only if the server does not accept so many."`
	Requests  cli.Text  `default:"600" placeholder:"600" help:"The most requests in total: 1 to 100000."`
	Rate      cli.Text  `default:"100" placeholder:"100" help:"The most requests a second, beyond those at once: up to 10000."`
	Case      cli.Texts `placeholder:"NAME,..." help:"Only these cases or groups of cases. key-* matches all names that begin with key-. Default: all."`
	Name      cli.Text  `placeholder:"NAME" help:"The name of the server in the card. Default: its host."`
	List      bool      `help:"List the cases: what the client does, what is right, and the source of that."`
	cards.Output
}

func (Command) Help() string {
	return `Sends requests to your server, and grades how it treats clients that retry:
idempotency keys, refusals and their headers, deadlines, clients that have gone,
connections.

  lull probe --i-own-this http://127.0.0.1:8080/orders
      the card of this server
  lull probe --i-own-this --post /payments --slow /report URL
      the same with more paths, so that more can be graded

fail: it breaks a specification or does harm. warn: it is allowed, but not
recommended. n/a: the server does not claim to do it, or it could not be seen;
then the card names what would show it. The exit code is 1 if anything failed, or
the server went away.

Requests go only to the host and port of the URL. Redirects are not followed, and
no proxy is used. The requests are limited in total, per second, and at once.`
}

const mostBody = 16 << 20

func (f Command) Check() error { _, _, err := f.task(); return err }

func (Command) Complete() map[string][]string {
	return map[string][]string{"case": choice.Each(probe.Cases(), func(c probe.Case) string { return c.Name })}
}

// task reads the flags, but for the files that they name.
func (f Command) task() (probe.Target, probe.Options, error) {
	var l problem.List
	o := probe.Options{
		Together: cli.Whole(&l, "--together", f.Together, 2, probe.MostTogether),
		Requests: cli.Whole(&l, "--requests", f.Requests, 1, probe.MostRequests),
		Rate:     cli.Number(&l, "--rate", f.Rate, 0.001, probe.MostRate, "requests a second"),
	}
	var wrong cli.Mistakes
	var err error
	o.Cases, err = probe.Select(f.Case.Split())
	wrong.In("--case", err)
	f.Output.Check(&wrong)
	t := probe.Target{URL: string(f.URL), Post: string(f.Post), NoPost: f.NoPost, Type: string(f.Type),
		Busy: string(f.Busy), Slow: string(f.Slow), Fail: string(f.Fail), Header: f.headers(&l)}
	l.Check(f.URL != "" || len(f.From) > 0, "URL", "missing", "the address of a server, or --from FILE")
	l.Check(f.URL == "" || f.IOwnThis, "--i-own-this", "missing", "it, which confirms that the server is yours: it is put under load, and POSTs are carried out")
	var ofTarget problem.List
	if f.URL != "" && errors.As(probe.Check(t, o), &ofTarget) {
		for _, p := range ofTarget { // the fields have the names of flags
			if p.Field != "URL" {
				p.Field = "--" + strings.ToLower(p.Field)
			}
			if !slices.ContainsFunc(l, func(known problem.Problem) bool { return known.Field == p.Field }) {
				l = append(l, p)
			}
		}
	}
	wrong.Add(l.Err())
	return t, o, wrong.Err()
}

func (f Command) Run(env cli.Env) error {
	if f.List {
		return cards.List(env.Stdout, probe.Cases(), func(c probe.Case) cards.Case {
			return cards.Case{Name: c.Name, Group: c.Group, Does: c.Does, Right: c.Right, Source: c.Source}
		}, "The client", "The server")
	}
	t, o, err := f.task()
	if err != nil {
		return err
	}
	for _, file := range []struct {
		name cli.Text
		body *[]byte
	}{{f.Body, &t.Body}, {f.OtherBody, &t.Other}} {
		if file.name == "" {
			continue
		}
		if *file.body, err = env.ReadWhole(string(file.name), mostBody); err != nil {
			return err
		}
	}
	all, err := f.Earlier(true)
	if err != nil {
		return err
	}
	var gone error // in the midst
	if f.URL != "" {
		p, of := f.Progress(env)
		o.Progress = of(string(f.URL))
		card, err := probe.Run(env.Context, t, o)
		p.End()
		if card == nil {
			return err
		}
		gone = err
		if f.Name != "" {
			card.Name = string(f.Name)
		}
		all = append(all, card)
	}
	return errors.Join(f.Print(env, all), gone)
}

func (f Command) headers(l *problem.List) http.Header {
	h := http.Header{}
	for _, line := range f.Header {
		name, value, ok := strings.Cut(string(line), ":")
		name = strings.TrimSpace(name)
		if ok && name != "" {
			h.Add(name, strings.TrimSpace(value))
			continue
		}
		l.Add("--header", "a line without a name", "NAME: VALUE")
	}
	return h
}
