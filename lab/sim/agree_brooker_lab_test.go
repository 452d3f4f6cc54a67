//go:build lab

package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/lab/sim"
)

// The simulation of "Fixing retries with token buckets and circuit breakers"
// (brooker.co.za, 2022; mbrooker/simulator_example, retry_sim): clients that
// together begin 1000 calls a second for 10 s, against a service whose attempts
// fail independently with a fixed probability. Its models are written anew here,
// as budgets: the bucket and the "breaker" only ever decide on retries.

// brookerBucket is its adaptive strategy: each call that begins earns 0.1, up to
// 5, which is there from the start; more than 1 pays for a retry.
type brookerBucket struct {
	idle
	tokens float64
}

func (b *brookerBucket) Start(time.Duration) { b.tokens = min(b.tokens+0.1, 5) }
func (b *brookerBucket) Withdraw(time.Duration, budget.Class, func() uint64) budget.Grant {
	if b.tokens > 1 {
		b.tokens--
		return budget.Grant{OK: true}
	}
	return budget.Grant{}
}

// brookerBreaker is its circuit breaker: no retry while failures are more than a
// tenth of the calls, ever.
type brookerBreaker struct {
	idle
	calls, failures float64
}

func (b *brookerBreaker) Start(time.Duration)  { b.calls++ }
func (b *brookerBreaker) Failed(time.Duration) { b.failures++ }
func (b *brookerBreaker) Withdraw(time.Duration, budget.Class, func() uint64) budget.Grant {
	return budget.Grant{OK: b.failures/b.calls <= 0.1}
}

func amplification(r *sim.Result) float64 { return r.Totals.Amplification }
func success(r *sim.Result) float64       { return r.Totals.SuccessRate() }

func TestAgreeBrookerFixedFailures(t *testing.T) {
	contenders := map[string]sim.Contender{
		"none":     {Policy: bare(1, atOnce)},
		"three":    {Policy: bare(4, atOnce)},
		"adaptive": {Policy: bare(1000, atOnce), Options: paidBy(func() budget.Budget { return &brookerBucket{tokens: 5} })},
		"breaker":  {Policy: bare(4, atOnce), Options: paidBy(func() budget.Budget { return &brookerBreaker{} })},
	}
	// Where every attempt is decided by itself alone, the figures are known.
	exact := map[string]func(p float64) (attempts, success float64){
		"none":  func(p float64) (float64, float64) { return 1, 1 - p },
		"three": func(p float64) (float64, float64) { return (1 - math.Pow(p, 4)) / (1 - p), 1 - math.Pow(p, 4) },
	}
	const seeds = 10
	tab := newTable("clients", "failures", "policy", "attempts/call", "there", "z", "success", "there", "z")
	for i, r := range records(t, "brooker_retry_sim.csv") {
		clients, p, policy := int(number(t, r[0])), number(t, r[1]), r[2]
		if p == 0 {
			continue
		}
		n := int(number(t, r[3]))
		wantAttempts := sample{n, number(t, r[4]), number(t, r[5])}
		wantSuccess := sample{n, number(t, r[6]), number(t, r[7])}
		if f, ok := exact[policy]; ok {
			a, s := f(p)
			wantAttempts, wantSuccess = sample{n: 1, mean: a}, sample{n: 1, mean: s}
		}
		rs := flyFrom(t, uint64(i+1)<<16, brookerScenario(p, clients), contenders[policy], seeds)
		attempts, good := over(rs, amplification), over(rs, success)
		// Few runs may differ too little to show how much they might: 10,000 calls
		// that succeed with the probability s do so in a share that deviates by
		// sqrt(s(1-s)/10000), and attempts deviate by no less than successes do.
		least := math.Sqrt(wantSuccess.mean*(1-wantSuccess.mean)/1e4 + 1e-10)
		good.deviates = max(good.deviates, least)
		attempts.deviates = max(attempts.deviates, least)
		za, zs := attempts.apart(wantAttempts.mean, wantAttempts.stderr()), good.apart(wantSuccess.mean, wantSuccess.stderr())
		tab.row(clients, p, policy, attempts, wantAttempts.mean, za, good, wantSuccess.mean, zs)
		if math.Abs(za) > sigmas || math.Abs(zs) > sigmas {
			t.Errorf("%d clients, %v failures, %s: %v attempts per call and %v succeeded, want %v and %v", clients, p, policy, attempts, good, wantAttempts, wantSuccess)
		}
	}
	tab.log(t)
}
