package demo

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/internal/problem"
)

const shortestAftermath = time.Second

type outageKind string

const (
	stall     outageKind = "stall"
	errors503 outageKind = "errors"
)

type setting struct {
	Scenario scenario
	Duration time.Duration // calls are begun from 0 to Duration
	Load     float64       // calls per second, as a share of Capacity
	Capacity int           // requests per second that a backend can serve
	Queue    int           // requests that may wait at a backend
	OutageAt time.Duration
	Outage   time.Duration
	Kind     outageKind    // storm
	Timeout  time.Duration // of every attempt, whoever makes it
	Attempts int           // the most that a call makes
	Seed     uint64        // of arrivals and service times
	Clients  []client

	Tail       float64       // tail: the share of requests that are slow
	HedgeDelay time.Duration // tail: of the naive hedger
}

func (s setting) offered() float64 { return s.Load * float64(s.Capacity) }

func (s setting) workers() int { return s.Scenario.workers(s) }

func (s setting) outageEnd() time.Duration { return s.OutageAt + s.Outage }

// normalEnd is the end of what counts as normal: calls that begin later may be under way when the outage begins.
func (s setting) normalEnd() time.Duration { return s.OutageAt - s.Timeout }

func (f Command) setting() (setting, error) {
	var l problem.List
	which, ok := map[cli.Text]scenario{"storm": storm, "tail": tail}[f.Scenario]
	l.Check(ok, "--scenario", f.Scenario.Quoted(),
		`"storm" (backends go down, calls are retried) or "tail" (some requests are slow, calls are hedged)`)
	if !ok {
		return setting{}, l // what follows depends on it
	}
	f.rejectForeignFlags(&l, which)
	if which == tail {
		f.Attempts = nil // refused if given
	}
	d := which.defaults()
	s := setting{
		Scenario: which,
		Duration: cli.Duration(&l, "--duration", f.Duration.Or(d.duration), 2*time.Second, 10*time.Minute),
		Capacity: cli.Whole(&l, "--capacity", f.Capacity.Or(d.capacity), 10, 2000),
		Load:     cli.Number(&l, "--load", f.Load.Or("0.75"), 0.05, 2, "as a share of the capacity"),
		Attempts: cli.Whole(&l, "--attempts", f.Attempts.Or(d.attempts), 1, 10),
		Timeout:  cli.Duration(&l, "--timeout", f.Timeout.Or(d.timeout), 20*time.Millisecond, 30*time.Second),
	}
	s.Seed = cli.Seed(&l, f.Seed)
	if which == tail {
		s.Tail = cli.Number(&l, "--tail", f.Tail.Or("0.02"), 0, 0.5, "the share of requests that are slow")
		s.HedgeDelay = cli.Duration(&l, "--hedge-delay", f.HedgeDelay.Or("20ms"), time.Millisecond, 10*time.Second)
	} else {
		s.Kind = outageKind(f.Kind.Or(cli.Text(stall)))
		l.Check(s.Kind == stall || s.Kind == errors503, "--kind", cli.Text(s.Kind).Quoted(), `"stall" (workers freeze) or "errors" (503 at once)`)
	}
	s.Clients = clients(&l, f.Clients, which.clients())
	if len(l) > 0 {
		return s, l // what follows depends on these
	}

	s.OutageAt = min(d.latestOutageAt, s.Duration/d.outageAfter)
	if which == tail {
		s.OutageAt = s.OutageAt.Truncate(tick) // a third of the duration has too many digits
	}
	longest := s.Duration - s.OutageAt - shortestAftermath
	s.Outage = min(d.outage, s.Duration/d.outagePart, longest)
	if f.Outage != "" {
		s.Outage = cli.Duration(&l, "--outage", f.Outage, 0, longest)
	}
	if which == tail {
		l.Check(s.HedgeDelay < s.Timeout, "--hedge-delay", s.HedgeDelay,
			fmt.Sprintf("less than the %v of --timeout, after which there is nothing to send a second request beside", s.Timeout))
		// So short that every request in it is served before its timeout, by default. So a request is either refused at once
		// or a slow success: the two that a client must distinguish.
		s.Queue = s.workers()
	} else {
		l.Check(s.Timeout < s.OutageAt, "--timeout", s.Timeout,
			fmt.Sprintf("less than the %v before the outage; that is a quarter of --duration, at most %v", s.OutageAt, d.latestOutageAt))
		// Long enough that the caller of the last request gave up long before. Queue, outage
		// and timeout are as 10 : 10 : 1, as in the literature on metastable failures.
		s.Queue = max(10, int(10*s.Timeout.Seconds()*float64(s.Capacity)))
	}
	if f.Queue != "" {
		s.Queue = cli.Whole(&l, "--queue", f.Queue, 1, 100_000)
	}
	return s, l.Err()
}

