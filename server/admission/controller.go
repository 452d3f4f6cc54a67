package admission

import (
	"math/bits"
	"sync"
	"time"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/internal/window"
)

// A Controller decides which requests one server works on. It has no clock and starts
// no goroutine. A driver reports what happens, with the time as a duration since an
// epoch that the driver chooses. [Gate] is the driver for the real clock, and
// [Middleware] is one for HTTP on top of it.
//
// Its methods may be called concurrently. They never block: the lock is held for tens
// of nanoseconds, and never while waiting.
type Controller struct {
	rules
	random  func() uint64
	observe func(Event)

	mu           sync.Mutex // guards what follows
	now          time.Duration
	inFlight     int
	knee         knee
	maxInFlight  int // of requests in flight, as the server says; 0: as many as the limit
	queue        queue
	times        times
	share        retryShare
	pressure     pressure
	lastComeback time.Duration // by when those who were asked to come back are served
	counts       counts
}

// An Option wires a Controller.
type Option func(*Controller)

// WithRand sets the source of 64 random bits that spreads Retry-After. A [Gate]
// without one sets math/rand/v2's Uint64. Without a source Retry-After is the middle of
// its range. random is called with a lock held.
func WithRand(random func() uint64) Option { return func(c *Controller) { c.random = random } }

// WithObserver calls observe for each admission, refusal and departure: outside of
// any lock, on the goroutine that caused it, and concurrently.
func WithObserver(observe func(Event)) Option { return func(c *Controller) { c.observe = observe } }

// New returns a controller for c, or the error of c.Validate.
func New(c Config, opts ...Option) (*Controller, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	a := &Controller{share: retryShare{window.New(shareSlots + 1), window.New(shareSlots + 1)}}
	a.rules, a.knee = c.rules()
	for _, o := range opts {
		if o != nil {
			o(a)
		}
	}
	return a, nil
}

// A Request holds what is known of a request before the work for it begins. The zero
// Request is a first attempt of usual priority without a deadline.
type Request struct {
	Priority Priority
	// Attempt is its number within its call, from 1; zero means 1. From 2 on it is a
	// retry.
	Attempt int
	// Hedge: another attempt of the same call is still under way.
	Hedge bool
	// Deadline is when its caller stops waiting, in the driver's time. Zero: unknown.
	Deadline time.Duration
}

// Class returns Hedge, Retry or First.
func (r Request) Class() AttemptKind {
	switch {
	case r.Hedge:
		return Hedge
	case r.Attempt > 1:
		return Retry
	}
	return First
}

// A Ticket is a request's place in one Controller, from Arrive to Depart or to its
// refusal. Its memory belongs to the driver, who can use it again afterwards. It must
// not be copied or moved meanwhile.
type Ticket struct {
	// Settled is called when a request that was Queued is Admitted or Refused: once,
	// without a lock, by whoever calls the method of the Controller that settled it.
	// It may call any method of the Controller, but must not block.
	Settled func(*Ticket, Decision)
	// Until is when the wait of a request that was Queued ends. Arrive sets it. The
	// driver must call Leave then.
	Until time.Duration

	// Guarded by the controller's lock.
	state         state
	class         AttemptKind
	rank          uint8
	untilDeadline bool          // Until is for its deadline
	since         time.Duration // when it arrived; when it was admitted
	waited        time.Duration
	older, newer  *Ticket // in its list; newer is also the next in a chain of settled ones
	decision      Decision
}

type state uint8

const (
	idle state = iota
	waiting
	working
)

// Arrive asks for the request r to be worked on. If it is Admitted or Queued, t is in
// use until Depart, Leave or a refusal. If t is in use already, Arrive returns its present
// decision and changes nothing.
func (c *Controller) Arrive(now time.Duration, r Request, t *Ticket) Decision {
	c.mu.Lock()
	if t.state != idle {
		d := t.decision
		c.mu.Unlock()
		return d
	}
	now = c.advance(now)
	t.class = r.Class()
	t.rank = uint8(rank(r.Priority, t.class))
	t.since, t.waited, t.newer = now, 0, nil
	displaced := c.arrive(now, r, t)
	d := t.decision
	c.unlock(t.event(now), d.Outcome != Queued)
	c.notify(displaced, now)
	return d
}

