package breaker

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/audience"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/internal/window"
)

// A Breaker guards the calls to one dependency. Make one with New, or with a
// Plan; the zero Breaker is off. Its methods may be called concurrently and from
// listeners. They panic only when a listener or a source of randomness does. A
// Breaker must not be copied.
type Breaker struct {
	*rules // shared by all breakers of a plan; nil when the breaker is off

	// word is generation<<stateBits | CircuitState, and zero when the breaker is off.
	// It is written under mu.
	word atomic.Uint64
	// gate spares refused calls the lock: a breaker that is not closed refuses
	// every call before that time. While it is open, that is when the open time
	// ends. Written under mu, before word.
	gate atomic.Int64
	// streak is how many failures in a row there were while closed. Added to under
	// mu, and set to zero by every success.
	streak atomic.Int64
	// sampleAt is when the next call may pass as a sample. Written under mu.
	sampleAt atomic.Int64
	counted  atomic.Pointer[countsByStart] // nil until the first call that is counted

	mu               sync.Mutex    // guards what follows
	streakFrom       time.Duration // end of the first failure in the row
	outageFrom       time.Duration // when the outage began that opened it
	changedAt        time.Duration // when it last closed, or opened after it was closed; never: the lowest number
	closingProbeTook time.Duration // how long the probe took that closed it
	random           uint64        // the latest random number
	probesOut        probes
	audience         *audience.Audience[Change] // nil until there is something to report
	lastProbe        uint32
	successes        int16 // probes that succeeded in a row
	openings         uint8 // since the breaker last stayed closed for a whole window
	forced           bool
	outageGen        uint32  // the generation in which it opened after it was closed
	callGap          float32 // nanoseconds between two calls before it opened, on average; zero: no samples
}

const (
	stateBits = 2
	stateMask = 1<<stateBits - 1
)

// A Ticket stands for one admitted call, from Start to Done. The zero Ticket is
// that of a call which the breaker does not count; Done ignores it.
type Ticket struct {
	start time.Duration
	gen   uint32
	probe uint32 // zero: no probe
}

// Probe reports whether the call is one on which a half-open breaker's next state
// depends.
func (t Ticket) Probe() bool { return t.probe != 0 }

// LateTicket is the token of a call that started at start, unasked, because its breaker
// had not been made yet. It is for those who make a breaker at the first failure,
// which changes nothing where Config.CanStartLate is true: the calls that started
// before then, those that fail and those that succeed, are reported with such a
// token. They count like calls that a breaker admitted before its first change of
// state, and like those no more after it.
func LateTicket(start time.Duration) Ticket { return Ticket{start: start, gen: 1} }

// Start asks whether a call may start at now. If so, the call must be reported
// with Done, in whatever way it ends. If not, there is nothing to report.
func (b *Breaker) Start(now time.Duration) (Ticket, bool) {
	w := b.word.Load()
	if w&stateMask != uint64(Closed) {
		return b.startGuarded(now, w, false)
	}
	if w == 0 {
		return Ticket{}, true
	}
	if b.counting {
		b.countStart(now)
	}
	return Ticket{start: now, gen: generation(w)}, true
}

// StartStream is Start for a call that may stay silent for as long as it likes once it was
// accepted, such as a stream of events: see Accepted. As a probe it has a place beside
// Config.Probes other calls, and keeps none of them out.
func (b *Breaker) StartStream(now time.Duration) (Ticket, bool) {
	if w := b.word.Load(); w&stateMask != uint64(Closed) {
		return b.startGuarded(now, w, true)
	}
	return b.Start(now)
}

func generation(word uint64) uint32 { return uint32(word >> stateBits) }

func (b *Breaker) countStart(now time.Duration) {
	b.cohorts().started.Add(window.Tick(now, b.slot), 1)
}

