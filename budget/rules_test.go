package budget

import (
	"cmp"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

// mustRatio returns a Ratio of c, over ten seconds if c has no window.
func mustRatio(t testing.TB, c Config) *Ratio {
	t.Helper()
	if c.Window == 0 {
		c.Window = 10 * time.Second
	}
	must.Succeed(c.Validate())
	return newRatio(c)
}

// Rule 1 for the default: attempts ≤ (1 + ratio) × calls + stock, at any time, for
// each of any number of processes that share 1,000 calls/s, with any number of
// calls that wait for their retries at once (backoff changes nothing but that), in
// peace, in an outage and after it. Earned by successes, an outage has no more
// retries than the stock and, in an Account, a tenth of the half minute before it.
func TestRule01AttemptsKeepToTheRatioAndTheStock(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: statistics on one goroutine")
	}
	type process struct {
		budget           Budget
		calls, attempts  int
		earned, inOutage float64 // retries earned for the outage, and made in it
	}
	const calls, peace, outage = 70_000, 30_000, 20_000
	for _, config := range []Config{{}, {Stock: 1}, {Earn: Arrivals}, {Ratio: 0.2, Stock: 3, Earn: Arrivals}, {Ratio: 1, Stock: 50}} {
		ratio, stock := cmp.Or(config.Ratio, DefaultRatio), cmp.Or(config.Stock, DefaultStock)
		for _, kind := range []struct {
			open func() Budget
			back int // calls whose earnings can be left when the outage begins
		}{
			{func() Budget { return mustAccount(t, config) }, 30_000},
			{func() Budget { return must.Have(NewBucket(config)) }, 0},
		} {
			for _, processes := range []int{1, 100, 1000} {
				for _, waiting := range []int{1, 50} {
					r := rand.New(rand.NewPCG(uint64(processes), uint64(waiting)))
					fleet := make([]process, processes)
					for i := range fleet {
						fleet[i].budget = kind.open()
					}
					type call struct {
						p        *process
						attempts int
						failed   bool
					}
					var inFlight []call
					for n := range calls {
						now := time.Duration(n) * time.Millisecond
						down := n >= peace && n < peace+outage
						works := func() bool { return !down && r.IntN(10) != 0 }
						earns := func(p *process) {
							if n >= peace-kind.back && n < peace+outage {
								p.earned += ratio
							}
						}
						p := &fleet[r.IntN(processes)]
						p.calls++
						p.attempts++
						p.budget.Start(now)
						if config.Earn == Arrivals {
							earns(p)
						}
						inFlight = append(inFlight, call{p, 1, !works()})
						for len(inFlight) >= waiting || n == calls-1 && len(inFlight) > 0 {
							i := r.IntN(len(inFlight))
							c := &inFlight[i]
							more := false
							if c.failed {
								c.p.budget.Failed(now)
								if c.attempts < 4 {
									more = c.p.budget.Withdraw(now, Transient, never).OK
								}
							}
							if more {
								c.attempts++
								c.p.attempts++
								if limit := (1+ratio)*float64(c.p.calls) + stock; float64(c.p.attempts) > limit+1e-6 {
									t.Fatalf("%T %+v, %d processes: %d attempts for %d calls, want at most %.1f",
										p.budget, config, processes, c.p.attempts, c.p.calls, limit)
								}
								if down {
									c.p.inOutage++
								}
								c.failed = !works()
								continue
							}
							c.p.budget.Done(now, !c.failed, 0, 0)
							if !c.failed && config.Earn == Successes {
								earns(c.p)
							}
							inFlight[i] = inFlight[len(inFlight)-1]
							inFlight = inFlight[:len(inFlight)-1]
						}
					}
					var all process
					for _, p := range fleet {
						if limit := stock + p.earned; p.inOutage > limit+1e-6 {
							t.Fatalf("%T %+v, %d processes: %v retries in the outage, want at most %.1f", p.budget, config, processes, p.inOutage, limit)
						}
						all.calls, all.attempts = all.calls+p.calls, all.attempts+p.attempts
						all.inOutage += p.inOutage
					}
					t.Logf("%T %+v, %4d processes, %2d calls at once: %.4f×; %v retries of the %d calls in the outage",
						fleet[0].budget, config, processes, waiting, float64(all.attempts)/float64(all.calls), all.inOutage, outage)
					if all.inOutage == 0 && processes > 1 { // one process may have spent it in peace
						t.Errorf("%+v, %d processes: the stock was not spent", config, processes)
					}
				}
			}
		}
	}
}

