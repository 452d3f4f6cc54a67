package backoff

import "time"

// Plan is a Schedule whose first waits are worked out beforehand. Delay,
// Ceiling and all else give what the Schedule gives; the first few retries are
// a table lookup and a draw, about 5 ns. It is not changed by use, and is shared
// by any number of goroutines.
type Plan struct {
	Schedule
	first    [8]bounds // by retry, from 1
	prepared int       // how many of them hold
}

// bounds holds the bounds from which the wait before one retry is drawn.
type bounds struct{ lo, hi, ceiling time.Duration }

// Prepare works out the first waits of s.
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

// Delay is as Schedule.Delay.
func (p *Plan) Delay(retry int, prev time.Duration, rnd func() uint64) time.Duration {
	if i := max(retry, 1) - 1; i < p.prepared {
		return uniform(p.first[i].lo, p.first[i].hi, rnd)
	}
	return p.Schedule.Delay(retry, prev, rnd)
}

// Draw is Delay and Ceiling at once.
func (p *Plan) Draw(retry int, prev time.Duration, rnd func() uint64) (wait, ceiling time.Duration) {
	if i := max(retry, 1) - 1; i < p.prepared {
		return uniform(p.first[i].lo, p.first[i].hi, rnd), p.first[i].ceiling
	}
	return p.Schedule.Delay(retry, prev, rnd), p.Schedule.Ceiling(retry)
}

// Ceiling is as Schedule.Ceiling.
func (p *Plan) Ceiling(retry int) time.Duration {
	if i := max(retry, 1) - 1; i < p.prepared {
		return p.first[i].ceiling
	}
	return p.Schedule.Ceiling(retry)
}
