package simulate

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/lab/sim"
)

func scenarioText(s sim.Scenario) string {
	var b strings.Builder
	title := s.Name
	if s.Title != "" {
		title += ": " + s.Title
	}
	b.WriteString(term.Fill("", title))
	for _, f := range s.Fleets {
		b.WriteString(entry(f.Name, fleetInWords(f)))
	}
	for _, t := range s.Topics {
		b.WriteString(entry(t.Name, topicInWords(t)))
		for _, k := range t.Consumers.Kills {
			b.WriteString(entry("  kill", killInWords(k)))
		}
	}
	for _, service := range s.Services {
		b.WriteString(entry(service.Name, serviceInWords(service)))
		for _, h := range service.Calls {
			b.WriteString(entry("  calls", hopInWords(h)))
		}
		for _, f := range service.Faults {
			b.WriteString(entry("  fault", faultInWords(f, service)))
		}
	}
	clock := parts{inWords(s.Horizon)}
	clock.add(s.Warmup > 0, "totals leave out the first %s", inWords(s.Warmup))
	b.WriteString(entry("time", strings.Join(clock, "; ")))
	return b.String()
}

func entry(name, text string) string { return term.Fill(fmt.Sprintf("  %-9s ", name), text) }

func fleetInWords(f sim.Fleet) string {
	phrases := parts{each(f.Processes, "1 process calls", "processes call") + " " + f.Calls + ", " + arrivalsInWords(f.Arrivals)}
	if f.Link.On {
		phrases = linkInWords(f)
	}
	phrases.add(f.AttemptTimeout > 0, "attempts time out after %s, whatever the policy says", inWords(f.AttemptTimeout))
	phrases.add(f.Deadline > 0, "callers wait for %s", inWords(f.Deadline))
	phrases.add(f.Threads > 0, "a process has threads for %d calls at a time, and room for %d that wait", f.Threads, f.Backlog)
	phrases.add(f.Fallback > 0, "callers have another answer for %s of the calls that fail", share(f.Fallback))
	phrases.add(f.Keyed, "calls carry an idempotency key")
	phrases.add(f.NotIdempotent && !f.Keyed, "operations must not be carried out twice")
	phrases.add(f.Reload.Share > 0, "%s of users whose call failed come back after %s, up to %d times", share(f.Reload.Share), distributionInWords(f.Reload.After), f.Reload.Times)
	phrases = append(phrases, networkInWords(f.Network)...)
	phrases.add(f.Policy != "", "its policy is %q, whoever is compared", f.Policy)
	return strings.Join(phrases, "; ")
}

func topicInWords(t sim.Topic) string {
	c, b := t.Consumers, t.Broker
	phrases := parts{strings.Replace(arrivalsInWords(t.Arrivals), "call", "message", 1)}
	phrases.add(true, "%s with %d handlers each, which call %s", each(c.Processes, "1 process", "processes"), cmp.Or(c.Concurrency, 16), t.Calls)
	phrases.add(true, "a lease of %s", inWords(cmp.Or(c.Lease, 30*time.Second)))
	phrases.add(b.FixedLeases, "which cannot be extended")
	phrases.add(b.CountDefers, "a deferral counts as an attempt")
	phrases.add(b.MaxDelay > 0, "delays of up to %s", inWords(b.MaxDelay))
	phrases.add(c.Quick > 0, "up to %d more runs in one delivery", c.Quick)
	phrases.add(c.Wary, "the processes know at first that the service is down")
	what := choice.Either(t.Poison.Kills, "kill their process, which is back after "+inWords(cmp.Or(t.Poison.Down, time.Second)), "make their handlers panic")
	phrases.add(t.Poison.Share > 0, "%s of messages %s", share(t.Poison.Share), what)
	phrases = append(phrases, networkInWords(c.Network)...)
	phrases.add(t.Policy != "", "its policy is %q, whoever is compared", t.Policy)
	return strings.Join(phrases, "; ")
}

func killInWords(k sim.Kill) string {
	who := choice.Either(k.Processes > 0, each(k.Processes, "one process", "processes"), "all processes")
	phrases := parts{fmt.Sprintf("from second %s: %s", trimmed(k.At.Seconds(), 5), who), "each back after " + inWords(k.For)}
	phrases.add(k.Apart > 0, "one every %s", inWords(k.Apart))
	phrases.add(k.Every > 0, "again every %s", inWords(k.Every))
	return strings.Join(phrases, ", ")
}

type parts []string

func (p *parts) add(ok bool, format string, args ...any) {
	if ok {
		*p = append(*p, fmt.Sprintf(format, args...))
	}
}

