package throttle

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/internal/window"
)

// slots is how many slots the window has.
const slots = 30

// shares is the state of an Adaptive throttle.
type shares struct {
	// Until acceptUntil, nothing is refused before credit requests were not accepted. This
	// saves the sums while all is well. They are done once a slot, and when the credit is
	// spent.
	acceptUntil atomic.Int64
	credit      atomic.Int64

	// probe is when the next attempt passes although chance would refuse it.
	probe atomic.Int64

	accepts window.Counter
	// notAccepted counts the other requests, including those that were refused here. It is
	// made at the first of them, so a client of a good backend does without.
	notAccepted atomic.Pointer[window.Counter]
}

func newShares() *shares { return &shares{accepts: window.New(slots)} }

// count counts one request.
func (s *shares) count(r *rules, now time.Duration, accepted bool) {
	if accepted {
		s.accepts.Add(window.Tick(now, r.slot), 1)
		return
	}
	rest := s.notAccepted.Load()
	if rest == nil {
		c := window.New(slots)
		s.notAccepted.CompareAndSwap(nil, &c)
		rest = s.notAccepted.Load()
	}
	rest.Add(window.Tick(now, r.slot), 1)
	s.credit.Add(-1)
}

// start decides, and counts the request if it is refused.
func (s *shares) start(r *rules, now time.Duration, random func() uint64) bool {
	if int64(now) < s.acceptUntil.Load() && s.credit.Load() > 0 {
		return true
	}
	p := s.judge(r, now)
	switch {
	case p <= 0:
		return true
	case unit(random) >= p:
		s.probe.Store(int64(saturating.Add(now, max(0, r.probeEvery))))
		return true
	case r.probeEvery >= 0 && s.probeDue(now, r.probeEvery):
		return true
	}
	s.count(r, now, false)
	return false
}

// judge returns the probability of a refusal. If it is zero, it records for how long.
func (s *shares) judge(r *rules, now time.Duration) float64 {
	tick := window.Tick(now, r.slot)
	accepts, rest := s.sum(tick, slots)
	p := refusal(r.k, accepts, rest)
	if p > 0 && accepts+rest < r.minRequests {
		return 0 // and not for long: even accepts bring the request that is enough
	}
	if p > 0 && r.recent < slots {
		accepts, rest = s.sum(tick, r.recent)
		p = min(p, refusal(r.k, accepts, rest))
	}
	if p <= 0 {
		s.acceptAll(r, now, enough(r.k, accepts, rest))
	}
	return p
}

// acceptAll records that nothing is refused until the slot of now ends or n more requests
// were not accepted.
func (s *shares) acceptAll(r *rules, now time.Duration, n int64) {
	from := max(0, now)
	s.credit.Store(n)
	s.acceptUntil.Store(int64(saturating.Add(from-from%r.slot, r.slot)))
}

// sum returns the sums of the last n slots.
func (s *shares) sum(tick uint64, n int) (accepts, rest int64) {
	if c := s.notAccepted.Load(); c != nil {
		rest = max(0, c.Sum(tick, n))
	}
	return max(0, s.accepts.Sum(tick, n)), rest
}

// refusal is the book's formula; below zero nothing is refused.
func refusal(k float64, accepts, rest int64) float64 {
	requests := float64(accepts + rest)
	return (requests - k*float64(accepts)) / (requests + 1)
}

// enough returns after how many more requests without an accept the refusal is above zero.
func enough(k float64, accepts, rest int64) int64 {
	return 1 + int64(min(k*float64(accepts)-float64(accepts+rest), math.MaxInt32))
}

// unit returns a number in [0,1), uniform, in steps of 2^-53.
func unit(random func() uint64) float64 {
	return float64(chance.Bits(random)>>11) * 0x1p-53
}

// probeDue reports whether the next probe is due, to one of the callers that ask at the
// same time. If the time of the probe is too far ahead, the clock was put back.
func (s *shares) probeDue(now, every time.Duration) bool {
	at := s.probe.Load()
	if int64(now) < at && uint64(at)-uint64(now) <= uint64(every) {
		return false
	}
	return s.probe.CompareAndSwap(at, int64(saturating.Add(now, every)))
}

func (s *shares) state(r *rules, now time.Duration) Snapshot {
	tick := window.Tick(now, r.slot)
	accepts, rest := s.sum(tick, slots)
	st := Snapshot{Requests: accepts + rest, Accepts: accepts}
	if st.Requests >= r.minRequests {
		recent, lately := s.sum(tick, r.recent)
		st.Refusal = max(0, min(refusal(r.k, accepts, rest), refusal(r.k, recent, lately)))
	}
	return st
}
