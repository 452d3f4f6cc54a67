package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/sim/internal/latency"
)

// A Topic is a queue of messages: producers send, a broker keeps, and consumers handle
// them, each by one attempt of a service. In the totals and series of a Result a message is
// a call, which begins when it is sent and ends when it is handled or dead. Whatever is decided about a message is decided by
// the engine, as in package queue. The policy under comparison is that of the consumers. It
// must not hedge.
type Topic struct {
	Name string
	// Calls names the service that handlers call.
	Calls string
	// Arrivals is when messages are sent: poisson or constant.
	Arrivals  Arrivals
	Poison    Poison
	Broker    Broker
	Consumers Consumers
	// Policy is the topic's own: the name of a contender, as in a Fleet. Empty: the
	// policy under comparison.
	Policy string
}

// Poison is messages that fail whatever the service does: their handlers panic.
type Poison struct {
	Share float64 // of all messages
	// Kills: the handler ends its process, which begins again after Down.
	Kills bool
	Down  time.Duration // zero: 1 s
}

// A Broker keeps the messages. The zero Broker can do everything that the one of the zero
// queue.MemoryConfig can do.
type Broker struct {
	// CountDefers: a deferral counts as an attempt.
	CountDefers bool
	// FixedLeases: leases cannot be extended.
	FixedLeases bool
	// MaxDelay is the longest that a message can be made to wait. Zero: 12 h.
	MaxDelay time.Duration
}

// Consumers are the processes that handle the messages of a topic. Each of them has a
// Dependency of its own, of the service.
type Consumers struct {
	// Processes is how many there are. Zero: 1.
	Processes int
	// Concurrency is how many messages each handles at a time. Zero: 16.
	Concurrency int
	// Lease is how long a message stays a consumer's that falls silent. Zero: 30 s.
	Lease time.Duration
	// Quick is how often the handler is run again in one delivery, after QuickWait at
	// most (zero: 1 s).
	Quick     int
	QuickWait time.Duration
	// Network lies between the handlers and the service.
	Network Network
	// Wary: each process begins when it has found out that the service is down, by a
	// failure a second: its circuit is open.
	Wary bool
	// Kills end processes without a word.
	Kills []Kill
}

// A Kill ends processes. What they have in hand comes back when its leases lapse.
type Kill struct {
	// At is when, and For how long until they begin again.
	At, For time.Duration
	// Every repeats it. Zero: it happens once.
	Every time.Duration
	// Processes is how many, from the first. Zero: all. Apart is the time from one to
	// the next.
	Processes int
	Apart     time.Duration
}

func (c *Consumers) processes() int   { return cmp.Or(c.Processes, 1) }
func (c *Consumers) concurrency() int { return cmp.Or(c.Concurrency, 16) }

func (p *Poison) down() time.Duration { return cmp.Or(p.Down, time.Second) }

// each calls do for each process that k ends, and when, before the horizon.
func (k *Kill) each(c *Consumers, horizon time.Duration, do func(process int, at time.Duration)) {
	for at := k.At; at < horizon; at = saturating.Add(at, k.Every) {
		for p := range cmp.Or(k.Processes, c.processes()) {
			do(p, saturating.Add(at, time.Duration(p)*k.Apart))
		}
		if k.Every <= 0 {
			return
		}
	}
}

const mostConcurrency = 1 << 20 // messages in hand, of a topic