// The figures of docs/mechanisms.md for calls whose attempts fail at random, three
// attempts a call: the share that succeeds, by kind of budget.
func TestWhatABudgetBuys(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: a statistic of one goroutine")
	}
	const calls, attempts = 400_000, 3
	quiet, busy := 12*time.Second, time.Second/800
	for _, c := range []struct {
		name   string
		budget func() Budget
		every  time.Duration
		// Percent, where 1, 5 and 10 % fail.
		succeeded [3]float64
	}{
		{"Ratio, quiet", func() Budget { return mustRatio(t, Config{}) }, quiet, [3]float64{99, 95, 90}},
		{"Ratio, busy", func() Budget { return mustRatio(t, Config{}) }, busy, [3]float64{99.9999, 99.987, 98.9}},
		{"Bucket of 1", func() Budget { return must.Have(NewBucket(Config{Stock: 1})) }, busy, [3]float64{99.91, 98.2, 94.5}},
		{"Bucket of 2", func() Budget { return must.Have(NewBucket(Config{Stock: 2})) }, busy, [3]float64{99.995, 99.4, 96.6}},
		{"Bucket of 10", func() Budget { return must.Have(NewBucket(Config{Stock: 10})) }, busy, [3]float64{99.9999, 99.987, 98.7}},
		{"Bucket of 20", func() Budget { return must.Have(NewBucket(Config{})) }, busy, [3]float64{99.9999, 99.987, 98.9}},
		{"Account, quiet", func() Budget { return mustAccount(t, Config{}) }, quiet, [3]float64{99.9999, 99.987, 98.9}},
		{"Account, busy", func() Budget { return mustAccount(t, Config{}) }, busy, [3]float64{99.9999, 99.987, 98.9}},
		{"unlimited", func() Budget { return must.Have(NewBucket(Config{Unlimited: true})) }, busy, [3]float64{99.9999, 99.987, 99.9}},
	} {
		for i, failing := range []float64{0.01, 0.05, 0.10} {
			r := rand.New(rand.NewPCG(17, uint64(i)))
			b := c.budget()
			succeeded := 0
			for n := range calls {
				now := time.Duration(n) * c.every
				b.Start(now)
				ok := r.Float64() >= failing
				for n := 1; !ok && n < attempts && b.Withdraw(now, Transient, r.Uint64).OK; n++ {
					ok = r.Float64() >= failing
				}
				b.Done(now, ok, 0, 0)
				if ok {
					succeeded++
				}
			}
			got, want := 100*float64(succeeded)/calls, c.succeeded[i]
			t.Logf("%2.0f %% fail, %-14s: %.4f %% succeed", 100*failing, c.name, got)
			if math.Abs(got-want) > max(0.001, (100-want)/8) {
				t.Errorf("%.0f %% fail, %s: %.4f %% succeed, want %v", 100*failing, c.name, got, want)
			}
		}
	}
}

// Rule 1 for a window: in a total outage attempts ≤ (1 + ratio) × calls, at any
// backoff (here none at all), for any number of processes that share the same
// traffic.
func TestRule01TotalOutageKeepsToTheRatio(t *testing.T) {
	const (
		rate         = 1000 // calls per second over all processes
		healthy, out = 20 * time.Second, 60 * time.Second
		ratio        = 0.1
	)
	for _, processes := range []int{1, 100, 1000} {
		r := rand.New(rand.NewPCG(1, uint64(processes)))
		fleet := make([]*Ratio, processes)
		for i := range fleet {
			fleet[i] = mustRatio(t, Config{Ratio: ratio})
		}
		var calls, failing, attempts, inOutage int
		for now := time.Duration(0); now < healthy+out; now += time.Second / rate {
			b := fleet[r.IntN(processes)]
			calls++
			attempts++
			b.Start(now)
			if now < healthy {
				b.Done(now, true, 0, 0)
				continue
			}
			failing++
			var last Receipt
			for range 3 { // as many as would be made without a budget
				b.Failed(now)
				g := b.Withdraw(now, Transient, r.Uint64)
				if !g.OK {
					break
				}
				attempts, inOutage, last = attempts+1, inOutage+1, g.Receipt
				b.Release(now, g.Receipt)
			}
			b.Done(now, false, last, 0)
		}
		t.Logf("%4d processes: %d calls, %d attempts (%.4f×); in the outage %d calls, %d retries (%.4f)",
			processes, calls, attempts, float64(attempts)/float64(calls),
			failing, inOutage, float64(inOutage)/float64(failing))
		if limit := (1 + ratio) * float64(calls); float64(attempts) > limit {
			t.Errorf("%d processes: %d attempts for %d calls, want at most %.0f", processes, attempts, calls, limit)
		}
		// Only what the last window before the outage earned can be spent in it.
		if limit := ratio * rate * 10; float64(inOutage) > limit+3*math.Sqrt(limit) {
			t.Errorf("%d processes: %d retries in the outage, want about %.0f at most", processes, inOutage, limit)
		}
	}
}

