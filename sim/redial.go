package sim

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/sim/internal/draw"
)

var redialPlan, _ = engine.NewRedialPlan(engine.RedialPolicy{}) // the zero policy is valid

// newRedials returns what a fleet's processes know of the connection that each of them keeps
// (Fleet.Redial); nil for a fleet that makes calls. The arrivals of such a fleet are the moments at
// which a connection that has lasted is lost. A call begins there, has a dial for each attempt, and
// ends when the process is connected again. Package engine decides when to dial.
func newRedials(f *Fleet) []engine.Redial {
	if !f.Redial {
		return nil
	}
	each := make([]engine.Redial, max(f.Processes, 1))
	for i := range each {
		each[i] = redialPlan.Redial()
		each[i].Connected(-redialPlan.Policy().Lasting)
	}
	return each
}

// lose begins a call of process p: its connection has just been lost, or it is fresh and has never
// had one.
func (w *world) lose(i uint32, f *flight, o *origin, p uint32, fresh bool) {
	f.process, f.reloads, f.began = p, 0, w.now
	w.callBegins(o)
	w.seedFor(f, true)
	var wait time.Duration
	if fresh {
		wait = o.redials[p].Start(w.now, w.random)
	} else {
		wait = o.redials[p].Lost(w.now, lull.Verdict{}, 0, w.random).Wait
	}
	w.at(saturating.Add(w.now, wait), again, f.gen, i)
}

// redial makes one attempt to connect. The dependency admits it, bounds it in time and learns from
// it, as from a call that is made once.
func (w *world) redial(i uint32, f *flight, o *origin) {
	f.key = draw.Mix(f.key, 1<<34) // each has its own randomness
	spec := o.spec
	spec.Once = true
	d := o.dependency(o.home(f.process))
	if no := d.StartIn(&f.call, w.now, &spec); no != engine.Success {
		var v lull.Verdict
		if no == engine.CircuitOpen {
			v.After = max(d.Breaker().RetryAt(w.now)-w.now, 0)
		}
		w.redialFailed(i, f, o, v)
		return
	}
	w.attempt(i, f)
}

// redialFailed has the process dial again, after an attempt that ended with v.
func (w *world) redialFailed(i uint32, f *flight, o *origin, v lull.Verdict) {
	if o.strayed(f) {
		w.retire(i, f, o, true)
		return
	}
	f.gen++
	if f.reloads < 255 {
		f.reloads++
	}
	w.seedFor(f, false)
	step := o.redials[f.process].Failed(w.now, v, w.random)
	if step.Done { // it stays without a connection
		w.callEnds(o, f.began, step.Reason, int(f.reloads))
		w.rec.left(w.now, f.began)
		if o.links != nil {
			o.links.each[f.process].dials = false
		}
		w.flights.give(i)
		return
	}
	w.at(saturating.Add(w.now, step.Wait), again, f.gen, i)
}
