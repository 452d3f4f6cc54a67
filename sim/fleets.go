package sim

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/sim/internal/latency"
)

// A FleetResult is what became of the calls of one fleet.
type FleetResult struct {
	Name string
	// Totals are those that belong to a fleet: Calls, Succeeded, Refused, Unfinished, Reasons,
	// Attempts and Retries (those of the fleet itself, of whichever service), Disconnects, and
	// Amplification.
	Totals   Totals
	Recovery Recovery
	Latency  Latency
}

// A fleetTally counts the calls of one fleet.
type fleetTally struct {
	name    string
	t       Totals
	reasons [reasons]int64
	bins    []bin
	latency latency.Histogram
}

// tallyOf returns a fleetTally for a fleet, if there are several: a single one has the totals.
func (r *recorder) tallyOf(f *Fleet) *fleetTally {
	if len(r.s.Fleets) < 2 {
		return nil
	}
	t := &fleetTally{name: f.Name, bins: make([]bin, len(r.bins))}
	r.fleets = append(r.fleets, t)
	return t
}

func (t *fleetTally) begin(r *recorder, now time.Duration) {
	t.bins[r.inBin.at(now)].calls++
	t.t.Calls += r.afterWarmup(now)
}

func (t *fleetTally) attempt(r *recorder, now time.Duration, n int) {
	t.t.Attempts += r.afterWarmup(now)
	if n > 1 {
		t.t.Retries += r.afterWarmup(now)
	}
}

func (t *fleetTally) end(r *recorder, now, began time.Duration, why lull.Reason, attempts int) {
	b := &t.bins[r.beganBin.at(began)]
	b.ended++
	if why == engine.Success {
		b.succeeded++
	}
	if began < r.warm {
		return
	}
	t.reasons[why]++
	if why == engine.Success {
		t.t.Succeeded++
		t.latency.Record(now - began)
	}
	if attempts == 0 {
		t.t.Refused++
	}
}

// result is that of the fleet, in a run that ended at the given time.
func (t *fleetTally) result(r *recorder, end time.Duration) FleetResult {
	f := FleetResult{Name: t.name, Totals: t.t, Latency: latencyOf(&t.latency)}
	f.Totals.ends(&t.reasons)
	alone := *r // what the fleet's recovery is judged by
	alone.bins = t.bins
	f.Recovery = alone.recovery(end)
	return f
}

// ends fills in what follows from why calls ended.
func (t *Totals) ends(why *[reasons]int64) {
	t.Unfinished = t.Calls
	t.Reasons = map[string]int64{}
	for i, n := range why {
		t.Unfinished -= n
		if n > 0 {
			t.Reasons[lull.Reason(i).String()] = n
		}
	}
	if t.Calls > 0 {
		t.Amplification = float64(t.Attempts) / float64(t.Calls)
	}
}

// OfFleet is the summary of one fleet alone, by its place in the scenario; with one fleet it is
// that of everything.
func (s Summary) OfFleet(i int) Summary {
	var alone []Result
	for _, r := range s.Results {
		if i < len(r.Fleets) {
			f := r.Fleets[i]
			r = Result{Contender: r.Contender, Seed: r.Seed, Interrupted: r.Interrupted, End: r.End, Totals: f.Totals, Recovery: f.Recovery, Latency: f.Latency}
		}
		alone = append(alone, r)
	}
	return Summarize(s.Contender, alone)
}

// left records that a user who began to call at the given time has what they wanted, or has given up.
func (r *recorder) left(now, began time.Duration) {
	if began >= r.warm {
		r.t.Oldest = max(r.t.Oldest, now-began)
	}
}

// waiting is how long the oldest of the users has waited who are still there at the end: those
// whose calls have not ended, and those who are about to come back.
func (r *recorder) waiting(end time.Duration) time.Duration {
	began := end
	for _, at := range r.users {
		if at >= r.warm {
			began = min(began, at)
		}
	}
	for i, b := range r.bins {
		if len(r.s.Topics) > 0 {
			break // messages are among them
		}
		if at := time.Duration(i) * r.window; b.ended < b.calls && at >= r.warm {
			began = min(began, at)
			break
		}
	}
	return end - began
}
