package breaker

import (
	"math"
	"time"

	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/saturating"
)

// admit starts a probe, for which there is a place. The lock is held.
func (b *Breaker) admit(now time.Duration, stream bool) Ticket {
	b.lastProbe = max(b.lastProbe+1, 1)
	b.probesOut.add(probe{id: b.lastProbe, stream: stream, since: now})
	b.setGate()
	return Ticket{start: now, gen: generation(b.word.Load()), probe: b.lastProbe}
}

// releaseProbe frees the place of a probe that is not made.
func (b *Breaker) releaseProbe(t Ticket) {
	b.mu.Lock()
	defer b.unlock()
	if t.gen != generation(b.word.Load()) {
		return
	}
	if _, out := b.probesOut.remove(t.probe); out {
		b.setGate()
	}
}

// Accepted reports that the call with ticket t was accepted at now, and may be silent from
// now on. If it is a probe that has neither failed nor succeeded a ProbeTimeout later, it
// counts as a success. Its silence is not compared with Config.SlowCall. Accepted has no
// effect after Done.
func (b *Breaker) Accepted(now time.Duration, t Ticket) {
	if t.probe == 0 {
		return
	}
	b.mu.Lock()
	defer b.unlock()
	b.catchUp(now)
	if t.gen == generation(b.word.Load()) && b.probesOut.accept(t.probe, now) {
		b.setGate()
	}
}

// setGate lets calls take the lock if there is a place for a probe, or from when the first
// probe times out. The lock is held.
func (b *Breaker) setGate() {
	gate := time.Duration(math.MinInt64)
	if b.probesOut.placesTaken(false) >= int(b.probes) {
		gate = saturating.Add(b.probesOut.oldest(), b.probeTimeout)
	}
	b.gate.Store(int64(gate))
}

// overdue returns the first change that is due by now because of probes whose time is over,
// and when it was due. A probe that was not reported opens the breaker; accepted ones count
// as successes and may close it. The lock is held.
func (b *Breaker) overdue(now time.Duration) (at time.Duration, what ChangeReason, successes int64, due bool) {
	if b.state() != HalfOpen || b.probesOut.one.id == 0 || now < saturating.Add(b.probesOut.oldest(), b.probeTimeout) {
		return 0, 0, 0, false
	}
	successes = int64(b.successes)
	for _, p := range b.probesOut.byAge() {
		at = saturating.Add(p.since, b.probeTimeout)
		switch {
		case now < at:
			return 0, 0, 0, false
		case !p.accepted:
			return at, ProbeTimedOut, successes, true
		}
		if successes++; successes >= int64(b.probes) {
			return at, ProbesSucceeded, successes, true
		}
	}
	return 0, 0, 0, false
}

func (b *Breaker) doneProbe(now time.Duration, t Ticket, o Evidence, rnd func() uint64) {
	took := saturating.Since(t.start, now)
	slow := o == Success && b.tooSlow(took)
	var random uint64
	if o == Failure || slow {
		random = chance.Bits(rnd)
	}
	b.mu.Lock()
	defer b.unlock()
	b.catchUp(now)
	if t.gen != generation(b.word.Load()) {
		return
	}
	p, ok := b.probesOut.remove(t.probe)
	switch {
	case !ok:
		return // reported before, or timed out
	case p.accepted && o == Success:
		took = 0 // how long it was silent shows nothing
	case slow:
		o = Failure
	}
	switch o {
	case Failure:
		b.open(now, took, Change{Reason: ProbeFailed, Calls: int64(b.successes) + 1, Failures: 1}, random)
	case Success:
		b.probeSucceeded(now, took)
	default:
		b.setGate()
	}
}

// probeSucceeded counts a success that took so long, and closes the breaker if it was the
// last one needed. The lock is held.
func (b *Breaker) probeSucceeded(now, took time.Duration) {
	b.successes++
	if int32(b.successes) >= b.probes {
		b.close(now, took, ProbesSucceeded, int64(b.successes))
		return
	}
	b.setGate()
}
