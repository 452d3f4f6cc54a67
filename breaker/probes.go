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

// all yields every probe.
func (p *probes) all(yield func(*probe) bool) {
	if p.one.id == 0 || !yield(&p.one) || p.more == nil {
		return
	}
	for i := range *p.more {
		if !yield(&(*p.more)[i]) {
			return
		}
	}
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
	for q := range p.all {
		if stream || !q.stream {
			n++
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
	if p.more != nil {
		if i := slices.IndexFunc(*p.more, func(q probe) bool { return q.id == id }); i >= 0 {
			q = (*p.more)[i]
			*p.more = slices.Delete(*p.more, i, i+1)
			return q, true
		}
	}
	return q, false
}

// accept marks a probe as accepted. It reports whether the probe is in flight and was not
// accepted before.
func (p *probes) accept(id uint32, now time.Duration) bool {
	for q := range p.all {
		if q.id == id && !q.accepted {
			q.stream, q.accepted, q.since = true, true, now
			return true
		}
	}
	return false
}

// oldest returns the start of the probe whose time is over first.
func (p *probes) oldest() time.Duration {
	since := p.one.since
	for q := range p.all {
		since = min(since, q.since)
	}
	return since
}

// byAge returns a copy of the probes, in the order in which their times are over.
func (p *probes) byAge() (all []probe) {
	for q := range p.all {
		all = append(all, *q)
	}
	slices.SortStableFunc(all, func(a, b probe) int { return cmp.Compare(a.since, b.since) })
	return all
}

func (p *probes) clear() { *p = probes{} }
