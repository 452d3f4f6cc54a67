package estimate

import (
	"fmt"
	"math"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
)

// callers learns what can be seen of those who call: how many processes, how long they wait, how often they repeat.
func (e *estimator) callers() {
	processes := 0
	for _, side := range []observed.Side{observed.Attempts, observed.Calls} {
		if s := e.sum[side]; s != nil && s.Processes > 0 {
			processes = s.Processes
		}
	}
	if processes > 0 {
		e.fleet().Processes = processes
		n := fmt.Sprint(processes)
		e.value(e.inFleet("processes"), n, n, "processes that have measured")
	} else {
		e.ask(e.inFleet("processes"), "1", "How many processes call? Each has a budget and a circuit breaker of its own. Assumed: 1.", "metrics of the callers, with a label for each process")
	}
	for _, c := range []struct {
		side observed.Side
		what string
		code []string
	}{
		{observed.Calls, "deadline of calls", []string{"timeout", "canceled"}},
		{observed.Attempts, "attempt timeout", []string{"timeout", "canceled"}},
		{observed.Served, "attempt timeout", []string{"499", "canceled"}},
		{observed.Served, "timeout of the proxy", []string{"504", "408", "timeout"}},
	} {
		if s := e.sum[c.side]; s != nil {
			e.timeout(s, c.what, c.code)
		}
	}
	e.retries()
}

// timeout looks for a spike in the times of what was cut off: the bar with the most, together with its neighbours if they have a tenth of that. It must have
// five requests and a third of all. The interval is a bar wider on each side: clocks of callers and server differ by the way between them.
func (e *estimator) timeout(s *steps, what string, codes []string) {
	times, n := s.times(func(i int) bool { return !s.Points[i].Missing }, func(code string) bool {
		for _, c := range codes {
			if c == code {
				return true
			}
		}
		return false
	})
	best := 0
	for i, c := range times {
		if c > times[best] {
			best = i
		}
	}
	from, to, sum := best, best, times[best]
	for from > 0 && times[from-1] >= times[best]/10 {
		from--
		sum += times[from]
	}
	for to+1 < len(times) && times[to+1] >= times[best]/10 {
		to++
		sum += times[to]
	}
	if n < 5 || sum < n/3 || s.Exact && to-from > 8 {
		if n >= 5 {
			e.seen(e.of(what), "", "", "not known: the times of %s that were cut off have no spike", whole(n))
		}
		return
	}
	low, high := 0.0, math.Inf(1)
	if s.Exact {
		from, to = max(from-1, 0), to+1
	}
	if from > 0 {
		low = s.Edges[from-1]
	}
	switch {
	case to < len(s.Edges):
		high = s.Edges[to]
	case s.Exact: // no bar is longer than what was measured
		high = s.Edges[len(s.Edges)-1] * 1.02
	}
	e.seen(e.of(what), duration(low, -1), duration(high, 1), "%s of %s that were cut off took so long", whole(sum), whole(n))
}

// retries learns how many retries a failed call has: from the callers' count, or from what a server gets in an incident beyond what it gets otherwise.
func (e *estimator) retries() {
	for _, side := range []observed.Side{observed.Attempts, observed.Served} {
		s := e.sum[side]
		if s == nil {
			continue
		}
		var retries, lost float64
		known := false
		for i := range s.Points {
			if !math.IsNaN(s.retries[i]) {
				known = true
				retries += s.retries[i]
				lost += s.ended[cut][i] + s.ended[failed][i]
			}
		}
		if !known || lost < 20 {
			continue
		}
		at := counted(retries, 1)
		e.seen(e.of("retries for a failed attempt"), number(min(at.low/lost, 1), -1), number(min(at.high/lost, 1), 1), "%s retries, and %s attempts that failed", whole(retries), whole(lost))
		return
	}
	s := e.main
	if s.Side == observed.Calls || len(e.calm.incident) == 0 {
		return
	}
	var extra, lost, expected float64
	arrived := s.arrived()
	usual := e.told[e.i].rate * s.length
	for _, r := range e.calm.incident {
		for i := r.from; i < r.to; i++ {
			if !math.IsNaN(arrived[i]) {
				extra += arrived[i] - usual
				expected += usual
				lost += s.ended[cut][i] + s.ended[failed][i]
			}
		}
	}
	if lost < 20 || lost < expected/10 {
		return
	}
	half := z95 * math.Sqrt(expected+math.Abs(extra))
	e.seen(e.of("retries for a failed attempt, by the load in incidents"), number(max(extra-half, 0)/lost, -1), number(max(extra+half, 0)/lost, 1),
		"%s requests more than usual, and %s that failed", whole(max(extra, 0)), whole(lost))
	if extra+half < 0.05*lost || e.sum[observed.Calls] != nil || e.hidden {
		return
	}
	e.ask(e.inFleet("arrivals.ramp"), "", "Did callers repeat what failed, or did more of them come? More requests came in the incident than usual.", "metrics of the callers, by call and by attempt")
}
