package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/torture"
)

// tortured are the clients that are graded, by their names in the list of lab/clients/install.sh.
var tortured = []string{"curl", "curl-once", "requests", "fetch", "okhttp", "ruby-net-http", "guzzle"}

// runTorture grades the clients alone and through each proxy. With --keep a client that has a card there is not run again.
func runTorture(ctx context.Context, out io.Writer) error {
	var cards []*torture.Card
	if f, err := os.Open(options.keep); err == nil {
		defer f.Close()
		cards = must.Have(torture.ReadJSON(f))
	}
	card := func(name string) *torture.Card {
		if i := slices.IndexFunc(cards, func(c *torture.Card) bool { return c.Name == name }); i >= 0 {
			return cards[i]
		}
		return nil
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	cases := must.Have(torture.Select(split(options.cases)))
	for _, client := range adapters() {
		for _, through := range append([]string{""}, options.peers...) {
			graded := torture.Client(client)
			if through != "" {
				graded = throughClient{client, peerNamed(through), fail}
			}
			if card(graded.Name()) != nil {
				continue
			}
			c, err := torture.Run(ctx, graded, torture.Options{Cases: cases, Together: options.together, Progress: func(done, all int, _ torture.Result) {
				if done%10 == 0 || done == all {
					progress("%s: %d of %d cases", graded.Name(), done, all)
				}
			}})
			if c == nil || ctx.Err() != nil {
				return err
			}
			if err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", graded.Name(), err)
			}
			if cards = append(cards, c); options.keep != "" {
				f := must.Have(os.Create(options.keep))
				must.Succeed(torture.WriteJSON(f, cards))
				must.Succeed(f.Close())
			}
		}
	}
	t := newTable(out, fmt.Sprintf("%d cases: pass / warn / fail", len(cases)), append([]string{"alone"}, options.peers...)...)
	for _, client := range adapters() {
		alone := card(client.Name())
		row := []string{grades(alone)}
		for _, through := range options.peers {
			row = append(row, grades(card(throughName(client, through))))
		}
		t.row(client.Name(), row...)
	}
	for _, client := range adapters() {
		for _, through := range options.peers {
			name := throughName(client, through)
			if worse := worseThan(card(client.Name()), card(name)); through == "lull" || through == "bare" {
				fmt.Fprintf(out, "\n%s: worse than alone in %d\n%s", name, len(worse), strings.Join(worse, ""))
			}
		}
	}
	return nil
}

// worseThan returns a line for each case that has a worse grade through a proxy than alone.
func worseThan(alone, through *torture.Card) (lines []string) {
	order := []torture.Grade{torture.Fail, torture.Warn, torture.NotApplicable, torture.Pass}
	for _, r := range through.Results {
		if before, ok := alone.Result(r.Case); ok && r.Grade != torture.NotApplicable && slices.Index(order, r.Grade) < slices.Index(order, before.Grade) {
			lines = append(lines, fmt.Sprintf("  %s: %s (%s), alone %s\n", r.Case, r.Grade, r.Why, before.Grade))
		}
	}
	return lines
}

func grades(c *torture.Card) string {
	return fmt.Sprintf("%d / %d / %d", c.Count(torture.Pass), c.Count(torture.Warn), c.Count(torture.Fail))
}

// adapters returns the clients that --adapters lists and --clients names.
func adapters() (list []torture.Client) {
	for line := range strings.Lines(string(must.Have(os.ReadFile(options.adapters)))) {
		f := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		if len(f) == 3 && slices.Contains(split(options.clients), f[0]) {
			list = append(list, must.Have(torture.Command(f[0], strings.Fields(f[2]))))
		}
	}
	if len(list) == 0 {
		must.Fail("--adapters: %s lists none of %s", options.adapters, options.clients)
	}
	return list
}

// A throughClient is a client beside a proxy.
type throughClient struct {
	torture.Client
	peer peer
	fail func(error) // ends the run: a proxy does not start
}

func throughName(c torture.Client, peer string) string { return c.Name() + " through " + peer }

func (c throughClient) Name() string { return throughName(c.Client, c.peer.name) }

func (c throughClient) Start(ctx context.Context, e torture.Env, stayUp bool) (torture.Session, error) {
	s, err := c.Client.Start(ctx, e, stayUp)
	return &throughSession{Session: s, of: c, ca: e.CAFile, proxies: map[int]*running{}}, err
}

// A throughSession has a door for each client number, which stands for a process with its own sidecar. Doors share nothing,
// so that one program has those of many clients.
type throughSession struct {
	torture.Session
	of throughClient
	ca string

	mu      sync.Mutex
	proxies map[int]*running // 0 is that of client 0 alone; each other one has the doors of so many clients
}

const doorsAProgram = 64

func (s *throughSession) Call(ctx context.Context, c torture.Call) torture.Outcome {
	u := must.Have(url.Parse(c.URL))
	address, err := s.door(c.Client, u.Scheme+"://"+u.Host)
	if err != nil {
		return torture.Outcome{Text: err.Error()}
	}
	u.Scheme, u.Host = "http", address
	c.URL = u.String()
	return s.Session.Call(ctx, c)
}

func (s *throughSession) door(client int, origin string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := (client + doorsAProgram - 1) / doorsAProgram
	if s.proxies[n] == nil {
		doors := []door{{to: origin}} // most cases have one client
		if n > 0 {
			doors = slices.Repeat(doors, doorsAProgram)
		}
		r, err := s.of.peer.start(s.ca, doors...)
		if err != nil {
			s.of.fail(err)
			return "", err
		}
		s.proxies[n] = r
	}
	r := s.proxies[n]
	return r.doors[(client+doorsAProgram-1)%len(r.doors)].listen, nil
}

func (s *throughSession) Close() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.proxies {
		r.close()
	}
	return s.Session.Close()
}