func arrivalsInWords(a sim.Arrivals) string {
	var text string
	switch a.Kind {
	case sim.Poisson:
		text = calls(a.Rate) + " at random (Poisson)"
	case sim.Constant:
		text = calls(a.Rate) + " at equal distances"
	case sim.AtOnce:
		when := choice.Either(a.Within > 0, "within "+inWords(a.Within), "all at once")
		text = each(a.Each, "one call", "calls") + " each, " + when
	case sim.Periodic:
		text = "each every " + inWords(a.Every)
		if a.Within > 0 {
			text += ", all in the same " + inWords(a.Within)
		}
	case sim.Closed:
		text = each(a.Each, "one caller", "callers") + " each, who wait for each call to end and pause for " + distributionInWords(a.Think)
	}
	if a.At > 0 {
		text += " from second " + trimmed(a.At.Seconds(), 4)
	}
	if len(a.Ramp) > 0 {
		points := choice.Each(a.Ramp, func(p sim.RampPoint) string { return fmt.Sprintf("%sx at %s", trimmed(p.Factor, 3), inWords(p.At)) })
		text += ", times " + strings.Join(points, ", ")
	}
	return text
}

func calls(rate float64) string {
	return choice.Either(rate == 1, "one call a second", grouped(rate)+" calls a second")
}

// share returns a share that was set. For a measured one see percentOf.
func share(v float64) string { return trimmed(100*v, 4) + " %" }

func each(n int, one, many string) string {
	return choice.Either(n <= 1, one, grouped(float64(n))+" "+many)
}

func networkInWords(n sim.Network) []string {
	var phrases parts
	phrases.add(n.Latency.Kind != sim.Fixed || n.Latency.Mean > 0, "%s one way on the network", distributionInWords(n.Latency))
	phrases.add(n.Loss > 0 || n.LossBack > 0, "%s of requests and %s of responses are lost", share(n.Loss), share(n.LossBack))
	phrases.add(n.Pool.On, "%s", poolInWords(n.Pool))
	phrases.add(n.Endpoints.On, "%s", endpointsInWords(n.Endpoints))
	return phrases
}

func serviceInWords(s sim.Service) string {
	var phrases parts
	hosts := max(s.Hosts, 1)
	phrases.add(hosts > 1, "%s hosts, each with", grouped(float64(hosts)))
	switch {
	case s.Workers == 0:
		phrases = append(phrases, "as many workers as it takes")
	case hosts > 1:
		phrases[0] += fmt.Sprintf(" %s workers", grouped(float64(s.Workers)))
	default:
		phrases.add(true, "%s workers", grouped(float64(s.Workers)))
	}
	phrases.add(true, "%s an attempt", distributionInWords(s.Time))
	phrases.add(s.Congestion > 0, "and %s more for each attempt in hand", inWords(s.Congestion))
	phrases.add(s.Workers > 0, "%s", queueInWords(s.Queue))
	connections := connectionsInWords(s.Connections)
	phrases.add(connections != "", "%s", connections)
	phrases.add(s.Heap.Size > 0, "%s", heapInWords(s.Heap))
	phrases.add(s.RefusalTime > 0, "a refusal takes %s of the workers' time", inWords(s.RefusalTime))
	phrases.add(s.Admission.On, "%s", admissionInWords(s.Admission))
	phrases.add(s.CancelWork, "work for a caller that has gone is stopped")
	phrases.add(s.Errors > 0, "%s of attempts fail at all times", share(s.Errors))
	phrases.add(s.Rate.PerSecond > 0, "no more than %s attempts a second%s", grouped(s.Rate.PerSecond), hintInWords(s.Rate.RetryAfter, false))
	phrases.add(s.Deduplicates, "keys are kept, and each operation is carried out once")
	phrases.add(s.Contention, "of attempts that overlap only the first to write succeeds")
	return strings.Join(phrases, "; ")
}

func queueInWords(q sim.Queue) string {
	if q.Limit == 0 {
		return "no queue" + hintInWords(q.RetryAfter, q.DontRetry)
	}
	phrases := parts{"a queue of " + grouped(float64(q.Limit))}
	phrases.add(q.Order == sim.LIFO, "last in first out")
	phrases.add(q.DropExpired, "which drops whose caller has gone")
	return strings.Join(phrases, ", ") + hintInWords(q.RetryAfter, q.DontRetry)
}

