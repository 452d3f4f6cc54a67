package queue

import (
	"context"
	"time"

	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
)

// gate holds the fetching back while the circuit breaker is not closed.
type gate struct {
	c      *Consumer
	paused bool
	told   time.Time // until when a Pauser is paused
}

// foreseen is for how long a Pauser is told that it is paused, where nobody knows.
const foreseen = 10 * time.Second

// pass waits until something may be fetched, and says how much at most; zero if ctx has
// ended. A breaker that is half-open gets one message at a time, for a probe: those that
// it does not let pass would have to be given back. And none if there is one that was
// held for want of a closed breaker.
func (g *gate) pass(ctx context.Context) (most int, probe bool) {
	c := g.c
	b := c.dep.Breaker()
	if b == nil {
		return c.config.Batch, false
	}
	for ctx.Err() == nil {
		now := c.dep.Now()
		wait := engine.RecheckCircuit
		switch b.State(now) {
		case breaker.Closed:
			if g.paused {
				g.paused = false
				c.probes.Forget()
				c.tell(Event{Kind: EventResumed})
			}
			g.told = time.Time{}
			return c.config.Batch, false
		case breaker.HalfOpen:
			if c.probing.Load() == 0 && c.held.Load() == 0 {
				g.told = time.Time{}
				return 1, true
			}
			g.pause(ctx, wait, foreseen)
		case breaker.Open:
			long := foreseen
			if at := b.RetryAt(now); at > now {
				wait = at - now
				long = wait
			}
			g.pause(ctx, wait, long)
		}
		g.wait(ctx, wait)
	}
	return 0, false
}

// pause says that there is a pause, of wait at least and long at most as far as is known.
func (g *gate) pause(ctx context.Context, wait, long time.Duration) {
	if !g.paused {
		g.paused = true
		g.c.tell(Event{Kind: EventPaused, Reason: "circuit_open", After: wait})
	}
	p, ok := g.c.broker.(Pauser)
	now := time.Now()
	soon := long > wait && now.Add(2*wait).After(g.told) // it ends, and nobody knows why it should
	if !ok || ctx.Err() != nil || !soon && !now.Add(wait).After(g.told.Add(engine.RecheckCircuit)) {
		return
	}
	g.told = now.Add(long)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := p.Pause(ctx, g.told); err != nil && ctx.Err() == nil {
		g.told = time.Time{} // what was fetched ahead stays there, until the next look
	}
}

// wait is for a time, or less: until a message has ended, which may have changed
// the breaker's mind.
func (g *gate) wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-g.c.ended:
	case <-ctx.Done():
	}
}
