package grid

import (
	"context"
	"time"

	"github.com/lullgo/lull/lab/sim"
)

// Recovered is how a policy came out of an outage.
type Recovered struct {
	OK   bool
	Time time.Duration // if OK
}

// Fly flies c through a cell to the end.
func Fly(ctx context.Context, c sim.Contender, cell Cell, seed uint64) (sim.Result, error) {
	return sim.Run(ctx, cell.Scenario(After), c, sim.Options{Seed: seed})
}

// Settled is how a run came out of its outage.
func Settled(r *sim.Result) Recovered { return Recovered{r.Recovery.Recovered, r.Recovery.Time} }

// enough is how long things must have been normal in a flight that only measures when
// they were.
const enough = 12 * time.Second

// Recovery is how long c takes to recover, watched for no longer than After; and no
// longer than is needed to see it recover by the given time.
func Recovery(ctx context.Context, c sim.Contender, cell Cell, by time.Duration, seed uint64) (Recovered, error) {
	s := cell.Scenario(min(After, by+enough))
	r, err := sim.Run(ctx, s, c, sim.Options{Seed: seed, StopAfterRecovery: enough})
	if err == nil && !r.Recovery.Recovered && r.End < s.Horizon {
		// It ended in a dip after it had been well.
		r, err = sim.Run(ctx, s, c, sim.Options{Seed: seed})
	}
	return Settled(&r), err
}

// Success is a share of calls that succeeded.
type Success struct{ Good, Calls int64 }

// Add puts the calls of another run to it.
func (s Success) Add(t Success) Success { return Success{s.Good + t.Good, s.Calls + t.Calls} }

// Share is the share, 0 if there were no calls.
func (s Success) Share() float64 {
	if s.Calls == 0 {
		return 0
	}
	return float64(s.Good) / float64(s.Calls)
}

// InPeace is how many of the calls of c succeed in peace.
func InPeace(ctx context.Context, c sim.Contender, p Peace, seed uint64) (Success, error) {
	r, err := sim.Run(ctx, p.Scenario(), c, sim.Options{Seed: seed})
	var ended int64
	for _, n := range r.Totals.Reasons {
		ended += n
	}
	return Success{r.Totals.Succeeded, ended}, err
}
