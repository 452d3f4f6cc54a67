package breaker

import (
	"slices"
	"time"
)

// A probe is a call that a half-open breaker waits for.
type probe struct {
	id    uint32 // never zero
	start time.Duration
}

// probes are the probes that are out. A single one, which is usual, takes no
// memory beyond the breaker's own.
type probes struct {
	one  probe    // id zero: none is out
	more *[]probe // the others
}

func (p *probes) len() int {
	switch {
	case p.one.id == 0:
		return 0
	case p.more == nil:
		return 1
	}
	return 1 + len(*p.more)
}

func (p *probes) add(q probe) {
	switch {
	case p.one.id == 0:
		p.one = q
	case p.more == nil:
		p.more = &[]probe{q}
	default:
		*p.more = append(*p.more, q)
	}
}

// remove tells whether the probe with that id was out.
func (p *probes) remove(id uint32) bool {
	if p.one.id == id {
		p.one = probe{}
		if p.more != nil && len(*p.more) > 0 {
			p.one = (*p.more)[0]
			*p.more = (*p.more)[1:]
		}
		return true
	}
	if p.more == nil {
		return false
	}
	n := len(*p.more)
	*p.more = slices.DeleteFunc(*p.more, func(q probe) bool { return q.id == id })
	return len(*p.more) < n
}

// oldest is the start of the probe that has been out for longest.
func (p *probes) oldest() time.Duration {
	start := p.one.start
	if p.more != nil {
		for _, q := range *p.more {
			start = min(start, q.start)
		}
	}
	return start
}

func (p *probes) clear() { *p = probes{} }
