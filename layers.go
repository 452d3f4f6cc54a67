package lull

import (
	"slices"
	"sync"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/attempt"
)

// layersAbove has the layers above a dependency that its observers already know to retry, too.
type layersAbove struct {
	mu    sync.Mutex
	names []string // maxLayers at most
}

const maxLayers = 16

// note reports whether the layer is new, and remembers it.
func (l *layersAbove) note(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.names) == maxLayers || slices.Contains(l.names, name) {
		return false
	}
	l.names = append(l.names, name)
	return true
}

// above returns the layer that makes this call because an earlier one failed, or nil: a call of
// lull in whose second or a later attempt this is made, or a layer that the driver has found.
func (r *run) above() *event.Layer {
	if a := attempt.From(r.ctx); a != nil && a.Number > 1 && !a.Hedge() && a.Err() == nil {
		return &event.Layer{Name: *a.Dependency, Off: onceOf(*a.Dependency)}
	}
	return attempt.Above(r.ctx)
}

func onceOf(dependency string) string {
	return "Policy.Attempts: 1 of " + dependency + " (lull.Once for one call)"
}

// repeats reports whether the call was repeated after a failure, or would have been but for what
// holds retries back.
func (r *run) repeats(why Reason) bool {
	switch why {
	case engine.BudgetExhausted, engine.RetriedAbove, engine.TooManyWaiting:
		return true
	case engine.CircuitOpen:
		return r.call.Attempts() > 0
	}
	return r.earlier != nil
}

// observeLayers reports to the observers, once for each pair, that another layer repeats this
// call, too.
func (r *run) observeLayers(op *operation, now time.Duration, why Reason) {
	if r.d.wiring.observer == nil || !r.repeats(why) {
		return
	}
	above := r.above()
	if above == nil || !r.d.clockState().layers.note(above.Name) {
		return
	}
	e := r.event(op, event.RetriesInLayers, now, Verdict{})
	e.Err = &event.Layers{Above: *above, Below: event.Layer{Name: r.d.name, Off: onceOf(r.d.name)}}
	r.observe(e)
}
