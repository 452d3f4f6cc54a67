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

// A Breaker guards the calls to one dependency. Make one with New or with a Plan; the zero
// Breaker is off. Its methods may be called concurrently, and by listeners. They panic only
// if a listener or a source of random bits does. A Breaker must not be copied.
type Breaker struct {
	*rules // shared by all breakers of a plan; nil when the breaker is off

	// generation<<stateBits | CircuitState; zero: off. Written under mu.
	word atomic.Uint64
	// Before this time a breaker that is not closed refuses all calls, without the lock.
	// While it is open, this is the end of the open time. Written under mu, before word.
	gate atomic.Int64
	// Failures in a row while closed. Added to under mu; every success sets it to zero.
	streak atomic.Int64
	// When the next call may pass as a sample. Written under mu.
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

// A Ticket stands for an admitted call, from Start to Done. Calls with the zero Ticket are
// not counted.
type Ticket struct {
	start time.Duration
	gen   uint32
	probe uint32 // zero: no probe
}

// Probe reports whether the call is a probe or a sample: its result may close the circuit.
func (t Ticket) Probe() bool { return t.probe != 0 }

// LateTicket returns the ticket of a call that started at start, when its breaker had not
// been made yet (see Config.CanStartLate). The call counts like one that was admitted
// before the first change of state.
func LateTicket(start time.Duration) Ticket { return Ticket{start: start, gen: 1} }

// Start reports whether a call may start at now. If it may, report its end with Done,
// however it ends. If not, there is nothing to report.
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

// StartStream is Start for a call that may be silent for any time once it was accepted,
// such as a stream of events; see Accepted. A stream that is a probe keeps no other call
// out.
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

// Done records how the call with ticket t ended. It has no effect if the breaker has
// changed its state since the call started. rnd returns 64 random bits. It is called only
// for an opening, to spread the open time; nil stands for the middle of the range.
func (b *Breaker) Done(now time.Duration, t Ticket, o Evidence, rnd func() uint64) {
	b.DoneWithUsualTime(now, t, o, 0, rnd)
}

// DoneWithUsualTime is Done for a caller that knows how long successful calls usually take
// (zero: unknown). If Config.ConsecutiveFor is zero, a row of failures that took less than
// that must last for twice as long to open the breaker. Until then, calls that started
// before it may still succeed.
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

// State returns the state at now. An open breaker whose open time has passed is half-open,
// although the change is made only when the next call comes.
func (b *Breaker) State(now time.Duration) CircuitState {
	s, _ := b.peek(now)
	return s
}

// RetryAt returns when the next probe may start. It is zero if the breaker is not open, and
// if it was forced open.
func (b *Breaker) RetryAt(now time.Duration) time.Duration {
	if s, until := b.peek(now); s == Open && until != math.MaxInt64 {
		return until
	}
	return 0
}

// Counts returns how many calls started in the window that ends at now, and how many of
// them have failed and were slow so far. Calls in flight are included. A closing begins a
// new count. All are zero without FailureRate and SlowRate.
func (b *Breaker) Counts(now time.Duration) (calls, failures, slow int64) {
	c := b.counted.Load()
	if c == nil {
		return 0, 0, 0
	}
	slot := window.Tick(now, b.slot)
	return max(0, c.started.Sum(slot, slotsPerWindow)), c.failed.sum(slot), c.slow.sum(slot)
}

// OpenedAt returns when the breaker opened for the first time since it was closed. ok is
// false if it is closed at now.
func (b *Breaker) OpenedAt(now time.Duration) (at time.Duration, ok bool) {
	if s, _ := b.peek(now); s == Closed {
		return 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changedAt, true
}
