package breaker

import (
	"math"
	"time"

	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/saturating"
)

// another makes a further random number of luck, for a probe that times out:
// that is noticed in Start, where none is handed in. (The finalizer of
// SplitMix64.) The middle stays the middle.
func another(luck uint64) uint64 {
	if luck == chance.Middle {
		return luck
	}
	luck += 0x9e3779b97f4a7c15
	luck = (luck ^ luck>>30) * 0xbf58476d1ce4e5b9
	luck = (luck ^ luck>>27) * 0x94d049bb133111eb
	return luck ^ luck>>31
}

// openTime is the length of an opening that n others went before: twice as long
// with each, spread upwards by the jitter, both within openMax.
func (r *rules) openTime(n uint8, luck uint64) time.Duration {
	d := r.openFor
	for ; n > 0 && d < r.openTop; n-- {
		if d > r.openTop/2 {
			d = r.openTop
		} else {
			d *= 2
		}
	}
	spread := r.openMax - d
	if s := float64(d) * r.jitter; s < float64(spread) {
		spread = time.Duration(s)
	}
	return d + time.Duration(chance.Scale(uint64(spread), luck))
}

// peek is the state at now and, if that is Open, when it ends: what settle would
// make of the breaker, without doing it.
func (b *Breaker) peek(now time.Duration) (State, time.Duration) {
	w := b.word.Load()
	if State(w&stateMask) == Closed || b.metricsOnly {
		return Closed, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s, until := b.state(), b.until
	if at, lost := b.lostProbe(now); lost {
		s, until = Open, saturating.Add(at, b.openTime(b.openings, another(b.luck)))
	}
	if s == Open && now >= until && !b.forced {
		s = HalfOpen
	}
	return s, until
}

// What follows is called with mu held.

func (b *Breaker) state() State { return State(b.word.Load() & stateMask) }

// move goes over to another state and a new generation, in which no probe is out
// yet, and queues the change for the listeners.
func (b *Breaker) move(to State, c Change) {
	w := b.word.Load()
	if len(b.listeners) > 0 {
		c.From, c.To, c.MetricsOnly = State(w&stateMask), to, b.metricsOnly
		b.queue = append(b.queue, c)
	}
	b.out, b.wins = b.out[:0], 0
	b.word.Store((w>>stateBits+1)<<stateBits | uint64(to))
}

// settle makes the changes that have become due by now: a probe that has timed
// out opens the breaker as of that moment, and an open time that has passed
// makes way for probes.
func (b *Breaker) settle(now time.Duration) {
	if at, lost := b.lostProbe(now); lost {
		b.open(at, ProbeTimedOut, int64(b.wins)+1, 1, another(b.luck))
	}
	if b.state() == Open && now >= b.until && !b.forced {
		b.gate.Store(math.MinInt64)
		b.move(HalfOpen, Change{Reason: OpenTimePassed, At: now})
	}
}

// open begins an open time at the given moment.
func (b *Breaker) open(at time.Duration, why Reason, calls, failures int64, luck uint64) {
	b.luck = luck
	b.until = saturating.Add(at, b.openTime(b.openings, luck))
	if b.openings < math.MaxUint8 {
		b.openings++
	}
	b.gate.Store(int64(b.until))
	b.move(Open, Change{Reason: why, At: at, Until: b.until, Calls: calls, Failures: failures})
}

// close begins a new count.
func (b *Breaker) close(now time.Duration, why Reason, calls int64) {
	if c := b.counted.Load(); c != nil {
		c.started.Reset()
		c.failed.reset()
		c.slow.reset()
	}
	b.streak.Store(0)
	b.closedAt = now
	b.move(Closed, Change{Reason: why, At: now, Calls: calls})
}

// trip, which takes the lock itself, opens a breaker that is closed and in the
// generation that was judged.
func (b *Breaker) trip(now time.Duration, gen uint64, why Reason, calls, failures int64, rnd func() uint64) {
	luck := chance.Bits(rnd) // a stranger's function: not under the lock
	b.mu.Lock()
	if b.word.Load() == gen<<stateBits|uint64(Closed) && !b.forced {
		if since(b.closedAt, now) >= b.window {
			b.openings = 0
		}
		b.open(now, why, calls, failures, luck)
	}
	b.unlock()
}