// arrive sets t.decision, and returns the ticket that had to make room, or nil.
func (c *Controller) arrive(now time.Duration, r Request, t *Ticket) (displaced *Ticket) {
	c.counts.arrived[t.class]++
	pressed := c.updatePressure(now)
	if t.class == First {
		c.share.firsts.Add(window.Tick(now, shareSlot), 1)
	} else if why := c.refuseExtra(now, r, t.class, pressed); why != NotRefused {
		c.refuse(now, t, why)
		return nil
	}
	if r.Deadline != 0 && saturating.Since(now, r.Deadline) < c.times.median {
		c.times.median -= c.times.median / doubtStep // if all were refused, nothing would be learned any more
		c.refuse(now, t, TooLate)
		return nil
	}
	if c.queue.len == 0 && c.inFlight < c.boundedLimit(c.knee.current) {
		c.admit(now, t)
		return nil
	}
	if t.class == Hedge {
		c.refuse(now, t, ShedHedge)
		return nil
	}
	if c.rules.queue == 0 {
		c.refuse(now, t, Full)
		return nil
	}
	if c.queue.len >= c.rules.queue {
		if displaced = c.displaceable(int(t.rank), pressed); displaced == nil {
			c.refuse(now, t, Full)
			return nil
		}
		c.queue.remove(displaced)
		c.refuse(now, displaced, Displaced)
	}
	// A request of higher rank than some that wait is served before them, and soon. The
	// pressure comes from lower ranks, so it does not shorten this wait.
	pressed = pressed && int(t.rank) <= bits.TrailingZeros32(c.queue.used)
	t.Until, t.untilDeadline = saturating.Add(now, c.longestWait(pressed)), false
	if latest := r.Deadline - c.times.median; r.Deadline != 0 && latest < t.Until {
		t.Until, t.untilDeadline = latest, true
	}
	if c.queue.len == 0 {
		c.pressure.queuedSince = now
	}
	t.state, t.decision = waiting, Decision{Outcome: Queued}
	c.queue.push(t)
	return displaced
}

// refuseExtra returns why a retry or hedge is refused, or NotRefused.
func (c *Controller) refuseExtra(now time.Duration, r Request, class AttemptKind, pressed bool) RefusalReason {
	switch {
	case pressed && class == Hedge:
		return ShedHedge
	case pressed && r.Priority <= Critical:
		return ShedRetry
	case !c.anyRatio && !c.share.spend(now, c.ratio):
		return RetryBudget
	}
	return NotRefused
}

// displaceable returns the ticket that has to make room in a full queue for a request of the
// given rank: the oldest of the lowest rank that is in use, if that rank is lower. An
// equal rank makes room under pressure: then the newest is served first, and the oldest
// is as good as lost. It returns nil if there is none.
func (c *Controller) displaceable(rank int, pressed bool) *Ticket {
	for r := 0; r <= rank; r++ {
		if t := c.queue.lists[r].oldest; t != nil {
			if r == rank && !pressed {
				return nil
			}
			return t
		}
	}
	return nil
}

// Depart records the result of a request that was Admitted. It ignores a t that is not
// in work.
func (c *Controller) Depart(now time.Duration, t *Ticket, r WorkResult) {
	c.mu.Lock()
	if t.state != working {
		c.mu.Unlock()
		return
	}
	now = c.advance(now)
	c.inFlight--
	took := saturating.Since(t.since, now)
	t.state, t.decision = idle, Decision{}
	c.counts.departed[min(r, Unmeasured)]++
	if r == Done {
		c.times.learn(took)
	}
	if !c.fixed && r != Unmeasured {
		c.knee.departed(took, c.inFlight, r == Done)
	}
	settled := c.next(now)
	e := t.event(now)
	e.Kind, e.Took, e.Result = Departure, took, r
	c.unlock(e, true)
	c.notify(settled, now)
}

