package estimate

import (
	"fmt"
	"math"
	"slices"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
)

// callers learns what can be seen of those who call: how many processes, how long they wait, how often they repeat.
func (e *estimator) callers() {
	f := e.fleet()
	for _, side := range []observed.Side{observed.Attempts, observed.Calls} {
		if s := e.sum[side]; s != nil && s.Side != observed.Served && s.Processes > 0 {
			f.Processes = s.Processes
		}
	}
	if n := fmt.Sprint(f.Processes); f.Processes > 0 {
		e.value(".processes", n, n, "processes that have measured")
	} else {
		e.ask(".processes", "1", "metrics of the callers, with a label for each process", "How many processes call? Each has a budget and a circuit breaker of its own. Assumed: 1.")
	}
	for _, c := range []struct {
		side observed.Side
		what string
		code []string
	}{
		{observed.Calls, "deadline of calls", []string{"timeout", "canceled"}},
		{observed.Attempts, "attempt timeout", []string{"timeout", "canceled", "499"}},
		{observed.Served, "attempt timeout", []string{"499", "canceled"}},
		{observed.Served, "timeout of the proxy", []string{"504", "408", "timeout"}},
	} {
		if s := e.sum[c.side]; s != nil {
			e.timeout(s.times(s.whole(), nil, func(code string) bool { return slices.Contains(c.code, code) }), c.what)
		}
	}
	e.retries()
}

// timeout looks for a spike in the times of what was cut off: the bar with the most, together with its neighbours if they have a tenth of that. It must have five
// requests and a third of all. The interval is a bar wider on each side: clocks of callers and server differ by the way between them.
func (e *estimator) timeout(h hist, what string) {
	if h.n < 5 {
		return
	}
	most := slices.Max(h.counts)
	from := slices.Index(h.counts, most)
	to := from + 1
	for from > 0 && h.counts[from-1] >= most/10 {
		from--
	}
	for to < len(h.counts) && h.counts[to] >= most/10 {
		to++
	}
	in := sum(h.counts, run{from, to})
	if in < h.n/3 || h.Exact && to-from > 9 {
		e.seen(what, "", "", "not known: the times of %s that were cut off have no spike", whole(h.n))
		return
	}
	if h.Exact {
		from, to = max(from-1, 0), to+1
	}
	low, _ := h.ends(from)
	_, high := h.ends(to - 1)
	if to > len(h.Edges) && h.Exact && h.counts[len(h.Edges)] == 0 { // there is no bar above the longest time
		high = 1.01 * h.Edges[len(h.Edges)-1]
	}
	e.seen(what, duration(low, -1), duration(high, 1), "%s of %s that were cut off took so long", whole(in), whole(h.n))
}

// retries learns how many retries a failed attempt has: from the callers' count, or from what a server gets in an incident beyond what it gets otherwise.
func (e *estimator) retries() {
	for _, s := range e.sum {
		if s == nil || s.Side == observed.Calls || !s.countsRetries() {
			continue
		}
		if again, lost := sum(s.retries, s.whole()), sum(s.lost, s.whole()); lost >= 20 {
			at := counted(again, 1).over(lost)
			e.seen("retries for a failed attempt", number(min(at.low, 1), -1), number(min(at.high, 1), 1), "%s retries, and %s attempts that failed", whole(again), whole(lost))
			return
		}
	}
	s := e.main
	var came, usual, lost float64
	for _, r := range s.incidents {
		came, lost, usual = came+sum(s.came, r), lost+sum(s.lost, r), usual+float64(r.to-r.from)*e.rate*s.length
	}
	if s.Side == observed.Calls || lost < 20 || lost < usual/10 {
		return
	}
	half := z95 * math.Sqrt(max(came, usual))
	e.seen("retries for a failed attempt, by the load in incidents", number(max(came-usual-half, 0)/lost, -1), number(max(came-usual+half, 0)/lost, 1),
		"%s requests more than usual, and %s that failed", whole(max(came-usual, 0)), whole(lost))
	if came-usual+half > 0.05*lost && e.sum[observed.Calls] == nil && !e.hidden {
		e.ask(".arrivals.ramp", "", "metrics of the callers, by call and by attempt", "Did callers repeat what failed, or did more of them come? More requests came in the incident than usual.")
	}
}
