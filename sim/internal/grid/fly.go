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

// Settled is how long it took until of the calls of any five seconds from then on
// 95 % of the normal share succeeded. It is the strict measure: sim.Recovery is
// content with the first such five seconds if the run also ends well.
func Settled(r *sim.Result) Recovered {
	const (
		share  = 0.95
		window = 5
		unsure = 15 // at the end of a run: calls that may not have ended
	)
	step := r.Series.Step
	first := int((r.Recovery.From + step - 1) / step)
	settled := first
	last := len(r.Series.Calls) - unsure
	for i := first; i+window <= last; i++ {
		var calls, succeeded float64
		for k := i; k < i+window; k++ {
			calls += r.Series.Calls[k]
			succeeded += r.Series.Calls[k] * r.Series.Good[k]
		}
		if succeeded < share*r.Recovery.Normal*calls {
			settled = i + 1
		}
	}
	if settled+window > last {
		return Recovered{}
	}
	return Recovered{true, max(time.Duration(settled)*step-r.Recovery.From, 0)}
}

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
	return Recovered{r.Recovery.Recovered, r.Recovery.Time}, err
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
