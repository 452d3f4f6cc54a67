package queue

import (
	"context"
	"time"
)

// gate holds the fetching back while the circuit breaker is not closed.
type gate struct {
	c           *Consumer
	paused      bool
	pausedUntil time.Time // until when a Pauser is paused
}

// awaitFetch waits until something may be fetched, and returns how much at most; zero if ctx has
// ended.
func (g *gate) awaitFetch(ctx context.Context) (most int, probe bool) {
	c := g.c
	for ctx.Err() == nil {
		c.line.next(g.stopFetchingAhead)
		batch := c.line.fetch(c.config.Batch)
		if batch == 0 { // until a message has ended
			g.wait(ctx, turnCheck)
			continue
		}
		f := c.dep.State().Fetch(c.dep.Now(), batch, c.probing.Load() > 0 || c.held.Load() > 0)
		if f.Most == 0 {
			g.pause(ctx, f.Wait, f.Foreseen)
			g.wait(ctx, f.Wait)
			continue
		}
		if g.paused && !f.Probe {
			g.paused = false
			c.probes.Forget()
			c.notify(Event{Kind: EventResumed})
		}
		g.pausedUntil = time.Time{}
		return f.Most, f.Probe
	}
	return 0, false
}

// turnCheck is how often to look whether it is the turn of a message that waits for it, beside when a
// message has ended.
const turnCheck = 250 * time.Millisecond

// stopFetchingAhead has the broker fetch nothing ahead, which would be taken for crashed with what begins now.
func (g *gate) stopFetchingAhead() {
	if p, ok := g.c.broker.(Pauser); ok {
		ctx, cancel := context.WithTimeout(g.c.calls, 5*time.Second)
		defer cancel()
		p.Pause(ctx, time.Now().Add(time.Second))
	}
}

// pause announces a pause, of wait at least and long at most as far as is known.
func (g *gate) pause(ctx context.Context, wait, long time.Duration) {
	if !g.paused {
		g.paused = true
		g.c.notify(Event{Kind: EventPaused, Reason: "circuit_open", After: wait})
	}
	p, ok := g.c.broker.(Pauser)
	now := time.Now()
	soon := long > wait && now.Add(2*wait).After(g.pausedUntil) // it ends, and nobody knows why it should
	if !ok || ctx.Err() != nil || !soon && !now.Add(wait).After(g.pausedUntil.Add(tolerance)) {
		return
	}
	g.pausedUntil = now.Add(long)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := p.Pause(ctx, g.pausedUntil); err != nil && ctx.Err() == nil {
		g.pausedUntil = time.Time{} // what was fetched ahead stays there, until the next look
	}
}

// tolerance is by how much a pause may end before the time that the Pauser got.
const tolerance = 250 * time.Millisecond

// wait is for a time, or less: until a message has ended, which may have changed
// the breaker's mind.
func (g *gate) wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-g.c.ended:
	case <-ctx.Done():
	}
}
