package torture

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/torture/internal/words"
)

// Options are how a client is graded. The zero Options are the recommended ones.
type Options struct {
	Cases []Case // nil means all
	// Together is how many cases run at the same time. They wait more than they work. Zero
	// means 16.
	Together int
	// Limit is the most time that a case gives the client, from its first connection on. It is also the
	// most until that connection, but three times as long on a busy machine. Zero means what each case
	// has chosen, which is 24 seconds for most.
	Limit    time.Duration
	Progress func(done, all int, last Result) // called when a case is over, one call at a time
}

// Run runs the cases with a client, and returns its card. If ctx ends, Run returns the error of
// ctx and a card without the cases that were not over. If the client did not start for a case, or the case could not
// listen, the card has the reason, and Run returns an error, too.
func Run(ctx context.Context, client Client, o Options) (*Card, error) {
	if o.Cases == nil {
		o.Cases = Cases()
	}
	if o.Together <= 0 {
		o.Together = 16
	}
	g, err := newGrader(client)
	if err != nil {
		return nil, err
	}
	defer g.close()
	g.limit = o.Limit
	card := &Card{Name: client.Name(), Began: time.Now()}

	// The cases that show the client's traits come first.
	first, err := Select(traitCaseNames(o.Cases))
	if err != nil {
		return nil, err
	}
	known := map[string]*triedCase{}
	for i, t := range g.runCases(ctx, first, len(first), g.runCase, nil) {
		if t != nil {
			known[first[i].Name] = t
			g.traits = g.traits.with(first[i].Name, t.seen)
		}
	}
	again := func(ctx context.Context, c Case) *triedCase {
		t := known[c.Name]
		if t == nil {
			t = g.runCase(ctx, c)
		}
		t.Verdict = t.seen.verdict(g.traits)
		return t
	}
	done := 0
	for _, t := range g.runCases(ctx, o.Cases, o.Together, again, func(t *triedCase) {
		if done++; o.Progress != nil {
			o.Progress(done, len(o.Cases), t.Result)
		}
	}) {
		if t == nil {
			continue
		}
		card.Results = append(card.Results, t.Result)
		if t.seen.notGraded && err == nil {
			err = fmt.Errorf("cases were not graded, the first is %s: %s", t.Case, t.Why)
		}
	}
	card.Took = time.Since(card.Began)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return card, err
}

type triedCase struct {
	Result
	seen *Seen
}

// runCases runs cases, so many at a time, and those that must run alone one after the other. It calls over with each, one call at a
// time. If ctx ends, the results of the other cases are nil.
func (g *grader) runCases(ctx context.Context, cases []Case, together int, run func(context.Context, Case) *triedCase, over func(*triedCase)) []*triedCase {
	results := make([]*triedCase, len(cases))
	var mu sync.Mutex
	for _, alone := range []bool{false, true} {
		room := make(chan struct{}, together)
		if alone {
			room = make(chan struct{}, 1)
		}
		var group sync.WaitGroup
		for i, c := range cases {
			if c.alone != alone {
				continue
			}
			room <- struct{}{}
			group.Go(func() {
				defer func() { <-room }()
				if ctx.Err() != nil {
					return
				}
				t := run(ctx, c)
				mu.Lock()
				defer mu.Unlock()
				if ctx.Err() == nil {
					results[i] = t
					if over != nil {
						over(t)
					}
				}
			})
		}
		group.Wait()
	}
	return results
}

// traitCaseNames returns the names of the traitCases that the verdicts of cases depend on.
func traitCaseNames(cases []Case) []string {
	var names []string
	for _, b := range traitCases {
		if b.asked == nil || slices.ContainsFunc(cases, b.asked) {
			names = append(names, b.name)
		}
	}
	return names
}

var (
	errLimit = errors.New("the case is over: it had not ended after the time that the case gives it")
	errFlood = errors.New("it flooded the server")
)

type grader struct {
	client     Client
	name       string // of its own among all that run on this machine
	authority  *authority
	folder     string
	env        Env
	floodLimit int // defaultFloodLimit
	limit      time.Duration
	traits     traits
	timers     *timerWatch
	runs       atomic.Int64
}

