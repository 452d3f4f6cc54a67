package sim

import (
	"slices"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/outlier"
)

// A race is a call in flight whose attempts may run beside one another. Each of
// them has a flight of its own, for its events; that of the call waits meanwhile for
// when another is to be asked for.
type race struct {
	call   engine.HedgedCall
	racers []*racer
	since  time.Duration // while attempts are in flight: when the first of them began
}

type racer struct {
	engine.HedgedAttempt
	flight   uint32
	inFlight bool
}

// startRace sends the first attempt of a call that may be hedged.
func (w *world) startRace(i uint32, f *flight) {
	if f.slot == ofMessage {
		w.runHandler(i, f)
		return
	}
	c := &race{call: engine.HedgedCall{Call: &f.call}}
	w.races[i] = c
	r := &racer{}
	w.scheduleWake(i, f, c.call.First(w.now, &r.HedgedAttempt))
	w.sendRacer(i, f, c, r, false)
}

// sendRacer sends r, the latest attempt of the call f. It comes last in whatever is
// done about a call: the answer may come at once.
func (w *world) sendRacer(i uint32, f *flight, c *race, r *racer, beside bool) {
	if c.call.InFlight() == 1 {
		c.since = w.now
	}
	c.racers = append(c.racers, r)
	k, g := w.flights.take()
	g.origin, g.key, g.operation, g.process = f.origin, f.key, f.operation, f.process
	g.parent, g.slot = i, uint8(len(c.racers))
	g.retriesAbove, g.beside = f.retriesAbove, beside
	r.flight, r.inFlight = k, true
	n := f.call.Attempts()
	w.sendNth(k, g, n, w.timeoutAt(f))
}

// scheduleWake has another attempt asked for after the wait, and not when it was to be
// asked for before.
func (w *world) scheduleWake(i uint32, f *flight, wait time.Duration) {
	f.gen++
	if wait != never {
		w.at(w.now+wait, eventWake, f.gen, i)
	}
}

func (w *world) askForHedge(i uint32, f *flight, c *race) {
	w.seedFor(f, true)
	if w.orphaned(f) {
		w.endRace(i, f, c, c.call.Stop(w.now, engine.Canceled, w.random))
		return
	}
	r := &racer{}
	beside := slices.ContainsFunc(c.racers, func(r *racer) bool { return r.inFlight })
	step := c.call.Hedge(w.now, &r.HedgedAttempt, w.random)
	if step.Done {
		w.endRace(i, f, c, step)
		return
	}
	w.scheduleWake(i, f, step.Wait)
	if step.Full {
		return
	}
	if beside {
		w.rec.count(w.now, &w.rec.totals.Hedges)
	}
	w.sendRacer(i, f, c, r, beside)
}

// racerEnded is the end of one attempt, g, of a call that may be hedged.
func (w *world) racerEnded(g *flight, verdict int) {
	i := g.parent
	f := w.flights.at(i)
	c := w.races[i]
	r := c.racers[g.slot-1]
	w.seedFor(f, false)
	w.asked |= uint64(g.slot) << 4 // several may end after as many attempts
	w.endRacer(r, g)
	o := w.origins[f.origin]
	if c.call.InFlight() == 1 {
		w.rec.attemptHeld(o, f.began, c.since, w.now)
	}
	step := c.call.Ended(w.now, &r.HedgedAttempt, o.verdicts[verdict], w.random)
	if step.Done {
		w.endRace(i, f, c, step)
		return
	}
	w.scheduleWake(i, f, step.Wait)
}

// endRacer gives back the flight of an attempt that is no longer in flight.
func (w *world) endRacer(r *racer, g *flight) {
	r.inFlight = false
	g.gen++
	g.slot = 0
	w.flights.release(r.flight)
}

// endRace ends a call. Attempts that are still in flight have lost. The work on them is wasted, unless the service learns of
// that in time.
func (w *world) endRace(i uint32, f *flight, c *race, step engine.Step) {
	o := w.origins[f.origin]
	if c.call.InFlight() > 0 {
		w.rec.attemptHeld(o, f.began, c.since, w.now)
	}
	for _, r := range c.racers {
		if !r.inFlight {
			continue
		}
		if w.watch != nil {
			w.attemptSeen(r.flight, verdictOK, "canceled")
		}
		g := w.flights.at(r.flight)
		w.endRacer(r, g)
		c.call.Release(w.now, &r.HedgedAttempt)
		w.rec.count(w.now, &w.rec.totals.Lost)
		switch {
		case o.target.def.CancelWork:
			w.cancelAttempt(g)
		case o.target.plain && !o.pooled && !o.chooses:
			w.rec.wasted(w.now)
		}
		if o.pooled {
			w.abandonConnection(r.flight, g)
		}
		if o.chooses {
			w.reportOutcome(r.flight, outlier.Neutral)
		}
	}
	delete(w.races, i)
	w.endCall(i, f, step.Reason)
}
