package outlier

import (
	"math"
	"time"
)

// Done records at now how the call to e ended. Call it once for each Endpoint that Pick
// returned. A result of a call that started before the endpoint was ejected, or before it
// came back, counts only with Config.Unconditional. random returns 64 random bits, and is
// called only if a sweep is due or an endpoint is an outlier; nil stands for the middle of
// every range.
func (s *Set) Done(now time.Duration, e Endpoint, o Evidence, random func() uint64) {
	h := e.h
	if h == nil {
		return
	}
	if int64(now) >= s.next.Load() {
		s.sweep(now, random)
	}
	if o >= Neutral || e.gen != h.gen.Load() && !s.unconditional {
		h.cell(e.stripe).Add(callEnded)
		return
	}
	h.cell(e.stripe).Add(callEnded + 1)
	if o != Success {
		s.failed(now, h, o, random)
		return
	}
	if h.streaks.Load() != 0 {
		h.streaks.Store(0)
	}
	if s.choice == LeastTime {
		h.learn(now - e.start)
	}
}

// learn adds the duration of a success to the mean, with a weight of an eighth. Of two at
// the same moment one may be lost.
func (h *host) learn(d time.Duration) {
	took := max(1, float64(d))
	if old := math.Float64frombits(h.took.Load()); old > 0 {
		took = old + (took-old)/8
	}
	h.took.Store(math.Float64bits(took))
}

// failed counts a failure, and checks the rows that it made longer.
func (s *Set) failed(now time.Duration, h *host, o Evidence, random func() uint64) {
	if o == LocalOrigin && s.split {
		h.local.Add(1)
	} else {
		h.external.Add(1)
	}
	var w streaks
	var longer [rows]bool
	for {
		old := streaks(h.streaks.Load())
		w, longer = old.after(o, s.split)
		if h.streaks.CompareAndSwap(uint64(old), uint64(w)) {
			break
		}
	}
	for _, row := range [...]int{gatewayFailure, anyFailure, localFailure} { // Envoy's order
		if limit := s.inARow[row]; longer[row] && limit > 0 {
			s.rowGrew(now, h, row, w.of(row), limit, random)
		}
	}
}

// rowGrew judges a row that has n failures now, if that is due.
func (s *Set) rowGrew(now time.Duration, h *host, row int, n, limit uint64, random func() uint64) {
	if s.unconditional {
		if n == limit {
			s.endRow(now, h, row, int64(n), random)
		}
		return
	}
	first, due := n == min(2, limit), n >= limit && judgedAt(n, limit)
	if !first && !due {
		return
	}
	s.mu.Lock()
	defer s.unlock()
	if h.gone || h.ejected {
		return
	}
	if first {
		h.before[row] = start{s.others(h, row == localFailure), h.allLoad()}
	}
	if due {
		s.judgeRow(now, h, row, random)
	}
}

// judgedAt reports whether a row of n failures is judged: from limit to four times the
// limit, and then each time that it has doubled. Sweeps judge it too.
func judgedAt(n, limit uint64) bool {
	times := n / limit
	return n <= 4*limit || n%limit == 0 && times&(times-1) == 0
}

// endRow ejects an endpoint for a row, as Envoy does.
func (s *Set) endRow(now time.Duration, h *host, row int, n int64, random func() uint64) {
	s.mu.Lock()
	defer s.unlock()
	if h.gone || h.ejected {
		return
	}
	s.ejectOrSpare(h, finding{reason: ChangeReason(row), counts: counts{n, n}}, now, random)
	for {
		old := h.streaks.Load()
		if h.streaks.CompareAndSwap(old, uint64(streaks(old).ended(row))) {
			return
		}
	}
}
