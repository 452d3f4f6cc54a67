package demo

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/internal/problem"
)

// What every backend and every naive client of the storm has in common.
const (
	workers   = 4                      // of each backend; one job takes workers/capacity on average
	naiveBase = 100 * time.Millisecond // the first wait of naive clients, lull's own default base

	aftermath = time.Second // the least that must be left after the outage
)

type outageKind string

const (
	stall     outageKind = "stall"
	errors503 outageKind = "errors"
)

// A setting is everything that decides what a run of the demo measures.
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

	Tail       float64       // share of requests that are slow, in the scenario of that name
	HedgeDelay time.Duration // of the naive hedger
}

// offered is the rate of calls, per second.
func (s setting) offered() float64 { return s.Load * float64(s.Capacity) }

// service is the mean time a worker spends on a request.
func (s setting) service() time.Duration {
	return time.Duration(float64(workers) / float64(s.Capacity) * float64(time.Second))
}

// outageEnd is when the backends come back.
func (s setting) outageEnd() time.Duration { return s.OutageAt + s.Outage }

// normalEnd is the end of the time that stands for normal: calls begun after it
// may still be under way when the outage begins.
func (s setting) normalEnd() time.Duration { return s.OutageAt - s.Timeout }

// patience is how long a call may still take when the last one has begun. Waits
// are a matter of milliseconds; a second for each is ample.
func (s setting) patience() time.Duration {
	return time.Duration(s.Attempts) * (s.Timeout + time.Second)
}

// policy is what the lull client is given: the zero policy but for what the
// demo sets for every client.
func (s setting) policy() lull.Policy {
	p := lull.Policy{AttemptTimeout: s.Timeout}
	if s.Attempts != lull.DefaultAttempts {
		p.Attempts = s.Attempts
	}
	return p
}

// policyText is policy as it would be written in Go.
func (s setting) policyText() string {
	p := s.policy()
	text := "lull.Policy{AttemptTimeout: " + p.AttemptTimeout.String()
	if p.Attempts != 0 {
		text += ", Attempts: " + strconv.Itoa(p.Attempts)
	}
	return text + "}"
}

// setting reads the flags. Everything that is wrong is reported at once, each
// problem naming the flag, what was given and what is allowed.
func (f Command) setting() (setting, error) {
	var l problem.List
	which := scenario(f.Scenario)
	l.Check(which == storm || which == tail, "--scenario", f.Scenario.Quoted(),
		`"storm" (backends go down, calls are retried) or "tail" (some requests are slow, calls are hedged)`)
	if len(l) > 0 {
		return setting{}, l // what follows depends on it
	}
	f.foreign(&l, which)
	if which == tail {
		f.Attempts = cli.Option{} // refused if given
	}
	d := defaultsOf(which)
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
		s.OutageAt = s.OutageAt.Truncate(tick) // a third is no figure to read
	}
	longest := s.Duration - s.OutageAt - aftermath
	s.Outage = min(d.outage, s.Duration/d.outagePart, longest)
	if f.Outage != "" {
		s.Outage = cli.Duration(&l, "--outage", f.Outage, 0, longest)
	}
	if which == tail {
		l.Check(s.HedgeDelay < s.Timeout, "--hedge-delay", s.HedgeDelay,
			fmt.Sprintf("less than the %v of --timeout, after which there is nothing to send a second request beside", s.Timeout))
		s.Queue = s.tailQueue()
	} else {
		l.Check(s.Timeout < s.OutageAt, "--timeout", s.Timeout,
			fmt.Sprintf("less than the %v before the outage; that is a quarter of --duration, at most %v", s.OutageAt, d.latestOutageAt))
		// Long enough that whoever is served last has long given up: the queue, the
		// outage and the timeout stand to each other as 10 : 10 : 1, in which the
		// literature on metastable failures studies them.
		s.Queue = max(10, int(10*s.Timeout.Seconds()*float64(s.Capacity)))
	}
	if f.Queue != "" {
		s.Queue = cli.Whole(&l, "--queue", f.Queue, 1, 100_000)
	}
	return s, l.Err()
}

// defaults are those that differ from one scenario to the other.
type defaults struct {
	duration, capacity, attempts, timeout cli.Text
	outage                                time.Duration
	latestOutageAt                        time.Duration // where the outage begins, sooner in a short run
	outageAfter, outagePart               time.Duration // then after, and for, this part of the duration
}

func defaultsOf(which scenario) defaults {
	if which == tail {
		return defaults{"28s", "280", "2", "2s", 6 * time.Second, 9 * time.Second, 3, 4}
	}
	return defaults{"25s", "100", "3", "500ms", 5 * time.Second, 4 * time.Second, 4, 5}
}

// clients reads a list of some of all; the order is theirs.
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
