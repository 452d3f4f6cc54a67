package backoff

import "time"

// Plan is a Schedule whose first waits are prepared: a lookup and a draw, about 5 ns. It
// returns what the Schedule returns, and may be used concurrently.
type Plan struct {
	Schedule
	first    [8]bounds // by retry, from 1
	prepared int       // how many of them hold
}

// bounds are between which the wait before one retry is drawn.
type bounds struct{ lo, hi, ceiling time.Duration }

// Prepare returns a Plan of s.
func (s Schedule) Prepare() *Plan {
	p := &Plan{Schedule: s}
	if s.Kind == Ethernet || s.Jitter == Decorrelated {
		return p // drawn in slots, or from the wait before
	}
	for i := range p.first {
		c := s.Ceiling(i + 1)
		p.first[i] = bounds{ceiling: c}
		if s.step(i+1) > 0 {
			p.first[i].lo, p.first[i].hi = s.spread(s.plan(), c)
		}
	}
	p.prepared = len(p.first)
	return p
}

// Delay is Schedule.Delay.
func (p *Plan) Delay(retry int, prev time.Duration, rnd func() uint64) time.Duration {
	if i := max(retry, 1) - 1; i < p.prepared {
		return uniform(p.first[i].lo, p.first[i].hi, rnd)
	}
	return p.Schedule.Delay(retry, prev, rnd)
}

// Draw returns Delay and Ceiling.
func (p *Plan) Draw(retry int, prev time.Duration, rnd func() uint64) (wait, ceiling time.Duration) {
	if i := max(retry, 1) - 1; i < p.prepared {
		return uniform(p.first[i].lo, p.first[i].hi, rnd), p.first[i].ceiling
	}
	return p.Schedule.Delay(retry, prev, rnd), p.Schedule.Ceiling(retry)
}

// Ceiling is Schedule.Ceiling.
func (p *Plan) Ceiling(retry int) time.Duration {
	if i := max(retry, 1) - 1; i < p.prepared {
		return p.first[i].ceiling
	}
	return p.Schedule.Ceiling(retry)
}
