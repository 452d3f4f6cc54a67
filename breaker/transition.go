package breaker

import (
	"math"
	"time"

	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/saturating"
)

// nextRandom derives another number from random (the finalizer of SplitMix64). It is for
// probes that time out, which is noticed in Start, where no source is passed. The middle
// stays the middle.
func nextRandom(random uint64) uint64 {
	if random == chance.Middle {
		return random
	}
	random += 0x9e3779b97f4a7c15
	random = (random ^ random>>30) * 0xbf58476d1ce4e5b9
	random = (random ^ random>>27) * 0x94d049bb133111eb
	return random ^ random>>31
}

// openTime returns how long the breaker stays open if it opens at the given time, because
// of a call that took so long.
func (b *Breaker) openTime(at, took time.Duration, random uint64) time.Duration {
	r := b.rules
	d := r.fitted(saturating.Since(b.outageFrom, at), took)
	if r.openFor > 0 {
		d = r.doubled(b.openings)
	}
	spread := r.openMax - d
	if s := float64(d) * r.jitter; s < float64(spread) {
		spread = time.Duration(s)
	}
	return d + time.Duration(chance.Scale(uint64(spread), random))
}

// A breaker is open for one of outageParts of the outage so far, and for at most callFactor
// times as long as the failed call took.
const (
	outageParts = 10
	callFactor  = 10
)

// fitted returns the open time, before jitter, for an outage of that age and a failed call
// that took so long. It is at least 1 ns, so an open breaker refuses at the moment at which
// it opened.
func (r *rules) fitted(age, took time.Duration) time.Duration {
	most := r.openTop
	if took < most/callFactor {
		most = took * callFactor
	}
	return max(1, min(age/outageParts, most))
}

// doubled returns the open time, before jitter, after n earlier openings.
func (r *rules) doubled(n uint8) time.Duration {
	d := r.openFor
	for ; n > 0 && d < r.openTop; n-- {
		if d > r.openTop/2 {
			d = r.openTop
		} else {
			d *= 2
		}
	}
	return d
}

// peek returns the state at now and, if that is Open, its end. It is catchUp without a
// change.
func (b *Breaker) peek(now time.Duration) (CircuitState, time.Duration) {
	w := b.word.Load()
	if CircuitState(w&stateMask) == Closed || b.metricsOnly {
		return Closed, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s, until := b.state(), time.Duration(b.gate.Load())
	if at, what, _, due := b.overdue(now); due {
		if what == ProbesSucceeded {
			return Closed, 0
		}
		s, until = Open, saturating.Add(at, b.openTime(at, b.probeTimeout, nextRandom(b.random)))
	}
	if s == Open && now >= until && !b.forced {
		s = HalfOpen
	}
	return s, until
}

// What follows is called with mu held.

func (b *Breaker) state() CircuitState { return CircuitState(b.word.Load() & stateMask) }

// changeState begins another state and a new generation without probes, and queues the
// change for the listeners.
func (b *Breaker) changeState(to CircuitState, c Change) {
	w := b.word.Load()
	c.From, c.To, c.MetricsOnly = CircuitState(w&stateMask), to, b.metricsOnly
	if c.From == Closed {
		b.changedAt = c.At
		b.outageGen = generation(w) + 1
		b.setSample(c.At)
	}
	b.announce(c)
	b.probesOut.clear()
	b.successes = 0
	gen := max(generation(w)+1, 1) // zero is that of the zero Ticket
	b.word.Store(uint64(gen)<<stateBits | uint64(to))
}

// catchUp makes the changes that are due by now: by probes whose time is over, and by an
// open time that has passed.
func (b *Breaker) catchUp(now time.Duration) {
	if at, what, successes, due := b.overdue(now); due && what == ProbesSucceeded {
		b.close(at, 0, what, successes)
	} else if due {
		b.open(at, b.probeTimeout, Change{Reason: what, Calls: successes + 1, Failures: 1}, nextRandom(b.random))
	}
	if b.state() == Open && int64(now) >= b.gate.Load() && !b.forced {
		b.gate.Store(math.MinInt64)
		b.changeState(HalfOpen, Change{Reason: OpenTimePassed, At: now})
	}
}

// open begins an open time, because of a call that took so long.
func (b *Breaker) open(at, took time.Duration, c Change, random uint64) {
	b.random = random
	c.At, c.Until = at, saturating.Add(at, b.openTime(at, took, random))
	if b.openings < math.MaxUint8 {
		b.openings++
	}
	b.gate.Store(int64(c.Until))
	b.changeState(Open, c)
}

// close begins a new count, because of a probe that took so long.
func (b *Breaker) close(now, took time.Duration, why ChangeReason, calls int64) {
	if c := b.counted.Load(); c != nil {
		c.started.Reset()
		c.failed.reset()
		c.slow.reset()
	}
	b.streak.Store(0)
	b.changedAt, b.closingProbeTook = now, took
	b.changeState(Closed, Change{Reason: why, At: now, Calls: calls})
}

// trip takes the lock, and opens a breaker that is closed and still in the generation that
// was judged.
func (b *Breaker) trip(now time.Duration, gen uint32, v verdict, rnd func() uint64) {
	random := chance.Bits(rnd) // a stranger's function: not under the lock
	b.mu.Lock()
	if b.word.Load() == closedIn(gen) && !b.forced {
		recovered := saturating.Since(b.changedAt, now) >= b.window
		if recovered {
			b.openings = 0
		}
		switch {
		case v.reason == Consecutive:
			b.outageFrom = v.from
		case recovered:
			b.outageFrom = now - b.window // that was judged; else the last outage continues
		}
		if recovered { // else callers may have come to call more often, because of the outage
			b.callGap = 0
			if b.openFor == 0 && v.reason == Consecutive && v.whole > 1 {
				b.callGap = float32(saturating.Since(v.from, now)) / float32(v.whole-1)
			}
		}
		b.open(now, v.took, Change{Reason: v.reason, Calls: v.whole, Failures: v.part}, random)
	}
	b.unlock()
}
