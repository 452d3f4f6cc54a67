package outlier

import (
	"time"

	"github.com/lullgo/lull/internal/window"
)

// EndpointState is the state of one endpoint in a set.
type EndpointState struct {
	Key     string
	Ejected bool
	// Until is the end of the ejection, zero if Ejected is false. The endpoint comes
	// back with the first sweep from then on.
	Until time.Duration
	// Ejections is how often it has been ejected since it came into the set.
	Ejections int64
	// Overflows is how often it was found to be an outlier, but too many were
	// ejected already (Config.MaxEjected).
	Overflows int64
	// Load is how many calls are under way.
	Load int64
	// Calls and Failures are those that ended within the last Interval, since the
	// endpoint was last judged anew. Where Split is set, Unanswered are those that
	// got no answer; they are not among Failures.
	Calls, Failures, Unanswered int64
}

// SuccessRate returns the share of calls that succeeded within the last Interval, and
// whether there were any.
func (s EndpointState) SuccessRate() (rate float64, ok bool) {
	if s.Calls == 0 {
		return 0, false
	}
	return float64(s.Calls-s.Failures-s.Unanswered) / float64(s.Calls), true
}

// States returns the state of each endpoint at now, in the order of the latest Update. It
// changes nothing: an ejection that is over by now is shown as over, though the endpoint
// is taken back only when the next call comes.
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

// recent returns the results of the last interval, including the open slot. The lock is
// held.
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
