package sim

import (
	"context"
	"errors"
	"time"
)

// Options of a run.
type Options struct {
	// Seed of all that is left to chance. The same seed gives the same result, on
	// any machine.
	Seed uint64
	// Named are the policies that fleets and hops may name beside the contender
	// itself. "none" (a single attempt, no breaker) needs not be among them.
	Named []Contender
	// StopAfterRecovery ends a run once things have been normal for so long. Zero:
	// a run lasts to the Horizon.
	StopAfterRecovery time.Duration
	// Message, if not nil, is called with each message that is handled or dead, in the order
	// of time, on the goroutine of Run.
	Message func(MessageEnd)
	// Progress, if not nil, is called from time to time with how far a run has come, on the
	// goroutine of Run.
	Progress func(Progress)
}

// Progress is how far a run has come.
type Progress struct {
	Now, Horizon time.Duration // virtual
	Events       int64
}

// Run flies one contender through a scenario. If ctx ends, what was computed until
// then is returned, marked as Interrupted, with the context's error.
func Run(ctx context.Context, s Scenario, c Contender, o Options) (Result, error) {
	if err := s.Validate(); err != nil {
		return Result{}, err
	}
	w, err := newWorld(&s, c, o)
	if err != nil {
		return Result{}, err
	}
	w.rec.stop = o.StopAfterRecovery
	err = w.run(ctx, o)
	r := w.rec.result(w.now)
	for _, t := range w.topics {
		r.Topics = append(r.Topics, t.tally.result(w.now))
	}
	r.Contender, r.Seed, r.Totals.Events = c.Name, o.Seed, w.count
	if errors.Is(err, errEnough) {
		return r, nil
	}
	r.Interrupted = err != nil
	return r, err
}
