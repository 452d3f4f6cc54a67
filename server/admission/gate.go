package admission

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// A Gate drives a Controller by the real clock. Requests wait at it on their own
// goroutines. It knows no protocol, so HTTP middleware and gRPC interceptors can share
// one. Its methods may be called concurrently.
type Gate struct {
	c     *Controller
	epoch time.Time
	// waiters has *waiter. Each gate has its own pool: in testing/synctest a channel and
	// a timer belong to the bubble that they were made in.
	waiters sync.Pool
}

// NewGate returns a gate for c, which should have no other driver.
func NewGate(c *Controller) *Gate {
	if c.random == nil {
		c.random = rand.Uint64
	}
	return &Gate{c: c, epoch: time.Now(), waiters: sync.Pool{New: newWaiter}}
}

// Now returns the time on the gate's clock.
func (g *Gate) Now() time.Duration { return time.Since(g.epoch) }

// Controller returns the controller that the gate drives.
func (g *Gate) Controller() *Controller { return g.c }

// Snapshot returns the present state of the controller.
func (g *Gate) Snapshot() Snapshot { return g.c.Snapshot(g.Now()) }

// SetMax is [Controller.SetMax] from now on.
func (g *Gate) SetMax(n int) error { return g.c.SetMax(g.Now(), n) }

// A Pass is the permission to work on a request. Its Depart must be called once, in a
// defer: a panic must give the pass back too.
type Pass struct {
	g *Gate
	w *waiter
}

// Depart gives the pass back and records the result of the work. It does nothing for the
// zero Pass, and for one that was given back already.
func (p *Pass) Depart(r WorkResult) {
	if p.w == nil {
		return
	}
	w := p.w
	p.w = nil
	p.g.c.Depart(p.g.Now(), &w.Ticket, r)
	p.g.waiters.Put(w)
}

// waiter is a ticket with the channel and timer that its wait needs.
type waiter struct {
	Ticket
	settled chan Decision
	timer   *time.Timer
}

func newWaiter() any {
	w := &waiter{settled: make(chan Decision, 1)}
	w.Settled = func(_ *Ticket, d Decision) { w.settled <- d }
	return w
}

// Enter asks for r to be worked on. It blocks until its turn, not longer than the
// Controller allows, and not longer than ctx. If the decision is Admitted, the pass must
// be given back; otherwise it is the zero Pass. The deadline of ctx counts if r has none,
// or a later one (see Deadline).
//
// A request whose ctx has ended is Refused with the reason Gone, also if its turn came
// at that moment.
func (g *Gate) Enter(ctx context.Context, r Request) (Pass, Decision) {
	now := g.Now()
	if at, ok := ctx.Deadline(); ok {
		if d := g.Deadline(at); r.Deadline == 0 || d < r.Deadline {
			r.Deadline = d
		}
	}
	w := g.waiters.Get().(*waiter)
	d := Decision{Outcome: Refused, Reason: Gone}
	if ctx.Err() == nil {
		d = g.c.Arrive(now, r, &w.Ticket)
	}
	if d.Outcome == Queued {
		d = g.wait(ctx, w, now)
	}
	if d.Outcome == Admitted {
		if ctx.Err() == nil {
			return Pass{g, w}, d
		}
		g.c.Depart(g.Now(), &w.Ticket, Unmeasured)
		d = Decision{Outcome: Refused, Reason: Gone}
	}
	g.waiters.Put(w)
	return Pass{}, d
}

// Deadline returns the moment at on the gate's clock, for Request.Deadline.
func (g *Gate) Deadline(at time.Time) time.Duration {
	return cmp.Or(at.Sub(g.epoch), 1) // zero means that there is none
}

func (g *Gate) wait(ctx context.Context, w *waiter, now time.Duration) Decision {
	if w.timer == nil {
		w.timer = time.NewTimer(w.Until - now)
	} else {
		w.timer.Reset(w.Until - now)
	}
	defer w.timer.Stop()
	for {
		select {
		case d := <-w.settled:
			return d
		case <-ctx.Done():
		case <-w.timer.C:
			if now := g.Now(); now < w.Until {
				w.timer.Reset(w.Until - now)
				continue
			}
		}
		if d, left := g.c.Leave(g.Now(), &w.Ticket); left {
			return d
		}
		return <-w.settled
	}
}
