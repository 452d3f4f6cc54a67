package sim

import (
	"cmp"
	"context"
	"runtime"
	"sync"

	"github.com/lullgo/lull/lab/internal/interval"
)

// CompareOptions are those of Compare.
type CompareOptions struct {
	Seed    uint64 // of the first; the others follow
	Seeds   int    // zero: 1
	Workers int    // runs side by side; zero: GOMAXPROCS
	Named   []Contender
}

// Compare flies several contenders through a scenario, each with several seeds.
// All of them meet the same arrivals. The result does not depend on the number of
// workers. If ctx ends, the results so far are returned with its error.
func Compare(ctx context.Context, s Scenario, cs []Contender, o CompareOptions) ([]Summary, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	seeds := max(o.Seeds, 1)
	results := make([]Result, len(cs)*seeds)
	errs := make([]error, len(results))
	Each(len(results), o.Workers, func(i int) {
		results[i], errs[i] = Run(ctx, s, cs[i/seeds], Options{Seed: o.Seed + uint64(i%seeds), Named: o.Named})
	})
	var all []Summary
	for i, c := range cs {
		all = append(all, Summarize(c, results[i*seeds:(i+1)*seeds]))
	}
	return all, cmp.Or(errs...)
}

// Each does work for 0 to n-1 on that many goroutines (zero: GOMAXPROCS).
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

// A Summary summarizes the results of one contender with several seeds.
type Summary struct {
	Contender Contender
	Results   []Result // one for each seed, in their order
	// Of the seeds, with the half width of a 95 % confidence interval (Student's
	// t; zero for a single seed). Wasted is a share of the attempts, Success and Refused are
	// shares of the calls. Held is the mean number of calls in progress.
	Success, Amplification, WorstTenSeconds, PeakOverNormal, Held, P99, Wasted, Refused, Recovery Estimate
	// Recovered is how many of the seeds recovered; Recovery.Mean is over those.
	Recovered int
}

// An Estimate is a mean and the half width of its 95 % confidence interval.
type Estimate struct{ Mean, Half float64 }

// Summarize returns the summary of the results of one contender, one for each seed, in their order.
func Summarize(c Contender, rs []Result) Summary {
	s := Summary{Contender: c, Results: rs}
	estimate := func(of func(*Result) (float64, bool)) Estimate {
		var xs []float64
		for i := range rs {
			if x, ok := of(&rs[i]); ok {
				xs = append(xs, x)
			}
		}
		mean, half := interval.Mean(xs)
		return Estimate{mean, half}
	}
	s.Success = estimate(func(r *Result) (float64, bool) { return r.Totals.SuccessRate(), r.Totals.Calls > 0 })
	s.Amplification = estimate(func(r *Result) (float64, bool) { return r.Totals.Amplification, r.Totals.Calls > 0 })
	s.WorstTenSeconds = estimate(func(r *Result) (float64, bool) { return r.Totals.WorstTenSeconds, r.Totals.Calls > 0 })
	s.Held = estimate(func(r *Result) (float64, bool) { return r.HeldRate(), r.Totals.Calls > 0 })
	s.PeakOverNormal = estimate(func(r *Result) (float64, bool) { return r.Totals.PeakOverNormal, r.Totals.NormalRate > 0 })
	s.P99 = estimate(func(r *Result) (float64, bool) { return r.Latency.P99.Seconds(), r.Latency.Count > 0 })
	s.Wasted = estimate(func(r *Result) (float64, bool) {
		return float64(r.Totals.Wasted) / float64(r.Totals.Attempts), r.Totals.Attempts > 0
	})
	s.Refused = estimate(func(r *Result) (float64, bool) {
		return float64(r.Totals.Refused) / float64(r.Totals.Calls), r.Totals.Calls > 0
	})
	s.Recovery = estimate(func(r *Result) (float64, bool) { return r.Recovery.Time.Seconds(), r.Recovery.Recovered })
	for i := range rs {
		if rs[i].Recovery.Recovered {
			s.Recovered++
		}
	}
	return s
}

// OfFleet is the summary of one fleet alone, by its place in the scenario; with one fleet it is
// that of everything.
func (s Summary) OfFleet(i int) Summary {
	var alone []Result
	for _, r := range s.Results {
		if i < len(r.Fleets) {
			f := r.Fleets[i]
			r = Result{Contender: r.Contender, Seed: r.Seed, Interrupted: r.Interrupted, WarmupEnd: r.WarmupEnd, End: r.End, Totals: f.Totals, Recovery: f.Recovery, Latency: f.Latency}
		}
		alone = append(alone, r)
	}
	return Summarize(s.Contender, alone)
}