func (t *Topic) validate(in *Scenario, names *services) error {
	var l problem.List
	l.Check(t.Name != "", "Name", quoted(t.Name), "a name")
	names.check(&l, "Calls", t.Calls)
	l.In("Arrivals", t.Arrivals.validate())
	l.Check(t.Arrivals.Kind <= Constant, "Arrivals.Kind", t.Arrivals.Kind, "poisson or constant")
	share(&l, "Poison.Share", t.Poison.Share)
	span(&l, "Poison.Down", t.Poison.Down)
	span(&l, "Broker.MaxDelay", t.Broker.MaxDelay)
	c := &t.Consumers
	l.Check(c.Processes >= 0 && c.Processes <= 1<<16, "Consumers.Processes", c.Processes, "zero (1) to 65536")
	l.Check(c.Concurrency >= 0 && c.Concurrency <= mostConcurrency/max(c.processes(), 1), "Consumers.Concurrency", c.Concurrency, "zero (16) to 1048576 for all processes together")
	l.Check(c.Lease == 0 || c.Lease >= 100*time.Millisecond && c.Lease <= 12*time.Hour, "Consumers.Lease", c.Lease, "100ms to 12h, or 0 for 30s")
	l.Check(c.Quick >= 0 && c.Quick <= 10, "Consumers.Quick", c.Quick, "0 to 10 runs")
	span(&l, "Consumers.QuickWait", c.QuickWait)
	l.In("Consumers.Network", c.Network.validate())
	l.Check(len(c.Kills) <= maxParts, "Consumers.Kills", len(c.Kills), fmt.Sprintf("no more than %d", maxParts))
	if len(c.Kills) > maxParts {
		return l.Err()
	}
	n := 0
	for i := range c.Kills {
		k := &c.Kills[i]
		field := fmt.Sprintf("Consumers.Kills[%d]", i)
		l.Check(k.At >= 0 && (k.At <= in.Horizon || in.Horizon <= 0), field+".At", k.At, "a time within the horizon")
		l.Check(k.For > 0 && k.For <= century, field+".For", k.For, "a positive duration")
		l.Check(k.Every == 0 || k.Every >= time.Millisecond && k.Every <= century, field+".Every", k.Every, "zero (once) or 1ms to a century")
		l.Check(k.Processes >= 0 && k.Processes <= c.processes(), field+".Processes", k.Processes, "zero (all) to the number of processes")
		l.Check(k.Apart >= 0 && k.Apart <= 24*time.Hour, field+".Apart", k.Apart, "0 to 24h")
		n += c.processes()
		if k.Every > 0 {
			n += int(min(max(in.Horizon-k.At, 0)/k.Every, maxChanges)) * c.processes()
		}
	}
	l.Check(n <= maxTurns, "Consumers.Kills", n, fmt.Sprintf("no more than %d ends of processes in the horizon", maxTurns))
	return l.Err()
}

// A TopicResult is the result of one topic. It counts all messages that were sent, also in
// the warm-up.
type TopicResult struct {
	Name string
	// Sent = Handled + Dead + Left.
	Sent, Handled, Dead int64
	// Left is how many were still in the queue, or in the hands of consumers, at the end.
	Left int64
	// Reasons counts dead letters by lull.Reason.
	Reasons map[string]int64
	// Attempts is how often a handler ran, Disturbed how often from the first fault to the
	// end of the last.
	Attempts, Disturbed int64
	// Deferred is how often a message was given back without an attempt, Lapsed how often
	// one came back because its consumer had fallen silent.
	Deferred, Lapsed int64
	// Caught: after CaughtUp from the end of the last fault on, none of the messages that
	// were sent before it was left.
	Caught   bool
	CaughtUp time.Duration
	// Latency is from the sending of a message to the end of its handling.
	Latency Latency
	// Backlog is how many messages there were at the end of each step.
	Backlog []float64
}

// A MessageEnd is the end of a message.
type MessageEnd struct {
	Topic    string
	Number   int64         // in the order in which they were sent, from 1
	Sent, At time.Duration // At is when it was handled or dead
	Attempts int           // the number of the last
	Reason   engine.Reason // of a dead letter; Success: it was handled
}

// tally counts what happens to the messages of a topic.
type tally struct {
	TopicResult
	from, to time.Duration // of the disturbance
	before   int64         // messages that were sent before its end, and are not gone
	reasons  [reasons]int64
	all      latency.Histogram
}

func (t *tally) sent(now time.Duration) {
	t.Sent++
	if now < t.to {
		t.before++
	}
}

func (t *tally) ran(now time.Duration) {
	t.Attempts++
	if now >= t.from && now < t.to {
		t.Disturbed++
	}
}

func (t *tally) ended(now time.Duration, m *message, why engine.Reason) {
	if why == engine.Success {
		t.Handled++
		t.all.Record(now - m.sent)
	} else {
		t.Dead++
		t.reasons[why]++
	}
	if m.sent < t.to {
		if t.before--; t.before == 0 {
			t.CaughtUp = max(now-t.to, 0)
		}
	}
}

func (t *tally) tick() { t.Backlog = append(t.Backlog, float64(t.Sent-t.Handled-t.Dead)) }

// result is everything, of a run that ended at the given time.
func (t *tally) result(end time.Duration) TopicResult {
	r := t.TopicResult
	r.Backlog = slices.Clone(r.Backlog)
	r.Left = r.Sent - r.Handled - r.Dead
	r.Reasons = map[string]int64{}
	for i, n := range t.reasons {
		if n > 0 {
			r.Reasons[engine.Reason(i).String()] = n
		}
	}
	r.Caught = t.to > 0 && end > t.to && t.before == 0
	if !r.Caught {
		r.CaughtUp = 0
	}
	r.Latency = latencyOf(&t.all)
	return r
}