// startGuarded is Start for a breaker that is open or half-open.
func (b *Breaker) startGuarded(now time.Duration, w uint64, stream bool) (Ticket, bool) {
	if int64(now) < b.gate.Load() {
		return b.refuse(now, w)
	}
	b.mu.Lock()
	b.catchUp(now)
	switch b.state() {
	case Closed:
		b.unlock()
		return b.Start(now)
	case HalfOpen:
		if b.probesOut.placesTaken(stream) < int(b.probes) {
			t, notified := b.admit(now, stream), false
			defer func() {
				if !notified { // a listener panicked, and nobody will report the probe
					b.releaseProbe(t)
				}
			}()
			b.unlock()
			notified = true
			return t, true
		}
	}
	w = b.word.Load()
	b.unlock()
	return b.refuse(now, w)
}

func (b *Breaker) refuse(now time.Duration, w uint64) (Ticket, bool) {
	if !b.metricsOnly {
		return b.sample(now)
	}
	if b.counting {
		b.countStart(now)
	}
	return Ticket{start: now, gen: generation(w)}, true
}

// Done reports how the call that got t ended. It is ignored when the breaker
// has changed its state since: what was learnt before shows nothing about after.
// A number is drawn from rnd (64 random bits) only to spread an open time;
// nil stands for the middle of every range.
func (b *Breaker) Done(now time.Duration, t Ticket, o Evidence, rnd func() uint64) {
	b.DoneWithUsualTime(now, t, o, 0, rnd)
}

// DoneUsually is Done for a caller that knows how long calls usually take that succeed; zero
// if it does not. Where Config.ConsecutiveFor is not set, a row of failures that took less must
// have lasted for twice as long to open the breaker: until then, calls that started before it
// may still succeed.
func (b *Breaker) DoneWithUsualTime(now time.Duration, t Ticket, o Evidence, usual time.Duration, rnd func() uint64) {
	w := b.word.Load()
	if t.probe == sampled {
		b.doneSample(now, t, o)
		return
	}
	if t.gen != generation(w) || t.gen == 0 {
		return
	}
	if t.probe != 0 {
		b.doneProbe(now, t, o, rnd)
		return
	}
	if o == Success {
		if b.streak.Load() != 0 {
			b.streak.Store(0)
		}
		if b.slow == 0 {
			return
		}
	}
	b.done(now, t, o, CircuitState(w&stateMask), usual, rnd)
}

// done counts what must be counted at the end of a call, and judges it.
func (b *Breaker) done(now time.Duration, t Ticket, o Evidence, s CircuitState, usual time.Duration, rnd func() uint64) {
	if o != Success && o != Failure {
		b.forget(now, t)
		return
	}
	v := verdict{took: saturating.Since(t.start, now)}
	if b.counting {
		b.judgeRates(now, t, o, &v)
	}
	if s != Closed {
		return // let through by MetricsOnly
	}
	if o == Failure && b.consecutive > 0 {
		b.judgeStreak(now, t, usual, &v)
	}
	if v.opens {
		b.trip(now, t.gen, v, rnd)
	}
}

// State is the state at now. An open breaker whose time has passed is half-open,
// though it makes that change only when a call comes.
func (b *Breaker) State(now time.Duration) CircuitState {
	s, _ := b.peek(now)
	return s
}

// RetryAt is the time at which the next probe may start, while the breaker is
// open. It is zero when it is not open, or forced open.
func (b *Breaker) RetryAt(now time.Duration) time.Duration {
	if s, until := b.peek(now); s == Open && until != math.MaxInt64 {
		return until
	}
	return 0
}

// Counts are the calls that started in the window up to now, and how many of
// them have failed and were slow so far. A call in flight is counted as a call.
// After each closing they begin anew. Without FailureRate and SlowRate nothing
// is counted, and they are zero.
func (b *Breaker) Counts(now time.Duration) (calls, failures, slow int64) {
	c := b.counted.Load()
	if c == nil {
		return 0, 0, 0
	}
	slot := window.Tick(now, b.slot)
	return max(0, c.started.Sum(slot, slotsPerWindow)), c.failed.sum(slot), c.slow.sum(slot)
}

// OpenedAt is when the breaker opened that is not closed at now: the first time since it was
// closed, whatever probes have failed meanwhile. ok is false if it is closed.
func (b *Breaker) OpenedAt(now time.Duration) (at time.Duration, ok bool) {
	if s, _ := b.peek(now); s == Closed {
		return 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changedAt, true
}
