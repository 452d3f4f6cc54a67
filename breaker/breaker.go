package breaker

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/chance"
	"github.com/lullgo/lull/internal/window"
)

// A Breaker guards the calls to one dependency. Make one with New; the zero
// Breaker is off. Its methods may be called concurrently and from listeners.
// They panic only when a listener or a source of randomness does. A Breaker
// must not be copied.
type Breaker struct {
	rules
	listeners []func(Change)

	// word is generation<<stateBits | State, and zero when the breaker is off.
	// It is written under mu.
	word    atomic.Uint64
	counted atomic.Pointer[cohorts] // nil until the first call
	streak  atomic.Int64            // failures in a row, when that rule is on
	// gate spares refused calls the lock: a breaker that is not closed refuses
	// every call before that time. Written under mu, before word.
	gate atomic.Int64

	mu         sync.Mutex // guards what follows
	until      time.Duration
	closedAt   time.Duration
	luck       uint64 // the latest random number
	out        []probe
	wins       int32 // probes that succeeded in a row
	lastProbe  uint32
	openings   uint8 // since the breaker last stayed closed for a whole window
	forced     bool
	delivering bool
	queue      []Change
}

const (
	stateBits = 2
	stateMask = 1<<stateBits - 1
)

// A Token stands for one admitted call, from Start to Done. The zero Token is
// that of a call which the breaker does not count; Done ignores it.
type Token struct {
	start time.Duration
	gen   uint64
	probe uint32 // zero: no probe
}

// Probe tells whether the call is one on which a half-open breaker's next state
// depends.
func (t Token) Probe() bool { return t.probe != 0 }

// New returns a closed breaker, or what is wrong with the configuration.
// Listeners hear of each change of state, in order, from the goroutine that
// caused a change, and outside every lock. While one of them runs, the changes
// that other goroutines cause wait for it. They should be quick. A listener's
// panic goes up to the caller of the method that delivered the change, after
// the other listeners have been told.
func New(c Config, listeners ...func(Change)) (*Breaker, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Off {
		return &Breaker{}, nil
	}
	b := &Breaker{rules: c.rules(), luck: chance.Middle}
	if len(listeners) > 0 {
		b.listeners = slices.DeleteFunc(slices.Clone(listeners), func(l func(Change)) bool { return l == nil })
	}
	b.word.Store(1<<stateBits | uint64(Closed))
	return b, nil
}

// Start asks whether a call may start at now. If so, the call must be reported
// with Done, in whatever way it ends. If not, there is nothing to report.
func (b *Breaker) Start(now time.Duration) (Token, bool) {
	w := b.word.Load()
	if w&stateMask != uint64(Closed) {
		return b.startGuarded(now, w)
	}
	if w == 0 {
		return Token{}, true
	}
	c := b.counted.Load()
	if c == nil {
		c = b.cohorts()
	}
	c.started.Add(window.Tick(now, b.slot), 1)
	return Token{start: now, gen: w >> stateBits}, true
}

// startGuarded is Start for a breaker that is open or half-open.
func (b *Breaker) startGuarded(now time.Duration, w uint64) (Token, bool) {
	if int64(now) < b.gate.Load() {
		return b.refuse(now, w)
	}
	b.mu.Lock()
	b.settle(now)
	switch b.state() {
	case Closed:
		b.unlock()
		return b.Start(now)
	case HalfOpen:
		if len(b.out) < int(b.probes) {
			t := b.admit(now)
			b.unlock()
			return t, true
		}
	}
	w = b.word.Load()
	b.unlock()
	return b.refuse(now, w)
}

func (b *Breaker) refuse(now time.Duration, w uint64) (Token, bool) {
	if !b.metricsOnly {
		return Token{}, false
	}
	b.cohorts().started.Add(window.Tick(now, b.slot), 1)
	return Token{start: now, gen: w >> stateBits}, true
}

// Done reports how the call that got t ended. It is ignored when the breaker
// has changed its state since: what was learnt before says nothing about after.
// A number is drawn from rnd (64 random bits) only to spread an open time;
// nil stands for the middle of every range.
func (b *Breaker) Done(now time.Duration, t Token, o Outcome, rnd func() uint64) {
	w := b.word.Load()
	if t.gen != w>>stateBits || t.gen == 0 {
		return
	}
	if t.probe != 0 {
		b.doneProbe(now, t, o, rnd)
		return
	}
	if o == Success && b.plain {
		return
	}
	b.done(now, t, o, State(w&stateMask), rnd)
}

// done counts what must be counted at the end of a call, and judges it.
func (b *Breaker) done(now time.Duration, t Token, o Outcome, s State, rnd func() uint64) {
	c := b.cohorts()
	if o != Success && o != Failure {
		if slot, remembered := b.cohort(now, t.start); remembered {
			c.started.Add(slot, -1)
		}
		return
	}
	var reason Reason
	var part, whole int64
	verdict := false
	if b.tooSlow(now, t) {
		part, whole = b.share(c, &c.slow, now, t.start)
		reason, verdict = SlowRate, whole >= b.minCalls && b.slow.reached(part, whole)
	}
	if o == Success {
		if b.consecutive > 0 && b.streak.Load() != 0 {
			b.streak.Store(0)
		}
	} else {
		if p, w := b.share(c, &c.failed, now, t.start); w >= b.minCalls && b.failure.reached(p, w) {
			reason, verdict, part, whole = FailureRate, true, p, w
		}
		if b.consecutive > 0 {
			if n := b.streak.Add(1); n >= b.consecutive && !verdict {
				reason, verdict, part, whole = Consecutive, true, n, n
			}
		}
	}
	if verdict && s == Closed {
		b.trip(now, t.gen, reason, whole, part, rnd)
	}
}

func (b *Breaker) tooSlow(now time.Duration, t Token) bool {
	return b.slow != 0 && since(t.start, now) > b.slowCall
}

// State is the state at now. An open breaker whose time has passed is half-open,
// though it makes that change only when a call comes.
func (b *Breaker) State(now time.Duration) State {
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
// After each closing they begin anew.
func (b *Breaker) Counts(now time.Duration) (calls, failures, slow int64) {
	c := b.counted.Load()
	if c == nil {
		return 0, 0, 0
	}
	slot := window.Tick(now, b.slot)
	return max(0, c.started.Sum(slot, slotsPerWindow)), c.failed.sum(slot), c.slow.sum(slot)
}