// Rule 1 at its hardest: processes that make one call in their life, which
// fails. Nothing was earned, nothing is shared, and the ratio must still hold
// in expectation, without denying every retry.
func TestRule01ProcessesOfOneCallKeepToTheRatio(t *testing.T) {
	const processes = 1000
	seeds := seed.Runs(5)
	for _, ratio := range []float64{0.01, 0.1, 0.5, 1} {
		granted := 0
		for seed := range uint64(seeds) {
			r := rand.New(rand.NewPCG(seed, 7))
			for range processes {
				b := mustRatio(t, Config{Ratio: ratio})
				at := time.Duration(r.Int64N(int64(time.Hour)))
				b.Start(at)
				for range 3 {
					b.Failed(at)
					if !b.Withdraw(at, Transient, r.Uint64).OK {
						break
					}
					granted++
				}
				b.Done(at, false, 0, 0)
			}
		}
		n := float64(processes * seeds)
		mean, sd := float64(granted)/n, math.Sqrt(ratio*(1-ratio)/n)
		t.Logf("ratio %v: %.5f retries a call", ratio, mean)
		if math.Abs(mean-ratio) > 4*sd+1e-9 {
			t.Errorf("ratio %v: %.5f retries a call, want %v ± %.5f", ratio, mean, ratio, 4*sd)
		}
	}
}

// Rule 11: an idle budget is judged by what is recent. What has left the window
// counts for nothing when it is next looked at, though nobody wrote meanwhile.
func TestRule11AnIdleBudgetHasForgotten(t *testing.T) {
	for _, window := range []time.Duration{100 * time.Millisecond, 10 * time.Second, time.Hour} {
		// In slots. The counter knows the age of a slot on a circle of 2^23.
		for _, idle := range []time.Duration{10, 11, 16, 1000, 1<<22 - 1, 1<<22 + 3, 1 << 23, 3<<22 + 1} {
			later := window / 10 * idle
			if later/idle != window/10 {
				continue // in more years than a Duration holds
			}
			b := mustRatio(t, Config{Window: window})
			for range 100 {
				b.Done(0, true, 0, 0)
			}
			check.Equal(t, b.Balance(window*9/10), 10.1, "window %v: balance while it lasts", window)
			check.Equal(t, b.Balance(later), 0, "window %v, idle for %v: balance", window, later)
			if g := b.Withdraw(later, Transient, soonest); g.OK {
				t.Errorf("window %v, idle for %v: a retry was granted from what had expired", window, later)
			}
			for range 10 {
				b.Done(later, true, 0, 0)
			}
			check.Equal(t, b.Balance(later), 1, "window %v, idle for %v, then 10 successes: balance", window, later)
			if !b.Withdraw(later, Transient, soonest).OK || b.Balance(later) != 0 {
				t.Errorf("window %v, idle for %v: a withdrawal was not recorded", window, later)
			}
		}
	}
}

func soonest() uint64 { return 1<<64 - 1 } // the first unit is marked
func latest() uint64  { return 0 }         // the last unit of the first token is
func never() uint64   { panic("no draw was due") }

func earnMany(b Budget, now time.Duration, n int) {
	for range n {
		b.Start(now)
		b.Done(now, true, 0, 0)
	}
}
