package probe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/sleep"
	"github.com/lullgo/lull/lab/torture"
	"github.com/lullgo/lull/lab/torture/internal/words"
)

// A Case is one thing that the client does, what the server ought to do then, and the source of
// that.
type Case struct {
	Name   string // such as key-again
	Group  string
	Does   string // what the client does
	Right  string // what the server ought to do
	Source string // where that stands

	survey string // what it is judged by
	judge  func(*seen) torture.Verdict
}

// Select returns the cases that the patterns name: names of cases or of groups, or the beginning
// of a name followed by "*". Without patterns it returns all.
func Select(patterns []string) ([]Case, error) {
	return words.Select(Cases(), patterns, func(c Case) (name, group string) { return c.Name, c.Group }, "lull probe", "key-*")
}

// A survey makes requests for several cases.
type survey struct {
	name string
	// after is an earlier survey that is made first. If needs it sees nothing where that saw nothing.
	after string
	needs bool
	run   func(*prober, context.Context)
}

// surveys are made in this order.
var surveys = []survey{
	{"calls", "", false, (*prober).calls},
	{"keys", "", false, (*prober).keys},
	{"at-once", "keys", true, (*prober).atOnce},
	{"error", "keys", true, (*prober).afterError},
	{"expect", "", false, (*prober).expect},
	{"old", "", false, (*prober).old},
	{"late", "", false, (*prober).late},
	{"short", "", false, (*prober).short},
	{"busy", "", false, (*prober).busy},
	{"attempts", "busy", true, (*prober).attempts},
	{"left", "busy", false, (*prober).abandon},
}

type seen struct {
	target  Target
	by      map[string][]exchange
	notSeen map[string]string // why a survey saw nothing
	took    map[string]time.Duration
}

func (s *seen) all() []exchange {
	var list []exchange
	for _, survey := range surveys {
		list = append(list, s.by[survey.name]...)
	}
	return list
}

// named returns the first exchange of a survey that is for something.
func (s *seen) named(survey, what string) (*exchange, bool) {
	i := slices.IndexFunc(s.by[survey], func(x exchange) bool { return x.what == what })
	if i < 0 {
		return nil, false
	}
	return &s.by[survey][i], true
}

// announces reports whether the server declares that it reads what lull's clients send.
func (s *seen) announces() bool {
	return slices.ContainsFunc(s.all(), func(x exchange) bool { return x.header.Get("Lull") != "" })
}

// notSeen is why a survey could not see what it is for.
type notSeen string

func (n notSeen) Error() string { return string(n) }

type prober struct {
	*wire
	seen
	together int
	requests int

	survey string
	start  time.Time
}

// Run runs the cases against a server, and returns its card. It returns an error if the target or
// the options are wrong, if the server cannot be reached at all, and if ctx ends. If the server goes away in the midst,
// Run returns an error and a card with the cases that were graded before.
func Run(ctx context.Context, t Target, o Options) (*torture.Card, error) {
	t, u, o, err := check(t, o)
	if err != nil {
		return nil, err
	}
	p := &prober{wire: newWire(t, u, o), together: o.Together, requests: o.Requests,
		seen: seen{target: t, by: map[string][]exchange{}, notSeen: map[string]string{}, took: map[string]time.Duration{}}}
	defer p.close()
	card := &torture.Card{Name: u.Host, Server: true, Began: time.Now()}
	made := map[string]bool{}
	var make func(string) error
	make = func(name string) error {
		if name == "" || made[name] {
			return nil
		}
		made[name] = true
		s := surveys[slices.IndexFunc(surveys, func(s survey) bool { return s.name == name })]
		if err := make(s.after); err != nil {
			return err
		}
		if why := p.notSeen[s.after]; s.needs && why != "" {
			p.notSeen[name] = why
			return nil
		}
		p.survey, p.start = name, time.Now()
		err := func() (err error) {
			defer must.Catch(&err)
			s.run(p, ctx)
			return nil
		}()
		p.took[name] = time.Since(p.start)
		var not notSeen
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &not):
			p.notSeen[name] = string(not)
		case errors.Is(err, errBound):
			p.notSeen[name] = fmt.Sprintf("not seen: %v, which is %d", err, o.Requests)
		}
		return p.checkGone(ctx, name)
	}
	if err := make("calls"); err != nil {
		return nil, err
	}
	if calls := p.by["calls"]; !slices.ContainsFunc(calls, func(x exchange) bool { return x.status > 0 }) && len(calls) > 0 {
		return nil, fmt.Errorf("%s does not answer: %s", t.URL, calls[0].err)
	}
	for i, c := range o.Cases {
		if err := make(c.survey); errors.As(err, new(goneError)) {
			card.Took = time.Since(card.Began)
			return card, fmt.Errorf("%d of %d cases were graded: %w", i, len(o.Cases), err)
		} else if err != nil {
			return nil, err
		}
		r := torture.Result{Case: c.Name, Group: c.Group, Does: c.Does, Right: c.Right, Source: c.Source, Calls: 1, Attempts: len(p.by[c.survey]), Took: p.took[c.survey]}
		if why := p.notSeen[c.survey]; why != "" {
			r.Verdict = torture.NotApplicable.Because("%s", why)
		} else {
			r.Verdict = c.judge(&p.seen)
		}
		for _, x := range p.by[c.survey] {
			r.Events = append(r.Events, torture.Event{At: x.began, Text: x.String()})
		}
		card.Results = append(card.Results, r)
		if o.Progress != nil {
			o.Progress(i+1, len(o.Cases), r)
		}
	}
	card.Took = time.Since(card.Began)
	return card, nil
}