func clients(l *problem.List, v cli.Text, all []client) []client {
	if v == "" {
		return all
	}
	asked := map[string]bool{}
	for part := range strings.SplitSeq(string(v), ",") {
		asked[strings.TrimSpace(part)] = true
	}
	var chosen []client
	for _, c := range all {
		if asked[c.flagName()] {
			chosen = append(chosen, c)
			delete(asked, c.flagName())
		}
	}
	l.Check(len(asked) == 0, "--clients", v.Quoted(), "some of "+strings.Join(flagNames(all), ",")+", separated by commas")
	return chosen
}

func (f Command) rejectForeignFlags(l *problem.List, which scenario) {
	reject := func(flag string, given cli.Texts, allowed string) {
		if len(given) > 0 {
			l.Add(flag, given.Or("").Quoted(), allowed)
		}
	}
	if which == tail {
		reject("--kind", f.Kind, "it left out with --scenario tail, where backends turn slow and not down; it is for --scenario storm")
		reject("--attempts", f.Attempts, "it left out with --scenario tail, where a call makes at most two; it is for --scenario storm")
		return
	}
	reject("--tail", f.Tail, "it left out with --scenario storm; it is for --scenario tail")
	reject("--hedge-delay", f.HedgeDelay, "it left out with --scenario storm, where nobody hedges; it is for --scenario tail")
}

// A scenario is what differs between storm (backends go down, calls are retried) and tail (requests are slow, calls are hedged).
type scenario interface {
	clients() []client // in the order in which they are shown
	defaults() defaults
	words() words

	// The backends: workers returns how many each has, service the time of a request.
	workers(setting) int
	service(s setting, random *rand.Rand, shut bool) time.Duration

	// The live picture: the heading, so many seconds before the outage or after it, the legend of the
	// bars, and for each client a line and two bars for a stretch of time.
	heading(s setting, p phase, seconds float64) string
	legend(snapshot) [2]string
	status(snapshot, laneSnapshot) string
	bars(s snapshot, l laneSnapshot, from, to time.Duration) (colour string, bars [2]string)

	// The live lines: a heading, and what happened in a second.
	plainHead(snapshot) string
	plainLine(s snapshot, from, to time.Duration) string

	// The result: measure adds the figures of a lane that has stopped, describe the
	// lines of the setting; then how the figures are printed.
	measure(r *result, l *lane)
	describe(setting) [][2]string
	table(io.Writer, result)
	findings(result) []string
}

var (
	storm scenario = stormScenario{}
	tail  scenario = tailScenario{}
)

type words struct {
	outage      string        // on the axis of time
	note        string        // of the lines that are marked
	bars        [2]string     // labels
	nameWidth   int           // of the clients, where they are described
	unfinished  string        // what became of the calls that an interrupt ended
	late        time.Duration // how late calls may begin before figures are in doubt
	affected    string        // which figures those are
	requests    string        // what a client sends
	definitions string        // of the figures
}

// defaults are those that differ between the scenarios.
type defaults struct {
	duration, capacity, attempts, timeout cli.Text
	outage                                time.Duration
	latestOutageAt                        time.Duration // where the outage begins, sooner in a short run
	outageAfter, outagePart               time.Duration // then after, and for, this part of the duration
}
