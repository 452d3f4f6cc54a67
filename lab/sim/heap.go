package sim

import (
	"cmp"
	"time"

	"github.com/lullgo/lull/internal/saturating"
)

type memory struct {
	used   int           // bytes, garbage included
	pauses time.Duration // all pauses until now, the present one included
	until  time.Duration // the end of the present pause
	down   time.Duration // the end of the restart after it ran out of memory
}

// allocateMemory takes memory for one attempt. It reports false if there is not enough: the host has
// crashed.
func (w *world) allocateMemory(s *service, i uint32) bool {
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
		w.exhaustMemory(s, i)
		return false
	}
	h.heap.used = live - buffered
	pause := duration(float64(d.Pause) * (float64(live) / 1e6))
	w.rec.count(w.now, &w.rec.totals.Collections)
	w.rec.addTime(w.now, &w.rec.totals.Paused, pause)
	h.heap.pauses = saturating.Add(h.heap.pauses, pause)
	h.heap.until = saturating.Add(max(h.heap.until, w.now), pause)
	return true
}

// live is how many bytes h has in use, without the messages that wait.
func (h *host) live(d *Heap) int {
	inHand := h.busy + h.queue.len() + h.atGate
	return d.Live + d.PerAttempt*inHand + d.PerConnection*(h.acceptor.open+h.links)
}

// stillPaused reports whether the work on j, which should be done, is not, because of pauses since it
// began. It is done later by as much.
func (w *world) stillPaused(i uint32, j *job) bool {
	h := &w.services[j.service].hosts[j.host]
	since := h.heap.pauses - time.Duration(j.version)
	if since == 0 {
		return false
	}
	j.version = uint64(h.heap.pauses)
	w.at(saturating.Add(w.now, since), eventWorkDone, j.gen, i)
	return true
}

func (w *world) exhaustMemory(s *service, i uint32) {
	h := &s.hosts[i]
	w.rec.count(w.now, &w.rec.totals.OutOfMemory)
	h.heap = memory{pauses: h.heap.pauses, down: saturating.Add(w.now, cmp.Or(s.def.Heap.Restart, 10*time.Second))}
	s.crashHost(w, int(i), false)
}
