package sim

import (
	"math"
	"time"

	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/lab/sim/internal/draw"
)

// A stream is the arrivals of one fleet, in the order of time. It holds no event
// for each, so that 25 million clients cost nothing while they do not call.
type stream struct {
	origin   *origin
	arrivals *Arrivals
	key      uint64
	made     uint64 // arrivals so far
	at       time.Duration
	rounding float64 // the fraction of a nanosecond by which at was rounded

	// Of AtOnce and Periodic: the arrivals of this round that are left, its beginning, where in it the
	// last of those ahead comes, and the next ones, in the opposite order.
	left  uint64
	round time.Duration
	phase float64 // in nanoseconds, whose fractions add up over millions
	ahead []time.Duration

	ramp []RampPoint
}

func (s *stream) findFirst() {
	switch s.arrivals.Kind {
	case Poisson, Constant:
		s.findNext(s.arrivals.At)
	case AtOnce, Periodic:
		s.beginRound(s.arrivals.At)
	case Closed:
		s.at = never // its callers have events of their own
	}
}

func (s *stream) arrive(w *world) {
	key := draw.Mix(s.key, s.made)
	var p uint32
	switch n := uint64(s.origin.processes); {
	case n == 1:
	case s.arrivals.Kind == Poisson:
		src := draw.From(^key)
		p = uint32(src.Below(n))
	default:
		p = uint32(s.made % n)
	}
	s.made++
	at := w.now
	s.findNext(at)
	w.pickStream()
	w.newCall(s.origin, p, key, s.origin.patience(w.now))
}

// pickStream finds the stream whose arrival comes first.
func (w *world) pickStream() {
	w.nextStream = nil
	for _, s := range w.streams {
		if s.at != never && (w.nextStream == nil || s.at < w.nextStream.at) {
			w.nextStream = s
		}
	}
}

func (s *stream) findNext(at time.Duration) {
	switch s.arrivals.Kind {
	case Poisson:
		s.at = s.timeAfter(at, draw.Exponential(draw.Mix(s.key, ^s.made)))
	case Constant:
		s.at = s.timeAfter(at, 1)
	default:
		if s.left > 0 {
			s.nextOfRound()
			return
		}
		s.at = never
		if s.arrivals.Kind == Periodic {
			s.beginRound(saturating.Add(s.round, s.arrivals.Every))
		}
	}
}

func (s *stream) beginRound(at time.Duration) {
	s.round, s.phase = at, 0
	s.left = uint64(s.origin.processes)
	if s.arrivals.Kind == AtOnce {
		s.left *= uint64(max(s.arrivals.Each, 1))
	}
	if s.left == 0 { // of a fleet whose policy has a mistake
		s.at = never
		return
	}
	s.nextOfRound()
}

func (s *stream) nextOfRound() {
	if len(s.ahead) == 0 {
		s.fillAhead()
	}
	last := len(s.ahead) - 1
	s.at, s.ahead = s.ahead[last], s.ahead[:last]
	s.left--
}

// mostAhead is how many arrivals of a round are found at a time. That takes half the time of finding each of them between two
// events.
const mostAhead = 256

// fillAhead finds the next arrivals of a round. With k to come in what is left of
// the round, the next of them is the smallest of k uniform draws; the randomness
// is that of the place in the round, so that a process calls at the same phase
// in every round.
func (s *stream) fillAhead() {
	n := int(min(s.left, mostAhead))
	if cap(s.ahead) < n {
		s.ahead = make([]time.Duration, n)
	}
	s.ahead = s.ahead[:n]
	within := float64(s.arrivals.Within)
	if s.arrivals.Kind == Periodic && within == 0 {
		within = float64(s.arrivals.Every)
	}
	phase, left := s.phase, s.left
	for i := n - 1; i >= 0; i-- {
		if within > 0 {
			x := draw.Exponential(draw.Mix(s.key, 1<<63|left)) / float64(left)
			share := x - float64(x*x)/2 // 1 - exp(-x), to the last nanosecond of an hour
			if x > 1e-4 {
				share = 1 - draw.Exp(-x)
			}
			phase += float64((within - phase) * share)
		}
		left--
		s.ahead[i] = saturating.Add(s.round, duration(phase))
	}
	s.phase = phase
}

// timeAfter returns when the integral of the rate, from t on, has reached mass.
func (s *stream) timeAfter(t time.Duration, mass float64) time.Duration {
	rate := s.arrivals.Rate / float64(time.Second) // per nanosecond
	if len(s.ramp) == 0 {
		return s.addRounded(t, mass/rate)
	}
	if first := s.ramp[0]; t < first.At {
		all := float64(float64(first.At-t)*rate) * first.Factor
		if mass <= all {
			return s.addRounded(t, mass/float64(rate*first.Factor))
		}
		mass -= all
		t = first.At
	}
	for i := range len(s.ramp) - 1 {
		a, b := s.ramp[i], s.ramp[i+1]
		if t >= b.At {
			continue
		}
		width, left := float64(b.At-a.At), float64(b.At-t)
		slope := float64(rate*(b.Factor-a.Factor)) / width
		from := float64(rate*b.Factor) - float64(slope*left)
		all := float64((from+float64(rate*b.Factor))/2) * left
		if mass <= all {
			return s.addRounded(t, 2*mass/(from+math.Sqrt(max(float64(from*from)+float64(2*slope*mass), 0))))
		}
		mass -= all
		t = b.At
	}
	last := float64(rate * s.ramp[len(s.ramp)-1].Factor)
	if last == 0 {
		return never
	}
	return s.addRounded(t, mass/last)
}

// addRounded adds nanoseconds to t. What is rounded off goes into the next step. Otherwise a rate of millions of calls a second
// would be wrong.
func (s *stream) addRounded(t time.Duration, ns float64) time.Duration {
	ns += s.rounding
	if !(ns < math.MaxInt64/2) {
		return never
	}
	whole := math.Floor(ns + 0.5)
	s.rounding = ns - whole
	return saturating.Add(t, time.Duration(whole))
}
