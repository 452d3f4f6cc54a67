// Package study_test holds what the study needs that no scenario file can say: a
// jitter that the engine does not have, and code and sums that the articles
// print. The figures of lab/study/README.md that come from here name the test.
package study_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

const ms = time.Millisecond

// What a schedule of base 100 ms waits at most, and what the example with
// tenacity can take: four attempts of 150 ms, base 100 ms, cap 2 s.
func TestSums(t *testing.T) {
	s := backoff.Schedule{Jitter: backoff.None, Base: 100 * ms, Cap: 2 * time.Second}
	at := time.Duration(0)
	for retry := 1; retry <= 5; retry++ {
		at += s.Max(retry)
		t.Logf("retry %d waits %v at most, and starts at %v without jitter", retry, s.Max(retry), at)
	}
	check.Equal(t, s.Max(5), 1600*ms, "the fifth retry waits")
	p := lull.Policy{Attempts: 4, AttemptTimeout: 150 * ms, Backoff: s, RateLimitedBase: 1, HintLimit: 1}
	t.Logf("four attempts of 150 ms take %v at most", p.WorstCase().Round(ms))
	check.Equal(t, p.WorstCase().Round(ms), 1300*ms, "the worst case")
	n, w := 1000.0, 1024.0
	shared := n * (1 - math.Pow(1-1/w, n-1))
	t.Logf("1000 clients in 1024 slots: %.1f pairs collide, %.0f clients share their slot", n*(n-1)/2/w, shared)
}

// Clients that pick a slot each; whoever is alone in it is done, the others pick
// again from a window twice as wide. The first window is one slot: all start at
// once. The window of IEEE 802.3 stops at 1024.
func TestWindowRounds(t *testing.T) {
	for _, kind := range []struct {
		name    string
		largest int
	}{{"without end", 1 << 40}, {"up to 1024 slots", 1024}} {
		for _, n := range []int{10, 100, 1000} {
			const runs = 200
			sum, most := 0, 0
			for seed := range uint64(runs) {
				r := rand.New(rand.NewPCG(seed, 1))
				rounds := 0
				for left, window := n, 1; left > 0; window = min(2*window, kind.largest) {
					slots := map[int]int{}
					for range left {
						slots[r.IntN(window)]++
					}
					for _, clients := range slots {
						if clients == 1 {
							left--
						}
					}
					rounds++
				}
				sum, most = sum+rounds, max(most, rounds)
			}
			t.Logf("%4d clients, window doubling %s: %.1f rounds on average, %d at most", n, kind.name, float64(sum)/runs, most)
		}
	}
}

// Gaussian jitter around half of the ceiling, for callers that fail together:
// lab/study/together.yaml with base 500 ms. The peak is that of the busiest 50 ms
// after the recovery, over the 500 calls a second that come one by one.
func TestGaussianJitter(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: a statistic of one goroutine")
	}
	ceiling := backoff.Schedule{Jitter: backoff.None, Base: 500 * ms}
	gauss := func(share float64) backoff.Func {
		return func(retry int, _ time.Duration, rnd func() uint64) time.Duration {
			c := float64(ceiling.Ceiling(retry))
			z := rand.New(source(rnd)).NormFloat64()
			return time.Duration(min(max(c/2+z*share*c, 0), c))
		}
	}
	uniform := backoff.Schedule{Base: 500 * ms}.Delay
	for _, m := range []int{194, 1000} {
		var flat float64
		for _, c := range []struct {
			name string
			wait backoff.Func
		}{
			{"none", ceiling.Delay}, {"uniform", uniform},
			{"deviation 1/2", gauss(1. / 2)}, {"deviation 1/4", gauss(1. / 4)}, {"deviation 1/6", gauss(1. / 6)},
			{"deviation 1/10", gauss(1. / 10)}, {"deviation 1/20", gauss(1. / 20)}, {"deviation 1/40", gauss(1. / 40)},
		} {
			peak := peakAfter(t, m, c.wait)
			t.Logf("%4d callers, %-14s: peak %.1f times the normal rate", m, c.name, peak)
			if c.name == "uniform" {
				flat = peak
			}
			if c.name == "deviation 1/4" && peak > 1.4*flat {
				t.Errorf("%d callers: %.1f with a wide Gaussian, %.1f with a uniform jitter", m, peak, flat)
			}
		}
	}
}