// goneError is the error of a server that answered, and does not any more.
type goneError string

func (g goneError) Error() string { return string(g) }

// gone returns an error if the server has not answered the last request of a survey, and does not answer at all. A server
// that is gone gives no verdict on how it answers.
func (p *prober) checkGone(ctx context.Context, survey string) error {
	done := p.by[survey]
	if survey == "calls" || len(done) == 0 || done[len(done)-1].status > 0 || done[len(done)-1].cancelled {
		return nil
	}
	why := ""
	for range 3 {
		if p.take(ctx, 1) != nil {
			return context.Cause(ctx)
		}
		x := p.send(ctx, p.start, p.get(""), nil)
		if x.status > 0 {
			return nil
		}
		why = x.err
		sleep.For(ctx, time.Second)
	}
	return goneError("the server does not answer any more: " + why)
}

// The functions of surveys, and those that they call, fail as those of package must do.

func (p *prober) sendOne(ctx context.Context, x exchange, body []byte, header ...string) *exchange {
	must.Succeed(p.take(ctx, 1))
	y := p.send(ctx, p.start, x, body, header...)
	p.by[p.survey] = append(p.by[p.survey], y)
	must.Succeed(context.Cause(ctx))
	return &p.by[p.survey][len(p.by[p.survey])-1]
}

// failNotSeen ends a survey that could not see what it is for.
func failNotSeen(format string, args ...any) {
	must.Succeed(notSeen(fmt.Sprintf("not seen: "+format, args...)))
}

// sendRound makes requests at once, each over a lane of its own, and records them.
func (p *prober) sendRound(ctx context.Context, list []exchange, body []byte) {
	must.Succeed(p.take(ctx, len(list)))
	got := make([]exchange, len(list))
	var all sync.WaitGroup
	for i, x := range list {
		x.lane = i
		all.Go(func() { got[i] = p.send(ctx, p.start, x, body) })
	}
	all.Wait()
	p.by[p.survey] = append(p.by[p.survey], got...)
	must.Succeed(context.Cause(ctx))
}

// calls is what the server does at peace.
func (p *prober) calls(ctx context.Context) {
	for n := 0; n < 10 && p.sendOne(ctx, p.get(""), nil).status > 0; n++ {
	}
}

func (p *prober) get(what string) exchange {
	return exchange{what: what, method: "GET", path: p.base.RequestURI()}
}

func (p *prober) post(what, key string) exchange {
	return exchange{what: what, method: "POST", path: p.target.Post, key: key}
}

// keys makes the POSTs of the draft's table, one after the other. The new key is between the
// two requests with the same: what an answer has of a clock does not make them the same.
func (p *prober) keys(ctx context.Context) {
	if p.target.NoPost {
		failNotSeen("no POST was allowed")
	}
	key := newKey()
	first := p.sendOne(ctx, p.post("the first", key), p.target.Body)
	if !first.ok() {
		what := "no answer"
		if first.status > 0 {
			what = strconv.Itoa(first.status) + " (" + http.StatusText(first.status) + ")"
		}
		failNotSeen("a POST with a key to %s gets %s; name a path that takes it, its body and what authorizes it", p.target.Post, what)
	}
	for _, x := range []struct {
		what, key string
		body      []byte
	}{
		{"another key", newKey(), p.target.Body},
		{"the same again", key, p.target.Body},
		{"the same key, another body", key, p.target.Other},
		{"the same, a third time", key, p.target.Body},
		{"without a key", "", p.target.Body},
	} {
		if x.body != nil {
			p.sendOne(ctx, p.post(x.what, x.key), x.body)
		}
	}
	if why, claimed := claimsKeys(&p.seen); !claimed {
		must.Succeed(notSeen(why))
	}
}

// rounds of requests with the same key at once: a race may be won a few times.
const (
	rounds = 5
	atOnce = 8
)

func (p *prober) atOnce(ctx context.Context) {
	for range rounds {
		p.sendRound(ctx, slices.Repeat([]exchange{p.post("", newKey())}, min(atOnce, p.together)), p.target.Body)
	}
}

func (p *prober) afterError(ctx context.Context) {
	if p.target.Fail == "" {
		failNotSeen("no path is known whose POST fails")
	}
	key := newKey()
	for _, what := range []string{"the first", "the same again"} {
		x := p.post(what, key)
		x.path = p.target.Fail
		p.sendOne(ctx, x, p.target.Body)
	}
	if first := p.by["error"][0]; first.status < 500 {
		failNotSeen("a POST to %s gets %d, and not 500 or above", p.target.Fail, first.status)
	}
}

