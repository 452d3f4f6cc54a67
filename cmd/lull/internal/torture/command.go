// Package torture is the command lull torture: it puts clients to the cases of module
// torture, and prints a card for each, a matrix over several, JSON, JUnit's XML or a page.
package torture

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/cards"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/lab/torture"
)

// Command is lull torture.
type Command struct {
	Adapter  []string  `arg:"" optional:"" name:"adapter" help:"After --: the program that makes calls with your client, and its arguments, such as -- ./client {url} {method} {body-file}. Without {url} it stays up and reads calls from its standard input."`
	Client   cli.Texts `placeholder:"NAME,..." help:"Grade clients that are built in: lullhttp (the zero policy), lullhttp-hedging, net/http."`
	Adapters cli.Text  `placeholder:"FILE" help:"Grade the clients that a file lists. Each line has NAME, VERSION and the command, separated by tabs. Lines that begin with # are skipped."`
	Keep     cli.Text  `placeholder:"FILE" help:"Write each card into this file, as JSON, as soon as it is finished. A client whose card is already in the file is not run again, so an interrupted run can be continued."`
	Case     cli.Texts `placeholder:"NAME,..." help:"Only these cases or groups of cases. hint-* matches all names that begin with hint-. Default: all."`
	Name     cli.Text  `default:"client" placeholder:"client" help:"The name of the adapter's client in the card."`
	Listen   cli.Text  `default:"127.0.0.1:8555" placeholder:"127.0.0.1:8555" help:"Without a client: the address where the server waits for clients. It must be an address of this machine."`
	List     bool      `help:"List the cases: what the server does, what is right, and the source of that."`
	Together cli.Text  `default:"16" placeholder:"16" help:"Cases at the same time: 1 to 64."`
	cards.Output
}

func (Command) Help() string {
	return `Starts a server that fails in more than a hundred ways, and grades how a client
behaves: what it repeats, when, with what body, and what it does not repeat.

  lull torture --client lullhttp
      the card of lull's own client
  lull torture --name curl -- curl -sf --retry 3 -X {method} {url}
      the card of any program that makes one call and exits with 0 on success
  lull torture --client lullhttp,net/http --report matrix.html
      a matrix, with the time line behind each cell
  lull torture
      waits at http://127.0.0.1:8555 for any client that calls /t/CASE/RUN, and
      shows there what it has seen

fail: it breaks a specification or does harm. warn: it is allowed, but not
recommended. n/a: the client does not claim to do it. The exit code is 1 if
anything failed, or the client did not start. The server listens on 127.0.0.1 only.`
}

var builtIn = map[string]func() torture.Client{
	"lullhttp": func() torture.Client { return torture.Lull("lullhttp", lull.Policy{}) },
	"lullhttp-hedging": func() torture.Client {
		return torture.Lull("lullhttp-hedging", lull.Policy{Hedge: hedge.Config{Attempts: 2}})
	},
	"net/http": torture.NetHTTP,
}

func (f Command) Check() error { _, _, err := f.task(); return err }

func (Command) Complete() map[string][]string {
	return map[string][]string{
		"client": slices.Sorted(maps.Keys(builtIn)), "case": choice.Each(torture.Cases(), func(c torture.Case) string { return c.Name }),
	}
}

func (f Command) task() ([]chosen, torture.Options, error) {
	var l problem.List
	var wrong cli.Mistakes
	o := torture.Options{Together: cli.Whole(&l, "--together", f.Together, 1, 64)}
	clients := f.clients(&l, &wrong)
	for i, c := range clients {
		name := c.client.Name()
		twice := slices.ContainsFunc(clients[:i], func(other chosen) bool { return other.client.Name() == name })
		l.Check(f.Keep == "" || !twice, "--keep", f.Keep.Quoted(), fmt.Sprintf("clients of different names, by which it knows their cards; two are named %q", name))
	}
	wrong.Add(l.Err())
	var err error
	o.Cases, err = torture.Select(f.Case.Split())
	wrong.In("--case", err)
	f.Output.Check(&wrong)
	return clients, o, wrong.Err()
}