func admissionInWords(a sim.Admission) string {
	c := a.Config
	least, most := grouped(float64(c.Min)), grouped(float64(c.Max))
	var phrases parts
	phrases.add(c.Limit > 0, "before that admission control of %s at a time", each(c.Limit, "one attempt", "attempts"))
	phrases.add(c.Limit <= 0, "before that admission control, which finds out how many attempts at a time are enough")
	phrases.add(c.Limit <= 0 && c.Min > 0 && c.Max > 0, "from %s to %s", least, most)
	phrases.add(c.Limit <= 0 && c.Min > 0 && c.Max <= 0, "at least %s", least)
	phrases.add(c.Limit <= 0 && c.Min <= 0 && c.Max > 0, "at most %s", most)
	phrases.add(c.MaxWait < 0, "nobody waits for it")
	phrases.add(c.MaxWait > 0, "others wait for up to %s", inWords(c.MaxWait))
	phrases.add(c.RetryRatio < 0, "any number of retries may come in")
	phrases.add(c.RetryRatio > 0, "of retries no more than %s of the first attempts", share(c.RetryRatio))
	phrases.add(a.NoDeadlines, "callers do not say when they give up")
	return strings.Join(phrases, ", ")
}

// hintInWords describes the hint that a refusal gives, "" for none.
func hintInWords(after time.Duration, dont bool) string {
	switch {
	case dont:
		return " (beyond: overloaded, don't retry)"
	case after > 0:
		return fmt.Sprintf(" (beyond: retry after %s)", inWords(after))
	}
	return ""
}

func hopInWords(h sim.Hop) string {
	phrases := parts{h.Service + ", for each attempt and before its own work"}
	phrases.add(h.Cache.Keys > 0, "%s", cacheInWords(h.Cache))
	phrases.add(h.AttemptTimeout > 0, "which times out after %s", inWords(h.AttemptTimeout))
	phrases.add(h.Deadline, "the caller's deadline goes along")
	phrases.add(h.Policy != "", "its policy is %q, whoever is compared", h.Policy)
	phrases = append(phrases, networkInWords(h.Network)...)
	return strings.Join(phrases, "; ")
}

func faultInWords(f sim.Fault, s sim.Service) string {
	when := parts{fmt.Sprintf("from second %s for %s", trimmed(f.At.Seconds(), 5), inWords(f.For))}
	when.add(f.Every > 0, "again every %s", inWords(f.Every))
	return strings.Join(when, ", ") + ": " + faultEffect(f, s)
}

func faultEffect(f sim.Fault, s sim.Service) string {
	left := cmp.Or(f.Share, 0.1)
	var text string
	switch f.Kind {
	case sim.Stall:
		text = "workers stand still, attempts wait"
	case sim.Errors:
		some := choice.Either(f.Share > 0, share(f.Share)+" of", "all")
		text = some + " attempts fail" + strings.Replace(hintInWords(f.RetryAfter, f.DontRetry), "beyond: ", "", 1)
	case sim.BrownOut:
		text = share(left) + " of the workers are left"
	case sim.SlowDown:
		text = "work goes on at " + share(left) + " of its speed"
	case sim.Crash:
		text = choice.Either(f.Silent, "the machine dies, and nobody hears of it", "a crash, and what is in hand is lost")
		if f.Warmup > 0 {
			text += fmt.Sprintf("; then a cold cache for %s, work takes %s times as long at first", inWords(f.Warmup), trimmed(f.Cold, 3))
		}
	case sim.Flush:
		text = "the caches find nothing and keep nothing, and lose what is in them"
		if f.Share > 0 {
			text += ", " + share(f.Share) + " of it"
		}
	default:
		text = f.Kind.String()
	}
	if f.Hosts > 0 && f.Hosts < max(s.Hosts, 1) {
		text = fmt.Sprintf("on %d of %d hosts, %s", f.Hosts, s.Hosts, text)
	}
	return text
}

func distributionInWords(d sim.Distribution) string {
	switch d.Kind {
	case sim.Fixed:
		return inWords(d.Mean)
	case sim.Exponential:
		return inWords(d.Mean) + " on average (exponential)"
	case sim.LogNormal:
		return fmt.Sprintf("%s on average (lognormal, sigma %s)", inWords(d.Mean), trimmed(d.Sigma, 3))
	case sim.Normal:
		return fmt.Sprintf("%s ± %s (normal)", inWords(d.Mean), inWords(d.Deviation))
	case sim.Uniform:
		return fmt.Sprintf("%s to %s (uniform)", inWords(d.Min), inWords(d.Max))
	case sim.Bimodal:
		return fmt.Sprintf("%s on average, for %s of them %s", inWords(d.Mean), share(d.Slow), inWords(d.SlowMean))
	case sim.Histogram:
		return fmt.Sprintf("times from a histogram of %d bars", len(d.Bars))
	}
	return d.Kind.String()
}

