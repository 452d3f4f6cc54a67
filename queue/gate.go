package queue

import (
	"context"
	"time"
)

// gate allows only probes to be fetched while the circuit breaker is open or half-open.
type gate struct {
	c           *Consumer
	paused      bool
	pausedUntil time.Time // until when a Pauser is paused
}

// awaitFetch waits until messages may be fetched, and returns the largest number. It returns zero when ctx ends.
func (g *gate) awaitFetch(ctx context.Context) (most int, probe bool) {
	c := g.c
	for ctx.Err() == nil {
		c.line.next(g.stopFetchingAhead)
		batch := c.line.fetch(c.config.Batch)
		if batch == 0 { // until a message has ended
			g.wait(ctx, turnCheck)
			continue
		}
		f := c.dependency.State().Fetch(c.dependency.Now(), batch, c.probing.Load() > 0 || c.held.Load() > 0)
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

// turnCheck is the interval at which turns are checked, besides at the end of each message.
const turnCheck = 250 * time.Millisecond

// stopFetchingAhead pauses the broker for a second. A message that was fetched ahead would count as crashed if the message
// that begins now ends the process.
func (g *gate) stopFetchingAhead() {
	if p, ok := g.c.broker.(Pauser); ok {
		ctx, cancel := context.WithTimeout(g.c.calls, 5*time.Second)
		defer cancel()
		p.Pause(ctx, time.Now().Add(time.Second))
	}
}

// pause announces a pause of at least wait and, as far as is known, at most long.
func (g *gate) pause(ctx context.Context, wait, long time.Duration) {
	if !g.paused {
		g.paused = true
		g.c.notify(Event{Kind: EventPaused, Reason: "circuit_open", After: wait})
	}
	p, ok := g.c.broker.(Pauser)
	now := time.Now()
	soon := long > wait && now.Add(2*wait).After(g.pausedUntil) // the announced pause ends soon, and the breaker may stay open for longer
	if !ok || ctx.Err() != nil || !soon && !now.Add(wait).After(g.pausedUntil.Add(tolerance)) {
		return
	}
	g.pausedUntil = now.Add(long)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := p.Pause(ctx, g.pausedUntil); err != nil && ctx.Err() == nil {
		g.pausedUntil = time.Time{} // so the next call announces it again
	}
}

// tolerance is how much earlier than announced a pause may end.
const tolerance = 250 * time.Millisecond

// wait blocks for d, or until a message ends: its result may open or close the breaker.
func (g *gate) wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-g.c.ended:
	case <-ctx.Done():
	}
}
