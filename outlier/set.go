package outlier

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/audience"
)

// A Set has the endpoints of one dependency. It chooses one for each call, and leaves out
// those that do worse than the others. Make one with New. Its methods may be called
// concurrently, and by listeners. They panic only if a listener or a source of random bits
// does. A Set must not be copied.
type Set struct {
	rules

	// What every call reads.
	view atomic.Pointer[view]
	next atomic.Int64 // when the next sweep is due
	_    [64]byte     // nothing that calls write shares a cache line with these

	turn      atomic.Uint64 // of RoundRobin
	lostSteps atomic.Uint64 // steps that somebody else was quicker to make, since the last sweep
	_         [48]byte

	mu       sync.Mutex // guards what follows
	hosts    []*host    // in the order of the latest Update
	byKey    map[string]*host
	tick     uint64 // sweeps that were due so far
	ejected  int    // of hosts
	total    tally  // of all hosts, those that left included
	lastID   uint32
	round    uint64   // counts Updates
	dirty    bool     // the view is not what it should be
	stripes  uint32   // how many there are; zero until they were first needed
	striped  bool     // they are in use
	unstripe uint64   // the first sweep that may end their use
	table    []sample // scratch for the judging
	judged   []sample // the same
	audience audience.Audience[Change]
}

// A view has the endpoints that Pick chooses from. It does not change.
type view struct {
	endpoints []*host // the healthy ones, or all of them
	ids       []uint32
	stripes   uint32 // zero: none
}

// New returns an empty set, or the error of Validate. Listeners get each change, in order,
// from the goroutine that caused one, and outside of all locks. One change is delivered at
// a time, so they should be quick. A panic of a listener is raised again in the method that
// delivered the change, after the other listeners were called.
func New(c Config, listeners ...func(Change)) (*Set, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Set{rules: c.rules(), byKey: map[string]*host{}}
	s.audience = audience.Of(listeners)
	s.view.Store(new(view))
	s.next.Store(int64(s.width))
	return s, nil
}

// Update replaces the endpoints. A key that is named twice counts once. An endpoint that
// stays keeps its results; one that has gone and comes back is new. Calls in flight to one
// that has gone are still reported with Done.
func (s *Set) Update(now time.Duration, keys []string) {
	s.mu.Lock()
	defer s.unlock()
	if slices.EqualFunc(s.hosts, keys, func(h *host, key string) bool { return h.key == key }) {
		return
	}
	s.round++
	hosts := make([]*host, 0, len(keys))
	for _, key := range keys {
		h := s.byKey[key]
		if h == nil {
			s.lastID++
			h = &host{id: s.lastID, key: key, past: make([]tally, s.sweeps), began: make([]int64, s.sweeps+1)}
			s.byKey[key] = h
		}
		if h.round != s.round {
			h.round = s.round
			hosts = append(hosts, h)
		}
	}
	for _, h := range s.hosts {
		if h.round != s.round {
			s.remove(h)
		}
	}
	s.hosts = hosts
	s.dirty = true
	if s.limit == AtLeastOne {
		s.shrink(now)
	}
}

func (s *Set) remove(h *host) {
	s.collect(h)
	h.gen.Add(1)
	h.gone = true
	if h.ejected {
		s.ejected--
	}
	delete(s.byKey, h.key)
}

// shrink takes back the endpoints whose ejections end first, while too many are ejected.
// The lock is held.
func (s *Set) shrink(now time.Duration) {
	for s.ejected > s.permitted(len(s.hosts)) {
		var first *host
		for _, h := range s.hosts {
			if h.ejected && (first == nil || h.until < first.until) {
				first = h
			}
		}
		s.takeBack(first, now, Shrunk)
	}
}

// publish makes a new view, if it has changed. The lock is held.
func (s *Set) publish() {
	if !s.dirty {
		return
	}
	s.dirty = false
	n, healthy := len(s.hosts), len(s.hosts)-s.ejected
	all := healthy == 0 || 100*healthy < s.panic*n
	v := new(view)
	if s.striped {
		v.stripes = s.stripes
	}
	for _, h := range s.hosts {
		if v.stripes > 0 && h.cells == nil {
			h.cells = make([]cell, v.stripes)
		}
		if all || !h.ejected {
			v.endpoints = append(v.endpoints, h)
			v.ids = append(v.ids, h.id)
		}
	}
	s.view.Store(v)
}

// unlock publishes the view, releases mu and calls the listeners.
func (s *Set) unlock() {
	s.publish()
	s.audience.Unlock(&s.mu)
}
