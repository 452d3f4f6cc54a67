package breaker

import (
	"math"
	"time"

	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/saturating"
)

// admit lets a probe start. The lock is held and there is a place.
func (b *Breaker) admit(now time.Duration) Token {
	b.lastProbe++
	if b.lastProbe == 0 {
		b.lastProbe = 1
	}
	b.out.add(probe{b.lastProbe, now})
	b.setGate()
	return Token{start: now, gen: generation(b.word.Load()), probe: b.lastProbe}
}

// takeBack gives the place of a probe free that is not made.
func (b *Breaker) takeBack(t Token) {
	b.mu.Lock()
	defer b.unlock()
	if t.gen == generation(b.word.Load()) && b.out.remove(t.probe) {
		b.setGate()
	}
}

// setGate lets calls come to the lock when there is a place for a probe, or
// when the first of those that are out has timed out. The lock is held.
func (b *Breaker) setGate() {
	gate := time.Duration(math.MinInt64)
	if b.out.len() >= int(b.probes) {
		gate = b.probeDeadline()
	}
	b.gate.Store(int64(gate))
}

// probeDeadline is when the first of the probes that are out times out.
func (b *Breaker) probeDeadline() time.Duration {
	return saturating.Add(b.out.oldest(), b.probeTimeout)
}

// lostProbe tells whether a probe has timed out by now, and when. The lock is
// held.
func (b *Breaker) lostProbe(now time.Duration) (at time.Duration, lost bool) {
	if b.state() != HalfOpen || b.out.len() == 0 {
		return 0, false
	}
	at = b.probeDeadline()
	return at, now >= at
}

// doneProbe is Done for a probe.
func (b *Breaker) doneProbe(now time.Duration, t Token, o Outcome, rnd func() uint64) {
	took := saturating.Since(t.start, now)
	if o == Success && b.tooSlow(took) {
		o = Failure
	}
	var luck uint64
	if o == Failure {
		luck = chance.Bits(rnd)
	}
	b.mu.Lock()
	defer b.unlock()
	b.settle(now)
	if !b.out.remove(t.probe) {
		return // reported before, or timed out
	}
	switch o {
	case Failure:
		b.open(now, took, Change{Reason: ProbeFailed, Calls: int64(b.wins) + 1, Failures: 1}, luck)
	case Success:
		b.wins++
		if int32(b.wins) >= b.probes {
			b.close(now, took, ProbesSucceeded, int64(b.wins))
			return
		}
		b.setGate()
	default:
		b.setGate()
	}
}
