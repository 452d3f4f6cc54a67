package outlier

import (
	"time"

	"github.com/lullgo/lull/internal/window"
)

// EndpointState is the state of one endpoint in a set.
type EndpointState struct {
	Key     string
	Ejected bool
	// Until is the end of the ejection; zero if Ejected is false. The next sweep takes the
	// endpoint back.
	Until time.Duration
	// Ejections is how often it was ejected since it came into the set.
	Ejections int64
	// Overflows is how often it was an outlier, but too many were ejected already
	// (Config.MaxEjected).
	Overflows int64
	// Load is how many calls are in flight.
	Load int64
	// Calls and Failures are those that ended within the last Interval, since the endpoint
	// was last judged anew. With Split, Unanswered are the calls without an answer; they
	// are not among Failures.
	Calls, Failures, Unanswered int64
}

// SuccessRate returns the share of calls that succeeded. ok is false if there were none.
func (s EndpointState) SuccessRate() (rate float64, ok bool) {
	if s.Calls == 0 {
		return 0, false
	}
	return float64(s.Calls-s.Failures-s.Unanswered) / float64(s.Calls), true
}

// States returns the state of each endpoint at now, in the order of the latest Update. It
// changes nothing: an ejection that is over is shown as over, although the next call takes
// the endpoint back.
func (s *Set) States(now time.Duration) []EndpointState {
	s.mu.Lock()
	defer s.unlock()
	list := make([]EndpointState, len(s.hosts))
	for i, h := range s.hosts {
		s.collect(h)
		t := s.recent(h, now)
		list[i] = EndpointState{
			Key: h.key, Ejected: h.ejected, Until: h.until, Ejections: h.times, Overflows: h.overflows,
			Load: h.allLoad(), Calls: t.calls, Failures: t.external, Unanswered: t.local,
		}
		if !h.ejected || s.tick < window.Tick(now, s.width) && s.nextSweep(h.until) <= now {
			list[i].Ejected, list[i].Until = false, 0
		}
	}
	return list
}

// recent returns the results of the last interval. The lock is held.
func (s *Set) recent(h *host, now time.Duration) tally {
	missed := max(window.Tick(now, s.width), s.tick) - s.tick // sweeps since
	if missed >= uint64(s.sweeps) {
		return tally{}
	}
	t := h.sinceSweep
	// past[tick%sweeps] is the oldest.
	for back := uint64(1); back < uint64(s.sweeps)-missed; back++ {
		t.add(h.past[(s.tick+uint64(s.sweeps)-back)%uint64(s.sweeps)])
	}
	return t
}
