package outlier

import (
	"math"
	"time"

	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/internal/window"
)

// sweep runs the sweeps that are due by now. Other goroutines go on with the old view.
func (s *Set) sweep(now time.Duration, random func() uint64) {
	if !s.mu.TryLock() {
		return
	}
	defer s.unlock()
	last := window.Tick(now, s.width)
	for n := 0; s.tick < last; n++ {
		// A call that comes after a sweep was due makes it before it is counted. So what
		// was counted since the last sweep belongs to the first slot. When that has left
		// the interval, only ejections that end change anything.
		slot := s.tick % uint64(s.sweeps)
		s.tick++
		idle := n > s.sweeps
		if idle {
			s.tick = s.nextDue(last)
		}
		at := s.timeOf(s.tick)
		for _, h := range s.hosts {
			s.advance(h, slot, idle)
		}
		for _, h := range s.hosts {
			if h.ejected && h.until <= at {
				s.takeBack(h, at, TimePassed)
			}
		}
		s.judge(at, random)
		for _, h := range s.hosts {
			s.lowerSteps(h, at)
		}
	}
	s.endStripes()
	s.next.Store(int64(s.timeOf(s.tick + 1)))
}

// nextDue returns the first sweep from s.tick on that ends an ejection, or last. The lock
// is held.
func (s *Set) nextDue(last uint64) uint64 {
	for _, h := range s.hosts {
		if h.ejected {
			last = min(last, max(s.tick, window.Tick(s.nextSweep(h.until), s.width)))
		}
	}
	return last
}

func (s *Set) timeOf(tick uint64) time.Duration {
	if tick > math.MaxInt64/uint64(s.width) {
		return math.MaxInt64
	}
	return time.Duration(tick) * s.width
}

// advance ends the slot that was open. The lock is held.
func (s *Set) advance(h *host, slot uint64, idle bool) {
	s.collect(h)
	if h.sinceSweep.calls == 0 && s.choice == LeastTime {
		// The measured time of an endpoint ages while it gets no calls.
		took := math.Float64frombits(h.took.Load()) / 2
		if idle || took < 1 {
			took = 0
		}
		h.took.Store(math.Float64bits(took))
	}
	load := h.allLoad()
	h.began[s.tick%uint64(len(h.began))] = load
	if idle {
		fill(h.began, load)
	}
	h.sum.sub(h.past[slot])
	h.sum.add(h.sinceSweep)
	h.past[slot] = h.sinceSweep
	h.sinceSweep = tally{}
}

// takeBack ends an ejection. The lock is held.
func (s *Set) takeBack(h *host, at time.Duration, why ChangeReason) {
	h.ejected = false
	s.ejected--
	s.dirty = true
	h.steadyFrom = max(0, at)
	if s.unconditional {
		h.streaks.Store(0)
	} else {
		h.gen.Add(1)
		s.forget(h)
	}
	s.audience.Announce(Change{Key: h.key, Kind: Returned, Reason: why, At: at, Ejections: h.times})
}

// lowerSteps lowers the multiplier of an endpoint that was not ejected. The lock is held.
func (s *Set) lowerSteps(h *host, at time.Duration) {
	if h.ejected || h.steps == 0 || at < h.steadyFrom {
		return
	}
	if quiet := min(h.steps, int64((at-h.steadyFrom)/s.interval)); quiet > 0 {
		h.steps -= quiet
		h.steadyFrom += time.Duration(quiet) * s.interval
	}
}

// ejectOrSpare ejects an outlier if there is room, or spares it. The lock is held.
func (s *Set) ejectOrSpare(h *host, f finding, at time.Duration, random func() uint64) {
	if h.ejected {
		return
	}
	if s.ejected >= s.permitted(len(s.hosts)) {
		h.overflows++
		return
	}
	c := Change{
		Key: h.key, Reason: f.reason, At: at, Ejections: h.times,
		Calls: f.calls, Failures: f.failures, Usual: f.usual, Threshold: f.threshold,
	}
	if !s.mayEject(f.reason, random) {
		c.Kind = Spared
		s.audience.Announce(c)
		h.forgetResults = !s.unconditional
		return
	}
	if h.steps < s.steps() {
		h.steps++
	}
	h.times++
	h.ejected = true
	h.until = saturating.Add(at, saturating.Add(s.ejection(h.steps), s.spread(random)))
	s.ejected++
	s.dirty = true
	if !s.unconditional {
		h.gen.Add(1)
	}
	c.Kind, c.Until, c.Ejections = Ejected, h.until, h.times
	s.audience.Announce(c)
}
