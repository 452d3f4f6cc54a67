package grid

import (
	"context"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/lullgo/lull/sim"
)

// Recovered is how a policy came out of an outage.
type Recovered struct {
	OK   bool
	Time time.Duration // if OK
}

// Before reports whether r is better than s by more than a Tie.
func (r Recovered) Before(s Recovered) bool {
	return r.OK && (!s.OK || r.Time < s.Time-Tie)
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

// least is the least difference between two shares that is one.
const least = 0.0001

// Above reports whether s is better than t: by more than a hundredth of a point, and
// more than the 95 % interval of the difference.
func (s Success) Above(t Success) bool {
	variance := func(x Success) float64 {
		p := x.Share()
		return p * (1 - p) / float64(max(x.Calls, 1))
	}
	return s.Share()-t.Share() > max(least, 1.96*math.Sqrt(variance(s)+variance(t)))
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

// WorstMinute is the minute of a run in which attempts were highest above the
// given ratio of calls: by how many. A second is the resolution.
func WorstMinute(s *sim.Series, ratio float64) (over float64) {
	const minute = 60
	over = math.Inf(-1)
	var sum float64
	for i := range s.Calls {
		sum += (s.First[i] + s.Retries[i] - ratio*s.Calls[i]) * s.Step.Seconds()
		if i >= minute {
			k := i - minute
			sum -= (s.First[k] + s.Retries[k] - ratio*s.Calls[k]) * s.Step.Seconds()
		}
		if i >= minute-1 {
			over = max(over, sum)
		}
	}
	return over
}

// Each does work for 0 to n-1, side by side on the given number of goroutines
// (zero: GOMAXPROCS).
func Each(n, workers int, work func(i int)) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	next := make(chan int)
	var busy sync.WaitGroup
	for range min(workers, n) {
		busy.Go(func() {
			for i := range next {
				work(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	busy.Wait()
}