func poolInWords(p sim.Pool) string {
	size := choice.Either(p.Size > 0, "up to "+each(p.Size, "one connection", "connections"), "any number of connections")
	phrases := parts{"a pool (" + p.Kind.String() + ") of " + size}
	phrases.add(p.Open > 0, "%s at first", grouped(float64(p.Open)))
	phrases.add(p.Idle < 0, "each closed after its attempt")
	phrases.add(p.Idle > 0, "%s kept without work", grouped(float64(p.Idle)))
	phrases.add(p.IdleFor > 0, "each for %s without work", inWords(p.IdleFor))
	phrases.add(p.RoundTrips > 1, "%d round trips for a new one", p.RoundTrips)
	phrases.add(somewhat(p.Handshake), "%s of the client's own work for it", distributionInWords(p.Handshake))
	phrases.add(p.Ports > 0, "%s local ports", grouped(float64(p.Ports)))
	return strings.Join(phrases, ", ")
}

func connectionsInWords(c sim.Connections) string {
	var phrases parts
	phrases.add(c.Limit > 0, "%s at most", grouped(float64(c.Limit)))
	phrases.add(c.Refuse, "others are refused")
	phrases.add(somewhat(c.Handshake), "%s of a worker for each", distributionInWords(c.Handshake))
	beyond := choice.Either(c.Drop, "not answered", "refused")
	phrases.add(c.Limit > 0 && !c.Refuse || somewhat(c.Handshake), "a backlog of %s, beyond that %s", grouped(float64(cmp.Or(c.Backlog, 4096))), beyond)
	phrases.add(c.IdleFor > 0, "closed after %s without work", inWords(c.IdleFor))
	if len(phrases) == 0 {
		return ""
	}
	return "connections: " + strings.Join(phrases, ", ")
}

func somewhat(d sim.Distribution) bool { return d.Kind != sim.Fixed || d.Mean > 0 }

func linkInWords(f sim.Fleet) parts {
	phrases := parts{each(f.Processes, "1 process keeps a connection", "processes keep a connection each") + " to " + f.Calls}
	phrases.add(!reflect.ValueOf(f.Arrivals).IsZero(), "and lose some: %s", arrivalsInWords(f.Arrivals))
	phrases.add(f.Link.From != "", "they run on the hosts of %s", f.Link.From)
	buffered := "while it is down, %s bytes of messages a second wait"
	if f.Link.Buffer > 0 {
		buffered += ", up to " + grouped(float64(f.Link.Buffer))
	}
	phrases.add(f.Link.PerSecond > 0, buffered, grouped(float64(f.Link.PerSecond)))
	phrases.add(f.Redial, "package redial decides when to dial")
	return phrases
}

func heapInWords(h sim.Heap) string {
	phrases := parts{bytesInWords(int64(h.Size)) + " of memory"}
	phrases.add(h.Live > 0, "%s in use at rest", bytesInWords(int64(h.Live)))
	phrases.add(h.PerAttempt > 0, "%s for each attempt in hand", bytesInWords(int64(h.PerAttempt)))
	phrases.add(h.PerConnection > 0, "%s for each connection", bytesInWords(int64(h.PerConnection)))
	phrases.add(h.Garbage > 0, "%s of garbage an attempt", bytesInWords(int64(h.Garbage)))
	phrases.add(h.Pause > 0, "a collection stops all work for %s a million bytes in use", inWords(h.Pause))
	phrases.add(true, "a crash and %s to restart when it is full", inWords(cmp.Or(h.Restart, 10*time.Second)))
	return strings.Join(phrases, ", ")
}

func cacheInWords(c sim.Cache) string {
	phrases := parts{fmt.Sprintf("unless a cache has it (%s keys", grouped(float64(c.Keys)))}
	phrases.add(c.Skew > 0, "popularity with exponent %s", trimmed(c.Skew, 3))
	phrases.add(c.Size > 0, "room for %s", grouped(float64(c.Size)))
	phrases.add(c.For > 0, "each for %s", inWords(c.For))
	phrases.add(c.Cold, "empty at first")
	return strings.Join(phrases, ", ") + ")"
}

func endpointsInWords(e sim.Endpoints) string {
	if e.Config.Off {
		return "processes choose the less busy of two hosts"
	}
	return "processes choose among hosts, and leave sick ones out"
}
