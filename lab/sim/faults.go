package sim

import (
	"slices"
	"time"

	"github.com/lullgo/lull/internal/saturating"
)

// timelines makes those of the hosts of a service, which differ only in how many
// of the faults that concern a few hosts concern them.
type timelines struct {
	def     *Service
	horizon time.Duration
	known   map[int]timeline // by number of faults
}

func (t *timelines) of(host int) timeline {
	var faults []int
	for i := range t.def.Faults {
		if n := t.def.Faults[i].Hosts; n == 0 || host < n {
			faults = append(faults, i)
		}
	}
	// The faults of a host are among those of any host before it, so their number
	// identifies them.
	line, ok := t.known[len(faults)]
	if !ok {
		line = newTimeline(t.def, faults, t.horizon)
		t.known[len(faults)] = line
	}
	return line
}

// A timeline holds what one host can do at each time: the faults that concern it, cut into
// stretches in which nothing changes.
type timeline struct {
	stretches []stretch
	current   int // the stretch that was looked at last
}

func newTimeline(s *Service, faults []int, horizon time.Duration) timeline {
	workers := s.Workers
	if workers == 0 {
		workers = -1
	}
	edges := []time.Duration{0}
	for _, i := range faults {
		f := &s.Faults[i]
		f.occurrences(horizon, func(from, to time.Duration) {
			edges = append(edges, from, to)
			if f.Kind == Crash && f.Warmup > 0 {
				edges = append(edges, saturating.Add(to, f.Warmup))
			}
		})
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	t := timeline{}
	for _, e := range edges {
		if e > horizon {
			break // nothing is looked at so late
		}
		x := stretch{from: e, speed: 1, workers: workers, errors: -1, cold: 1}
		for _, i := range faults {
			x.applyFault(&s.Faults[i], i, workers)
		}
		t.stretches = append(t.stretches, x)
	}
	return t
}

type stretch struct {
	from    time.Duration
	speed   float64 // of the work; 0 stands still
	workers int     // that may be busy; -1: no limit
	errors  int     // index of the fault that makes attempts fail, or -1
	down    bool    // connections are refused
	silent  bool    // or there is no answer, where it is down
	flushed bool    // the caches are out of order
	// A cold cache: the work takes cold times as long at coldFrom, and less in a
	// straight line until warm.
	cold           float64
	coldFrom, warm time.Duration
}

func (x *stretch) applyFault(f *Fault, i, workers int) {
	to, ok := f.latest(x.from)
	if !ok {
		return
	}
	if x.from >= to {
		if f.Kind == Crash && x.from < saturating.Add(to, f.Warmup) {
			x.cold, x.coldFrom, x.warm = f.cold(), to, f.Warmup
		}
		return
	}
	switch f.Kind {
	case Stall:
		x.speed = 0
	case SlowDown:
		x.speed *= f.share()
	case BrownOut:
		if x.workers < 0 {
			x.speed *= f.share()
		} else {
			x.workers = min(x.workers, int(float64(float64(workers)*f.share())+0.5))
		}
	case Errors:
		x.errors = i
	case Crash:
		x.down = true
		x.silent = x.silent || f.Silent
	case Flush:
		x.flushed = true
	}
}

func (t *timeline) now(now time.Duration) *stretch {
	for t.current > 0 && t.stretches[t.current].from > now {
		t.current--
	}
	for t.current+1 < len(t.stretches) && t.stretches[t.current+1].from <= now {
		t.current++
	}
	return &t.stretches[t.current]
}

// finish returns when work that begins at now is done. It is never if the host does not work again.
func (t *timeline) finish(now, work time.Duration) time.Duration {
	t.now(now)
	i := t.current
	if x := &t.stretches[i]; x.cold > 1 {
		left := 1 - float64(now-x.coldFrom)/float64(x.warm)
		work = duration(float64(work) * (1 + float64((x.cold-1)*max(left, 0))))
	}
	for ; ; i++ {
		x := &t.stretches[i]
		end := never
		if i+1 < len(t.stretches) {
			end = t.stretches[i+1].from
		}
		if x.speed == 1 {
			if work <= end-now {
				return saturating.Add(now, work)
			}
			work -= end - now
		} else {
			if x.speed > 0 {
				need := duration(float64(work) / x.speed)
				if need <= end-now {
					return saturating.Add(now, need)
				}
				work -= duration(float64(end-now) * x.speed)
			}
			if end == never {
				return never
			}
		}
		now = end
	}
}

func (s *service) changeFault(w *world, i int) {
	h := &s.hosts[i]
	h.workOffRefusals(w.now) // as it has been until now
	x := h.now(w.now)
	if i == 0 && x.flushed && x.from == w.now {
		w.flushCaches(s)
	}
	if x.down && x.from == w.now {
		s.crashHost(w, i, x.silent)
		return
	}
	w.fillWorkers(s, uint32(i))
}

// crashHost loses everything that a host has in hand. If it is silent, nobody hears of it.
func (s *service) crashHost(w *world, i int, silent bool) {
	h := &s.hosts[i]
	h.workOffRefusals(w.now)
	var lost []uint32
	for k := range w.jobs.used {
		j := w.jobs.at(k)
		if uint32(j.service) != s.index || int(j.host) != i {
			continue
		}
		switch {
		case j.state == jobIdle || j.state == jobAnswering || j.state == jobConnecting:
		case j.state == jobCancelled || j.hop == handshake:
			w.dropJob(k, j)
		default:
			w.forgetVisitor(j)
			j.gen++ // what was to become of it does not
			j.state = jobAnswering
			lost = append(lost, k)
		}
	}
	h.queue, h.busy, h.atGate = line{}, 0, 0
	if h.gate != nil {
		h.gate = w.newGate(s)
	}
	if len(w.pools) > 0 {
		w.closeConnections(s, i, silent)
	}
	if len(s.links) > 0 {
		w.loseLinks(s, uint32(i))
	}
	for _, k := range lost {
		j := w.jobs.at(k)
		if !silent {
			w.sendResponse(k, j, verdictReset, w.now)
			continue
		}
		if !w.callerGone(j) { // it may have no timer, if its answer was certain
			w.startTimer(j.flight, w.flights.at(j.flight), j.until)
		}
		w.dropJob(k, j)
	}
}

func (w *world) hostUp(s *service, host uint32) bool {
	h := &s.hosts[host]
	return !h.now(w.now).down && h.heap.down <= w.now
}

// upAt returns when a host that is down will work again. Never: not before the end.
func (s *service) upAt(host uint32, now time.Duration) time.Duration {
	h := &s.hosts[host]
	at := max(now, h.heap.down)
	h.now(at)
	for _, x := range h.stretches[h.timeline.current:] {
		if !x.down {
			return max(at, x.from)
		}
	}
	return never
}