// Leave gives up the place of a request that was Queued: its time to wait is over (now
// is Until or later), or its caller has gone. It returns the refusal, and true. It
// returns false if t is not waiting. If t has waited before, it was settled meanwhile:
// Settled has been called, or is about to be.
func (c *Controller) Leave(now time.Duration, t *Ticket) (Decision, bool) {
	c.mu.Lock()
	if t.state != waiting {
		c.mu.Unlock()
		return Decision{}, false
	}
	// This compares before c.advance: another caller's clock that is ahead must not end
	// the wait of t.
	why := Gone
	if now >= t.Until {
		why = t.overdue()
	}
	now = c.advance(now)
	c.queue.remove(t)
	c.refuse(now, t, why)
	d := t.decision
	c.unlock(t.event(now), true)
	return d, true
}

// unlock releases the lock, and then reports e if it has happened.
func (c *Controller) unlock(e Event, happened bool) {
	c.mu.Unlock()
	if happened && c.observe != nil {
		c.observe(e)
	}
}

// overdue returns the reason to refuse a request whose time to wait is over.
func (t *Ticket) overdue() RefusalReason {
	return choice.Either(t.untilDeadline, TooLate, Waited)
}

// SetMax bounds the requests in flight by n from now on, beside the limit. It is for a server that
// can take less than usual for a while, and knows it: one that has started and fills its caches, or
// whose own dependency does. Requests beyond that wait, or are refused and asked to come back when
// there is room, as at the limit, which learns nothing from them. Those that are worked on stay. Zero
// lifts the bound. The error says what n may be; nothing has changed then.
func (c *Controller) SetMax(now time.Duration, n int) error {
	var l problem.List
	if l.Check(n >= 0 && n <= MaxLimit, "SetMax", n, "zero (no bound but the limit), or "+allowedLimit); l != nil {
		return l.Err()
	}
	c.mu.Lock()
	now = c.advance(now)
	c.maxInFlight = n
	settled := c.next(now)
	c.mu.Unlock()
	c.notify(settled, now)
	return nil
}

// boundedLimit is a limit, or what the server can take if that is less.
func (c *Controller) boundedLimit(limit int) int {
	if c.maxInFlight > 0 {
		return min(limit, c.maxInFlight)
	}
	return limit
}

// advance moves the controller's time forward, never back, and returns it.
func (c *Controller) advance(now time.Duration) time.Duration {
	if now > c.now {
		c.now = now
	}
	c.knee.advance(c.now, c.inFlight)
	return c.now
}

func (c *Controller) admit(now time.Duration, t *Ticket) {
	t.waited = saturating.Since(t.since, now)
	t.state, t.since, t.decision = working, now, Decision{Outcome: Admitted}
	c.inFlight++
	c.counts.admitted[t.class]++
	c.counts.waited += t.waited
}

func (c *Controller) refuse(now time.Duration, t *Ticket, why RefusalReason) {
	t.waited = saturating.Since(t.since, now)
	t.state = idle
	c.counts.refused[why]++
	switch why {
	case Full, Waited, Displaced:
		if t.class == First {
			c.pressure.lastShed, c.pressure.everShed = now, true
			if c.boundedLimit(c.knee.current) == c.knee.current {
				c.knee.missed++
			}
		}
	}
	t.decision = c.refusal(now, t.class, why)
}

// next admits those that wait, as long as there is room. It refuses those that have waited
// for too long. It returns both as a chain.
func (c *Controller) next(now time.Duration) (settled *Ticket) {
	if c.queue.len == 0 {
		return nil
	}
	pressed := c.updatePressure(now)
	var last *Ticket
	for c.inFlight < c.boundedLimit(c.knee.current) && c.queue.len > 0 {
		l := &c.queue.lists[bits.Len32(c.queue.used)-1] // the highest rank in use
		t := choice.Either(pressed, l.newest, l.oldest)
		c.queue.remove(t)
		if now >= t.Until {
			c.refuse(now, t, t.overdue())
		} else {
			c.admit(now, t)
		}
		if last == nil {
			settled = t
		} else {
			last.newer = t
		}
		last = t
	}
	return settled
}

// notify calls the observer and Settled for each ticket of a chain.
func (c *Controller) notify(t *Ticket, now time.Duration) {
	for t != nil {
		after, d := t.newer, t.decision
		t.newer = nil
		if c.observe != nil {
			c.observe(t.event(now))
		}
		if t.Settled != nil {
			t.Settled(t, d)
		}
		t = after
	}
}