func newGrader(client Client) (g *grader, err error) {
	defer must.Catch(&err)
	a, folder := newAuthority(), must.Have(os.MkdirTemp("", "lull-torture-"))
	g = &grader{client: client, name: strings.ToLower(rand.Text()[:8]), floodLimit: defaultFloodLimit, authority: a, folder: folder, env: Env{CA: a.pem, CAFile: filepath.Join(folder, "ca.pem")}}
	if err := os.WriteFile(g.env.CAFile, a.pem, 0o600); err != nil {
		os.RemoveAll(folder)
		return nil, err
	}
	g.timers = newWatch()
	return g, nil
}

func (g *grader) close() {
	g.timers.close()
	os.RemoveAll(g.folder)
}

// defaultFloodLimit is how many attempts a case may see before its client is ended.
const defaultFloodLimit = 5_000

// settle listens for a while after the last call has ended, and longer while an attempt is open: its cancellation may arrive late.
func (g *grader) settle(ctx context.Context, l *log) {
	const least, poll = 150 * time.Millisecond, 20 * time.Millisecond
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for waited := time.Duration(0); waited < least || waited < slack && l.hasOpenAttempt(); waited += poll {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// tooBusy begins the reason why there is no verdict.
const tooBusy = "the machine was too busy"

// runCase runs a case, and again if a busy machine may be the cause of what was seen.
func (g *grader) runCase(ctx context.Context, c Case) *triedCase {
	times := 1
	for try := 1; ; try++ {
		t := g.runOnce(ctx, c.withLongerTimes(times))
		seen := t.seen
		seen.traits = g.traits
		if c.maybeBusy != nil && seen.NoVerdict == "" && seen.died == "" && ctx.Err() == nil && c.maybeBusy(seen) {
			if try < mostTries {
				if c.retriedLonger && (len(seen.Attempts) == 0 || c.usualDelay > 0) {
					times *= 2
				}
				continue
			}
			if seen.Late > usualLateness && !c.judgedWhenBusy {
				seen.NoVerdict = fmt.Sprintf("%s to show it, in %d tries: one of ten timers was more than %s late", tooBusy, try, words.Rounded(seen.Late))
			}
		}
		if try > 1 {
			text := fmt.Sprintf("try %d: what was seen before may have been a busy machine", try)
			if times > 1 {
				text += fmt.Sprintf("; times are %d times as long", times)
			}
			t.Events = append([]Event{{Text: text}}, t.Events...)
		}
		return t
	}
}

// runOnce runs a case once. The result has no verdict yet.
func (g *grader) runOnce(ctx context.Context, c Case) *triedCase {
	limit := cmp.Or(c.limit, defaultLimit)
	if g.limit > 0 {
		limit = min(limit, g.limit)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := newLog(g.floodLimit+20*c.plan.count(), func() { cancel(errFlood) })
	t := &triedCase{Result: c.result(), seen: &Seen{Case: c}}
	without := func(cut bool, format string, args ...any) *triedCase {
		t.seen.NoVerdict, t.seen.notGraded = fmt.Sprintf(format, args...), cut
		return t
	}
	s, err := openSite(c, g.authority, l)
	if err != nil {
		return without(true, "the case could not listen: %v", err)
	}
	defer s.close()
	s.run = fmt.Sprintf("%s-%d", g.name, g.runs.Add(1))
	session, err := g.client.Start(ctx, g.env, c.plan.shared() || c.plan.fresh && c.plan.count() > 1)
	if err != nil {
		return without(true, "the client does not start: %v", err)
	}
	one, single := session.(interface{ single() bool })
	if single = single && one.single(); single && c.plan.shared() {
		session.Close()
		return without(false, "each call is a process of its own, and they share nothing")
	}
	l.began = time.Now()
	timer := g.startTimer(c, l, limit, func() { cancel(errLimit) })
	finished := g.makeCalls(ctx, c, s, session, single)
	l.mu.Lock()
	timer.Stop()
	l.onFirstContact = nil
	l.mu.Unlock()
	g.settle(ctx, l)
	t.seen, t.Events = l.seen(c)
	t.seen.Late = g.timers.late(l.began)
	if one, ok := session.(interface{ died() string }); ok {
		t.seen.died = one.died()
	}
	if t.Note = session.Close(); t.Note != "" {
		t.Events = append(t.Events, Event{l.now(), 0, t.Note})
	}
	t.seen.Finished = finished
	t.Attempts, t.Took, t.Calls = l.arrived, t.seen.Took, len(finished)
	return t
}

// startTimer returns a timer that ends a case. The time of the case begins when the client comes. A client
// that has not come yet has three times as long on a busy machine.
func (g *grader) startTimer(c Case, l *log, limit time.Duration, end func()) *time.Timer {
	l.mu.Lock()
	defer l.mu.Unlock()
	longer := c.door != doorClosed // a closed port shows no client
	var timer *time.Timer
	timer = time.AfterFunc(limit, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if longer && l.onFirstContact != nil && g.timers.late(l.began) > usualLateness {
			longer = false
			timer.Reset(2 * limit)
			return
		}
		end()
	})
	l.onFirstContact = func() { timer.Reset(limit) }
	return timer
}

func (g *grader) makeCalls(ctx context.Context, c Case, s *site, session Session, single bool) []Finished {
	n := c.plan.count()
	if single && c.plan.rounds == 0 {
		n = min(n, mostProcesses)
	}
	body, file := g.bodyOf(c)
	finished := make([]Finished, n)
	var ids atomic.Int64
	makeCall := func(call, depth int) Outcome {
		k := Call{ID: int(ids.Add(1)), Method: c.method, URL: s.url(call, depth), Body: body, File: file, Timeout: c.timeout}
		if c.plan.fresh {
			k.Client = call
		}
		if c.key {
			k.Key = newKey()
		}
		return session.Call(ctx, k)
	}
	s.callLayer = func(call, depth int) bool { return makeCall(call, depth).OK }
	call := func(i int) {
		began := s.log.now()
		s.log.note(i, "the call begins")
		o := makeCall(i, 0)
		f := Finished{Call: i, Start: began, End: s.log.now(), OK: o.OK, Status: o.Status, Text: o.Text, Ended: o.Ended}
		if cause := context.Cause(ctx); cause != nil {
			f.Ended = cause.Error()
		}
		switch {
		case f.Ended != "":
			s.log.note(i, "the client is ended: %s", f.Ended)
		case f.OK:
			s.log.note(i, "the call has succeeded")
		default:
			s.log.note(i, "the call has failed: %s", words.Short(f.Text))
		}
		finished[i] = f
	}
	// One call after the other, if nothing else is planned. Processes are started a few at a time: they all take their time to begin.
	size, room := n, make(chan struct{}, 1)
	switch {
	case c.plan.rounds > 0:
		size = n / c.plan.rounds
		room = make(chan struct{}, size)
	case c.plan.together || c.plan.every > 0 && !single:
		room = make(chan struct{}, n)
	case c.plan.every > 0:
		room = make(chan struct{}, 8)
	}
	ticker := time.NewTicker(max(c.plan.every, time.Nanosecond))
	defer ticker.Stop()
	var group sync.WaitGroup
	for i := range n / size * size {
		if i%size == 0 {
			group.Wait()
		}
		if c.plan.every > 0 && i > 0 {
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			finished = finished[:i]
			break
		}
		group.Go(func() { call(i); <-room })
	}
	group.Wait()
	return finished
}

// mostProcesses is how many processes stand for many calls, where each is one.
const mostProcesses = 100

func (g *grader) bodyOf(c Case) ([]byte, string) {
	if c.body == 0 {
		return nil, ""
	}
	b := make([]byte, c.body)
	for i := range b {
		b[i] = byte('a' + (i*7+i/251)%26)
	}
	file := filepath.Join(g.folder, fmt.Sprintf("body-%d", c.body))
	if _, err := os.Stat(file); err != nil {
		other := fmt.Sprintf("%s.%d", file, g.runs.Add(1))
		if os.WriteFile(other, b, 0o600) == nil {
			os.Rename(other, file)
		}
	}
	return b, file
}

// newKey returns an Idempotency-Key: a string of Structured Fields, as the draft wants it.
func newKey() string { return `"` + strings.ToLower(rand.Text()) + `"` }
