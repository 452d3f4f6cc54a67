package queue

import (
	"context"
	"time"

	"github.com/lullgo/lull/breaker"
)

// gate holds the fetching back while the circuit breaker is not closed.
type gate struct {
	c      *Consumer
	paused bool
}

// How often a breaker is looked at that does not say when it will let a probe pass:
// one that was forced open, or whose probes are out.
const lookAgain = 250 * time.Millisecond

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
		wait := lookAgain
		switch b.State(now) {
		case breaker.Closed:
			if g.paused {
				g.paused = false
				c.tell(Event{Kind: EventResumed})
			}
			return c.config.Batch, false
		case breaker.HalfOpen:
			if c.probing.Load() == 0 && c.held.Load() == 0 {
				return 1, true
			}
		case breaker.Open:
			if at := b.RetryAt(now); at > now {
				wait = at - now
			}
			g.pause(ctx, wait)
		}
		g.wait(ctx, wait)
	}
	return 0, false
}

func (g *gate) pause(ctx context.Context, wait time.Duration) {
	if !g.paused {
		g.paused = true
		g.c.tell(Event{Kind: EventPaused, Reason: "circuit_open", After: wait})
	}
	if p, ok := g.c.broker.(Pauser); ok {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		p.Pause(ctx, time.Now().Add(wait)) // if it fails, what was fetched ahead stays there
	}
}

// wait is for a time, or less: until a message has ended, which may have changed
// the breaker's mind.
func (g *gate) wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-g.c.ended:
	case <-ctx.Done():
	}
}