func (f Command) Run(env cli.Env) error {
	if f.List {
		return cards.List(env.Stdout, torture.Cases(), func(c torture.Case) cards.Case {
			return cards.Case{Name: c.Name, Group: c.Group, Does: c.Does, Right: c.Right, Source: c.Source}
		}, "The server", "The client")
	}
	clients, o, err := f.task()
	if err != nil {
		return err
	}
	all, err := f.Earlier(false)
	if err != nil {
		return err
	}
	if len(clients) == 0 && len(f.From) == 0 {
		if all, err = f.wait(env, o.Cases); err != nil || len(all) == 0 {
			return err
		}
	}
	kept, err := f.kept()
	if err != nil {
		return err
	}
	p, of := f.Progress(env)
	stopped := func(err error) error { // prints the cards that were finished before err
		p.End()
		if len(all) > 0 {
			err = errors.Join(err, f.Write(env, all))
		}
		return err
	}
	var ungraded error
	for _, c := range clients {
		if i := slices.IndexFunc(kept, func(card *torture.Card) bool { return finished(card, c, o.Cases) }); i >= 0 {
			all = append(all, kept[i])
			continue
		}
		o.Progress = of(c.client.Name())
		card, err := torture.Run(env.Context, c.client, o)
		if err != nil {
			err = fmt.Errorf("%s: %w", c.client.Name(), err)
		}
		if err != nil && (card == nil || env.Context.Err() != nil) {
			return stopped(errors.Join(ungraded, err))
		}
		ungraded = errors.Join(ungraded, err)
		card.Version = c.version
		all = append(all, card)
		if f.Keep != "" && err == nil {
			kept = append(slices.DeleteFunc(kept, func(old *torture.Card) bool { return old.Name == card.Name }), card)
			if err := keep(string(f.Keep), kept); err != nil {
				return stopped(err)
			}
		}
	}
	p.End()
	return errors.Join(f.Print(env, all), ungraded)
}

func (f Command) kept() ([]*torture.Card, error) {
	if f.Keep == "" {
		return nil, nil
	}
	kept, err := cards.Read(string(f.Keep), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return kept, err
}

func finished(card *torture.Card, c chosen, cases []torture.Case) bool {
	return card.Name == c.client.Name() && card.Version == c.version && !slices.ContainsFunc(cases, func(c torture.Case) bool {
		_, ok := card.Result(c.Name)
		return !ok
	})
}

func keep(name string, cards []*torture.Card) error {
	var b bytes.Buffer
	if err := torture.WriteJSON(&b, cards); err != nil {
		return err
	}
	return cli.WriteWhole(name, b.Bytes())
}

// wait listens until it is interrupted, and returns a card for each run that has come.
func (f Command) wait(env cli.Env, cases []torture.Case) ([]*torture.Card, error) {
	s, err := torture.Listen(string(f.Listen), cases)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	defer s.Close()
	authority, err := os.CreateTemp("", "lull-torture-*.pem")
	if err != nil {
		return nil, err
	}
	defer os.Remove(authority.Name())
	if _, err := authority.Write(s.CA()); err != nil {
		return nil, err
	}
	if err := authority.Close(); err != nil {
		return nil, err
	}
	out := choice.Either(f.JSON, env.Stderr, env.Stdout)
	fmt.Fprintf(out, `Point a client at %[1]st/CASE/RUN. RUN is a word of your own, such as its name.
The addresses of all cases:  %[1]scases/RUN
What was seen so far:        %[1]s
Certificates are signed by:  %[2]s
Ctrl-C ends it, and prints the cards.
`, s.URL(), authority.Name())
	<-env.Context.Done()
	err = s.Close()
	fmt.Fprintln(out)
	return s.Cards(), err
}

func version(name string) string {
	if name == "net/http" {
		return runtime.Version()
	}
	fields := strings.Fields(cli.Version()) // the name of the program comes first
	return fields[min(1, len(fields)-1)]
}

type chosen struct {
	client  torture.Client
	version string
}

func (f Command) clients(l *problem.List, wrong *cli.Mistakes) []chosen {
	var list []chosen
	for _, name := range f.Client.Split() {
		make, ok := builtIn[name]
		l.Check(ok, "--client", strconv.Quote(name), "one of lullhttp, lullhttp-hedging, net/http; others after -- or by --adapters")
		if ok {
			list = append(list, chosen{make(), version(name)})
		}
	}
	if f.Adapters != "" {
		text, err := cli.Env{}.ReadWhole(string(f.Adapters), mostAdapters)
		wrong.In("--adapters", err)
		if err == nil {
			list = append(list, readAdapters(l, string(f.Adapters), string(text))...)
		}
	}
	if len(f.Adapter) > 0 {
		c, err := torture.Command(string(f.Name), f.Adapter)
		if err == nil {
			_, err = exec.LookPath(f.Adapter[0])
			err = cli.CannotRun(f.Adapter[0], err)
		}
		wrong.Add(err)
		if err == nil {
			list = append(list, chosen{c, ""})
		}
	}
	return list
}

const mostAdapters = 1 << 20

func readAdapters(l *problem.List, name, text string) []chosen {
	var list []chosen
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.SplitN(line, "\t", 3)
		where := fmt.Sprintf("%s:%d", name, i+1)
		if len(fields) != 3 {
			l.Add(where, strconv.Quote(line), "NAME, VERSION and the command, between tabs")
			continue
		}
		c, err := torture.Command(fields[0], strings.Fields(fields[2]))
		l.Check(err == nil, where, strconv.Quote(line), fmt.Sprint(err))
		if err == nil {
			list = append(list, chosen{c, fields[1]})
		}
	}
	l.Check(len(list) > 0 || len(*l) > 0, "--adapters", strconv.Quote(name)+", which has no client", "lines with NAME, VERSION and the command, between tabs")
	return list
}
