package shipped

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lab/sim"
)

// A ledger is a budget that grants every retry and notes its cause.
type ledger struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (l *ledger) Withdraw(_ time.Duration, c budget.Class, _ func() uint64) budget.Grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen[c.String()] = true
	return budget.Grant{OK: true}
}

func (l *ledger) Start(time.Duration)                           {}
func (l *ledger) Failed(time.Duration)                          {}
func (l *ledger) Release(time.Duration, budget.Receipt)         {}
func (l *ledger) Done(time.Duration, bool, budget.Receipt, int) {}
func (l *ledger) Balance(time.Duration) float64                 { return 1 }

// What a failure is taken for decides what its retry costs, in budgets that charge
// by cause, and whether it is retried at all. The simulator has to take each of
// its failures for what lullhttp takes the same answer for.
func TestFailuresMeanTheSame(t *testing.T) {
	down := func(f sim.Fault) sim.Service {
		f.Kind, f.For = sim.Errors, time.Minute
		return sim.Service{Faults: []sim.Fault{f}}
	}
	short := sim.Distribution{Mean: 150 * ms}
	for _, c := range []struct {
		name    string
		service sim.Service
		fleet   sim.Fleet
		want    string // what retries were paid for
		reason  string // one that calls ended for
	}{
		{"503", down(sim.Fault{}), sim.Fleet{}, "transient", "attempts_exhausted"},
		{"503 with a hint", down(sim.Fault{RetryAfter: 50 * ms}), sim.Fleet{}, "rate_limited", "attempts_exhausted"},
		{"503 that says not to retry", down(sim.Fault{DontRetry: true}), sim.Fleet{}, "", "overloaded"},
		{"503 with a hint that says not to retry", down(sim.Fault{RetryAfter: 50 * ms, DontRetry: true}), sim.Fleet{}, "", "overloaded"},
		{"429", sim.Service{Rate: sim.Rate{PerSecond: 1, Burst: 1}}, sim.Fleet{}, "rate_limited", "attempts_exhausted"},
		{"429 with a hint", sim.Service{Rate: sim.Rate{PerSecond: 1, Burst: 1, RetryAfter: 50 * ms}}, sim.Fleet{}, "rate_limited", "attempts_exhausted"},
		{"queue full", sim.Service{Workers: 1, Queue: sim.Queue{Limit: 1}, Time: short}, sim.Fleet{}, "transient", "attempts_exhausted"},
		{"queue full with a hint", sim.Service{Workers: 1, Queue: sim.Queue{Limit: 1, RetryAfter: 50 * ms}, Time: short}, sim.Fleet{}, "rate_limited", "attempts_exhausted"},
		{"queue full that says not to retry", sim.Service{Workers: 1, Queue: sim.Queue{Limit: 1, DontRetry: true}, Time: short}, sim.Fleet{}, "", "overloaded"},
		{"timeout", sim.Service{Time: short}, sim.Fleet{AttemptTimeout: 50 * ms}, "timeout", "attempts_exhausted"},
	} {
		s := steady(world(200*ms, 10*time.Second, 100, c.service, c.fleet))
		policy := lull.Policy{
			Attempts: 2, AttemptTimeout: 5 * time.Second, Backoff: backoff.Schedule{Base: 20 * ms},
			RateLimitedBase: 20 * ms, Timeouts: lull.TimeoutsAlways, Breaker: noBreaker,
		}
		contender := func(l *ledger) sim.Contender {
			return sim.Contender{Policy: policy, Options: []lull.Option{lull.WithBudget(func() budget.Budget { return l })}}
		}
		check := func(side string, l *ledger, r sim.Result, err error) {
			if err != nil {
				t.Errorf("%s, %s: %v", c.name, side, err)
				return
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			check.Slices(t, slices.Collect(maps.Keys(l.seen)), want, "%s, %s: retries were paid for as", c.name, side)
			if r.Totals.Reasons[c.reason] == 0 {
				t.Errorf("%s, %s: calls ended for %v, want some for %s", c.name, side, r.Totals.Reasons, c.reason)
			}
		}
		l := &ledger{seen: map[string]bool{}}
		r, err := sim.Run(t.Context(), s, contender(l), sim.Options{Seed: 1})
		check("simulated", l, r, err)
		synctest.Test(t, func(t *testing.T) {
			l := &ledger{seen: map[string]bool{}}
			c := contender(l)
			c.Options = append(c.Options, lull.WithRand(seed.Source(t)))
			f := play(t.Context(), inMemory, s, c, 1)
			check("shipped", l, f.result, f.err)
		})
	}
}
