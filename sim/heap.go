package sim

import (
	"cmp"
	"time"

	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/saturating"
)

// A Heap is the memory of each host, and a garbage collector that stops all work while it runs. It
// runs when the heap is full, for a time that grows with what is in use then: the longer the queue,
// the longer and the more frequent are the pauses. The zero Heap is off.
type Heap struct {
	// Size is how many bytes there are. Zero: memory costs nothing.
	Size int
	// Live is how many are in use without any work, PerAttempt how many for each attempt that
	// waits or is worked on, PerConnection for each open connection of a [Pool] or [Link].
	Live, PerAttempt, PerConnection int
	// Garbage is how many bytes each attempt leaves behind beside these.
	Garbage int
	// Pause is how long a collection takes for each million bytes in use.
	Pause time.Duration
	// Restart is for how long a host is down when all of its memory is in use: it crashes, and loses
	// everything that it has in hand. Zero: 10 s.
	Restart time.Duration
}

func (h *Heap) validate(s *Service) error {
	var l problem.List
	const most = 1 << 50
	l.Check(h.Size >= 0 && h.Size <= most, "Size", h.Size, "zero (off) to 2^50")
	l.Check(h.Size == 0 || !s.Contention, "Size", h.Size, "zero for a service with Contention")
	l.Check(h.Live >= 0 && h.Live <= h.Size, "Live", h.Live, "0 to Size")
	l.Check(h.PerAttempt >= 0 && h.PerAttempt <= h.Size, "PerAttempt", h.PerAttempt, "0 to Size")
	l.Check(h.PerConnection >= 0 && h.PerConnection <= h.Size, "PerConnection", h.PerConnection, "0 to Size")
	l.Check(h.Garbage >= 0 && h.Garbage <= h.Size, "Garbage", h.Garbage, "0 to Size")
	l.Check(h.Pause >= 0 && h.Pause <= time.Minute, "Pause", h.Pause, "0 to 1m")
	span(&l, "Restart", h.Restart)
	return l.Err()
}

// memory is that of a host at work.
type memory struct {
	used   int           // bytes, garbage included
	pauses time.Duration // all pauses until now, the present one included
	until  time.Duration // the end of the present pause
	down   time.Duration // the end of the restart after it ran out of memory
}

// live is how many bytes h has in use, without the messages that wait.
func (h *host) live(d *Heap) int {
	inHand := h.busy + h.queue.len() + h.stand
	return d.Live + d.PerAttempt*inHand + d.PerConnection*(h.accepts.open+h.kept)
}

// allocate takes memory for one attempt. It reports false if there is not enough: the host has
// crashed.
func (w *world) allocate(s *service, i uint32) bool {
	d := &s.def.Heap
	h := &s.hosts[i]
	if h.heap.used == 0 {
		h.heap.used = d.Live
	}
	buffered := w.buffered(h)
	if h.heap.used += d.PerAttempt + d.Garbage; h.heap.used+buffered <= d.Size {
		return true
	}
	live := h.live(d) + d.PerAttempt + buffered
	if live > d.Size {
		w.exhaust(s, i)
		return false
	}
	h.heap.used = live - buffered
	pause := duration(float64(d.Pause) * (float64(live) / 1e6))
	w.rec.collected(w.now, pause)
	h.heap.pauses = saturating.Add(h.heap.pauses, pause)
	h.heap.until = saturating.Add(max(h.heap.until, w.now), pause)
	return true
}

// exhaust crashes a host that has no memory left.
func (w *world) exhaust(s *service, i uint32) {
	h := &s.hosts[i]
	w.rec.outOfMemory(w.now)
	h.heap = memory{pauses: h.heap.pauses, down: saturating.Add(w.now, cmp.Or(s.def.Heap.Restart, 10*time.Second))}
	s.crash(w, int(i), false)
}

// paused reports whether the work on j, which should be done, is not, because of pauses since it
// began. It is done later by as much.
func (w *world) paused(i uint32, j *job) bool {
	h := &w.services[j.service].hosts[j.host]
	since := h.heap.pauses - time.Duration(j.version)
	if since == 0 {
		return false
	}
	j.version = uint64(h.heap.pauses)
	w.at(saturating.Add(w.now, since), done, j.gen, i)
	return true
}
