package breaker

import (
	"math"
	"slices"
	"time"

	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/saturating"
)

// A probe is a call that a half-open breaker waits for.
type probe struct {
	id    uint32
	start time.Duration
}

// admit lets a probe start. The lock is held and there is a place.
func (b *Breaker) admit(now time.Duration) Token {
	b.lastProbe++
	if b.lastProbe == 0 {
		b.lastProbe = 1
	}
	b.out = append(b.out, probe{b.lastProbe, now})
	b.setGate()
	return Token{start: now, gen: b.word.Load() >> stateBits, probe: b.lastProbe}
}

// setGate lets calls come to the lock when there is a place for a probe, or
// when the first of those that are out has timed out. The lock is held.
func (b *Breaker) setGate() {
	gate := time.Duration(math.MinInt64)
	if len(b.out) >= int(b.probes) {
		gate = b.probeDeadline()
	}
	b.gate.Store(int64(gate))
}

// probeDeadline is when the first of the probes that are out times out.
func (b *Breaker) probeDeadline() time.Duration {
	first := b.out[0].start
	for _, p := range b.out[1:] {
		first = min(first, p.start)
	}
	return saturating.Add(first, b.probeTimeout)
}

// lostProbe tells whether a probe has timed out by now, and when. The lock is
// held.
func (b *Breaker) lostProbe(now time.Duration) (at time.Duration, lost bool) {
	if b.state() != HalfOpen || len(b.out) == 0 {
		return 0, false
	}
	at = b.probeDeadline()
	return at, now >= at
}

// doneProbe is Done for a probe.
func (b *Breaker) doneProbe(now time.Duration, t Token, o Outcome, rnd func() uint64) {
	if o == Success && b.tooSlow(now, t) {
		o = Failure
	}
	var luck uint64
	if o == Failure {
		luck = chance.Bits(rnd)
	}
	b.mu.Lock()
	defer b.unlock()
	b.settle(now)
	i := slices.IndexFunc(b.out, func(p probe) bool { return p.id == t.probe })
	if i < 0 {
		return // reported before, or timed out
	}
	b.out = slices.Delete(b.out, i, i+1)
	switch o {
	case Failure:
		b.open(now, ProbeFailed, int64(b.wins)+1, 1, luck)
	case Success:
		b.wins++
		if b.wins >= b.probes {
			b.close(now, ProbesSucceeded, int64(b.wins))
			return
		}
		b.setGate()
	default:
		b.setGate()
	}
}