// peakAfter is the mean of ten seeds.
func peakAfter(t *testing.T, callers int, wait backoff.Func) float64 {
	s := sim.Scenario{
		Horizon: 15 * time.Second, Step: 50 * ms, Window: 50 * ms,
		Services: []sim.Service{{Name: "api", Faults: []sim.Fault{{Kind: sim.Errors, At: time.Second, For: 200 * ms}}}},
		Fleets: []sim.Fleet{
			{Calls: "api", Arrivals: sim.Arrivals{Kind: sim.Constant, Rate: 500, At: ms}, Policy: "none"},
			{Calls: "api", Processes: callers, Arrivals: sim.Arrivals{Kind: sim.AtOnce, At: time.Second}},
		},
	}
	c := sim.Contender{
		Policy: lull.Policy{
			Attempts: 6, AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout, RateLimitedBase: 1,
			Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
		},
		Options: []lull.Option{lull.WithBackoff(wait)},
	}
	const seeds = 10
	sum := 0.0
	for seed := range uint64(seeds) {
		r := must.Have(sim.Run(context.Background(), s, c, sim.Options{Seed: seed + 1}))
		most := 0.0
		for i := int(1200 * ms / r.Series.Step); i < len(r.Series.First); i++ {
			most = max(most, r.Series.First[i]+r.Series.Retries[i])
		}
		sum += most
	}
	return sum / seeds / 500
}

type source func() uint64

func (s source) Uint64() uint64 { return s() }

// The budget that "Retry budgets, exponential backoff, and full jitter" prints,
// and the one that it describes. The printed one is asked only after a failure,
// and so counts failed attempts where the text has requests. Four attempts, ratio
// 0.2, no budget for the first nine.
func TestBudgetOverFailedAttempts(t *testing.T) {
	for _, errors := range []float64{0.01, 0.05, 0.1, 0.3, 0.5, 1} {
		printed, printedEach := budgetOf(errors, false)
		described, describedEach := budgetOf(errors, true)
		t.Logf("%3.0f %% of attempts fail: as printed %.1f %% of calls succeed with %.3f attempts each, as described %.3f %% with %.3f",
			100*errors, 100*printed, printedEach, 100*described, describedEach)
		if errors == 1 && (math.Abs(printedEach-1.25) > 0.01 || math.Abs(describedEach-1.2) > 0.01) {
			t.Errorf("%.3f and %.3f attempts per call when everything fails, want 1.25 and 1.2", printedEach, describedEach)
		}
	}
}

// budgetOf returns the share of a million calls that succeed, and the attempts per
// call.
func budgetOf(errors float64, countsRequests bool) (success, each float64) {
	const calls = 1_000_000
	r := rand.New(rand.NewPCG(1, 1))
	total, retries, attempts, succeeded := 0, 0, 0, 0
	for range calls {
		if countsRequests {
			total++
		}
		for attempt := range 4 {
			attempts++
			if r.Float64() >= errors {
				succeeded++
				break
			}
			if !countsRequests {
				total++
			}
			if total >= 10 && float64(retries) > 0.2*float64(total) || attempt == 3 {
				break
			}
			retries++
		}
	}
	return float64(succeeded) / calls, float64(attempts) / calls
}

// The budget that "Preventing Retry Storms" prints: it counts from the start of
// the process and forgets nothing. Four attempts, retries below 10 % of attempts.
func TestBudgetOverALifetime(t *testing.T) {
	for _, healthy := range []int{0, 1000, 100_000, 10_000_000} {
		total, retries, sent, calls := healthy, 0, 0, 0
		for denied := false; !denied; {
			calls++
			for attempt := range 4 {
				total++
				sent++
				if attempt == 3 {
					break
				}
				if total >= 100 && float64(retries)/float64(total) >= 0.1 {
					denied = true
					break
				}
				retries++
			}
		}
		t.Logf("after %8d calls that succeeded: %7d attempts for %6d calls before the first retry is denied, %.2f each",
			healthy, sent, calls, float64(sent)/float64(calls))
	}
}