func (p *prober) expect(ctx context.Context) {
	if p.target.NoPost {
		failNotSeen("no POST was allowed")
	}
	p.sendOne(ctx, p.post("", newKey()), p.target.Body, "Expect: 100-continue")
}

func (p *prober) old(ctx context.Context) {
	must.Succeed(p.take(ctx, 1))
	x, body := p.get(""), []byte(nil)
	var header []string
	if !p.target.NoPost {
		x, body = p.post("", newKey()), p.target.Body
		header = []string{"Expect: 100-continue"}
	}
	p.by["old"] = []exchange{p.wire.old(ctx, p.start, x, body, header...)}
}

func (p *prober) late(ctx context.Context) {
	if x := p.sendOne(ctx, p.get("at peace"), nil); !x.ok() {
		failNotSeen("a GET at peace gets %s", x.short())
	}
	p.sendOne(ctx, p.get("no time left"), nil, "Lull-Timeout: 0")
}

// leastSlow is how long a path takes that is slow: long enough for what a busy machine adds.
const leastSlow = time.Second

// slow asks the slow path, and returns how long it takes.
func (p *prober) slow(ctx context.Context, x exchange, header ...string) *exchange {
	if p.target.Slow == "" {
		failNotSeen("no path is known that takes a second or longer")
	}
	x.method, x.path = "GET", p.target.Slow
	return p.sendOne(ctx, x, nil, header...)
}

func (p *prober) baseline(ctx context.Context) *exchange {
	x := p.slow(ctx, exchange{what: "at peace"})
	switch {
	case !x.ok():
		failNotSeen("a GET of %s gets %s", p.target.Slow, x.short())
	case x.took < leastSlow:
		failNotSeen("%s takes %s, and a second is needed", p.target.Slow, words.Rounded(x.took))
	}
	return x
}

func (p *prober) short(ctx context.Context) {
	peace := p.baseline(ctx)
	p.slow(ctx, exchange{what: "a quarter of that time"}, "Lull-Timeout: "+strconv.FormatInt((peace.took/4).Milliseconds(), 10))
}

// wantedRefusals is how many refusals are looked for, and mostRounds bounds how often.
const (
	wantedRefusals = 50
	mostRounds     = 12
)

func (p *prober) busy(ctx context.Context) {
	for n := 0; n < mostRounds; n++ {
		list := p.crowd()
		if n > 0 && int(p.left.Load()) < len(list)+p.requests/3 { // the rest is for others
			break
		}
		p.sendRound(ctx, list, nil)
		refused := len(p.refusals())
		if n > 0 && refused >= wantedRefusals || n == 3 && refused == 0 {
			break
		}
	}
	if !slices.ContainsFunc(p.by["busy"], func(x exchange) bool { return x.refused() || !x.ok() }) {
		failNotSeen("none of %s to %s, %d at once, was refused; name a path that refuses, or send more at once", words.Plural(len(p.by["busy"]), "request"), p.target.Busy, p.together)
	}
}

// crowd is as many GETs of the busy path as may be sent at once.
func (p *prober) crowd() []exchange {
	return slices.Repeat([]exchange{{method: "GET", path: p.target.Busy}}, p.together)
}

// attemptRounds and the share of retries in each: every other request, and in the next round
// the others, so that neither kind comes first.
const attemptRounds = 6

func (p *prober) attempts(ctx context.Context) {
	for n := range attemptRounds {
		list := p.crowd()
		for i := range list {
			if (i+n)%2 == 0 {
				list[i].attempt = 2
			}
		}
		if n > 1 && int(p.left.Load()) < 2*len(list) {
			break
		}
		p.sendRound(ctx, list, nil)
	}
}

// abandon fills the server with slow work, goes away, and asks whether there is room again before
// that work would have been done.
func (p *prober) abandon(ctx context.Context) {
	whole := p.baseline(ctx).took
	must.Succeed(p.take(ctx, p.together))
	fill, leave := context.WithCancelCause(ctx)
	defer leave(errLeft)
	left := make([]exchange, p.together)
	var all sync.WaitGroup
	start := time.Now()
	for i := range left {
		all.Go(func() {
			left[i] = p.send(fill, p.start, exchange{what: "fill", method: "GET", path: p.target.Slow, lane: i}, nil)
		})
	}
	must.Succeed(sleep.For(ctx, whole/4))
	leave(errLeft)
	all.Wait()
	p.by["left"] = append(p.by["left"], left...)
	for range 2 {
		must.Succeed(sleep.For(ctx, whole/8))
		if time.Since(start) > whole*7/10 || p.slow(ctx, exchange{what: "afterwards", lane: p.together}).ok() {
			break
		}
	}
}

// short is what came of an exchange, for a sentence.
func (x *exchange) short() string {
	if x.status == 0 {
		return "no answer"
	}
	return strconv.Itoa(x.status)
}
