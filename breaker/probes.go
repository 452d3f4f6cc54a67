package breaker

import (
	"cmp"
	"slices"
	"time"
)

// A probe is a call that a half-open breaker waits for.
type probe struct {
	id       uint32        // never zero
	stream   bool          // started by StartStream, or accepted
	accepted bool          // it may be silent from now on
	since    time.Duration // its start, or when it was accepted
}

// probes are the probes in flight. A single one, which is usual, takes no memory beyond the
// breaker's own.
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

// placesTaken counts the probes that keep out another call. A stream is kept out by all
// probes, other calls by those that are no streams.
func (p *probes) placesTaken(stream bool) (n int) {
	if stream {
		return p.len()
	}
	if p.one.id != 0 && !p.one.stream {
		n++
	}
	if p.more != nil {
		for _, q := range *p.more {
			if !q.stream {
				n++
			}
		}
	}
	return n
}

// remove removes and returns the probe with this id. ok is false if there is none.
func (p *probes) remove(id uint32) (q probe, ok bool) {
	if p.one.id == id {
		q, p.one = p.one, probe{}
		if p.more != nil && len(*p.more) > 0 {
			p.one = (*p.more)[0]
			*p.more = (*p.more)[1:]
		}
		return q, true
	}
	if i := p.index(id); i >= 0 {
		q = (*p.more)[i]
		*p.more = slices.Delete(*p.more, i, i+1)
		return q, true
	}
	return q, false
}

// index returns where in more the probe is; negative: nowhere.
func (p *probes) index(id uint32) int {
	if p.more == nil {
		return -1
	}
	return slices.IndexFunc(*p.more, func(q probe) bool { return q.id == id })
}

// accept marks a probe as accepted. It reports whether the probe is in flight and was not
// accepted before.
func (p *probes) accept(id uint32, now time.Duration) bool {
	q := &p.one
	if p.one.id != id {
		i := p.index(id)
		if i < 0 {
			return false
		}
		q = &(*p.more)[i]
	}
	if q.accepted {
		return false
	}
	q.stream, q.accepted, q.since = true, true, now
	return true
}

// oldest returns the start of the probe whose time is over first.
func (p *probes) oldest() time.Duration {
	since := p.one.since
	if p.more != nil {
		for _, q := range *p.more {
			since = min(since, q.since)
		}
	}
	return since
}

// byAge returns a copy of the probes, in the order in which their times are over.
func (p *probes) byAge() []probe {
	all := []probe{p.one}
	if p.more != nil {
		all = append(all, *p.more...)
	}
	slices.SortStableFunc(all, func(a, b probe) int { return cmp.Compare(a.since, b.since) })
	return all
}

func (p *probes) clear() { *p = probes{} }
