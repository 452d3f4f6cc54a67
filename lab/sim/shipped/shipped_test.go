package shipped

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lab/sim"
)

const ms = time.Millisecond

// An experiment is flown on both sides.
type experiment struct {
	name     string
	scenario sim.Scenario
	policy   lull.Policy
	// wrong makes another policy of it. The comparison has to notice the difference.
	wrong func(*lull.Policy)
}

// steady makes the calls of a scenario come like clockwork, which leaves less to
// chance.
func steady(s sim.Scenario) sim.Scenario {
	s.Fleets[0].Arrivals.Kind = sim.Constant
	return s
}

// world is a fleet that makes calls at the given rate for some time, and a service
// that stands until all of them have ended.
func world(calling, horizon time.Duration, rate float64, service sim.Service, fleet sim.Fleet) sim.Scenario {
	service.Name, fleet.Calls = "service", "service"
	fleet.Arrivals = sim.Arrivals{Kind: sim.Poisson, Rate: rate, Ramp: []sim.RampPoint{{At: 0, Factor: 1}, {At: calling, Factor: 1}, {At: calling, Factor: 0}}}
	return sim.Scenario{Horizon: horizon, Step: 250 * ms, Services: []sim.Service{service}, Fleets: []sim.Fleet{fleet}}
}

// What an experiment is not about is off.
var (
	noBreaker = breaker.Config{Off: true}
	noBudget  = budget.Config{Unlimited: true}
)

// stalled is a pool of workers that stands still for 1.5 s. It can do two and
// a half times what it is asked for, and after the stall has 600 ms of work before
// it, for callers who wait no longer than 300 ms.
func stalled() sim.Scenario {
	return steady(world(4500*ms, 7*time.Second, 60, sim.Service{
		Workers: 15, Queue: sim.Queue{Limit: 300}, Time: sim.Distribution{Kind: sim.Exponential, Mean: 100 * ms},
		Faults: []sim.Fault{{Kind: sim.Stall, At: 1500 * ms, For: 1500 * ms}},
	}, sim.Fleet{Processes: 2, AttemptTimeout: 300 * ms}))
}

func experiments() []experiment {
	patient := lull.Policy{Attempts: 3, AttemptTimeout: 2 * time.Second, Deadline: 5 * time.Second, Backoff: backoff.Schedule{Base: 100 * ms}, Budget: noBudget, Breaker: noBreaker}
	with := func(change func(*lull.Policy)) lull.Policy {
		p := patient
		change(&p)
		return p
	}
	return []experiment{
		{
			name:     "three in ten attempts fail at once, and the budget pays for half of the retries",
			scenario: world(4500*ms, 6*time.Second, 150, sim.Service{Errors: 0.3}, sim.Fleet{Processes: 2}),
			policy: with(func(p *lull.Policy) {
				p.Budget = budget.Config{Ratio: 0.2, Window: 2 * time.Second, Earn: budget.Successes}
			}),
			wrong: func(p *lull.Policy) { p.Budget.Ratio = 0.5 },
		},
		{
			name: "everything fails at once for 1.5 s, and callers wait for 400 ms",
			scenario: world(4500*ms, 6*time.Second, 80, sim.Service{
				Time: sim.Distribution{Mean: 20 * ms}, Faults: []sim.Fault{{Kind: sim.Errors, At: 1500 * ms, For: 1500 * ms, After: 10 * ms}},
			}, sim.Fleet{Processes: 4, Deadline: 400 * ms}),
			policy: with(func(p *lull.Policy) {
				p.Attempts = 4
				p.Backoff = backoff.Schedule{Base: 150 * ms}
				p.Budget = budget.Config{Ratio: 0.5, Earn: budget.Successes, Stock: 5}
			}),
			wrong: func(p *lull.Policy) { p.Backoff.Jitter = backoff.None },
		},
		{
			name:     "the workers stand still for 1.5 s, and timeouts are always repeated",
			scenario: stalled(),
			policy: with(func(p *lull.Policy) {
				p.Timeouts = lull.TimeoutsAlways
				p.Budget = budget.Config{Ratio: 0.3, Window: 2 * time.Second, Earn: budget.Successes, Stock: 10}
			}),
			wrong: func(p *lull.Policy) { p.Timeouts = engine.TimeoutsWhenAnswered },
		},
		{
			name:     "the workers stand still for 1.5 s, and timeouts are repeated when later ones are answered",
			scenario: stalled(),
			policy:   patient,
			wrong:    func(p *lull.Policy) { p.Timeouts = lull.TimeoutsAlways },
		},
		{
			name: "a process has one or two calls in flight, and timeouts are repeated when later ones are answered",
			scenario: steady(world(4500*ms, 7*time.Second, 120, sim.Service{
				Time: sim.Distribution{Kind: sim.Uniform, Min: 200 * ms, Max: 400 * ms},
			}, sim.Fleet{Processes: 30, AttemptTimeout: 300 * ms})),
			policy: patient,
			wrong:  func(p *lull.Policy) { p.Timeouts = lull.TimeoutsAlways },
		},
		{
			name: "a rate limit answers 429 with Retry-After: 1",
			scenario: steady(world(2500*ms, 8*time.Second, 80, sim.Service{
				Rate: sim.Rate{PerSecond: 45, Burst: 10, RetryAfter: time.Second},
			}, sim.Fleet{Processes: 2})),
			policy: with(func(p *lull.Policy) { p.RateLimitedBase = 100 * ms }),
			wrong:  func(p *lull.Policy) { p.HintLimit = 500 * ms },
		},
		{
			name: "everything fails at once for 1.5 s, and breakers open",
			scenario: world(5*time.Second, 6500*ms, 150, sim.Service{
				Time: sim.Distribution{Mean: 20 * ms}, Faults: []sim.Fault{{Kind: sim.Errors, At: 1500 * ms, For: 1500 * ms, After: 10 * ms}},
			}, sim.Fleet{Processes: 10}),
			policy: with(func(p *lull.Policy) {
				p.Breaker = breaker.Config{
					Consecutive: -1, FailureRate: 0.5, MinCalls: 5, Window: time.Second, OpenFor: 300 * ms, OpenMax: 900 * ms, OpenJitter: 0.5, Probes: 1, ProbeTimeout: 2 * time.Second,
				}
			}),
			wrong: func(p *lull.Policy) { p.Breaker.OpenFor, p.Breaker.OpenMax = 50*ms, 100*ms },
		},
		{
			name: "a concurrency limit of 10 calls that take 120 ms, and others wait for 100 ms",
			scenario: steady(world(4500*ms, 6*time.Second, 100, sim.Service{
				Time: sim.Distribution{Kind: sim.Uniform, Min: 40 * ms, Max: 200 * ms},
			}, sim.Fleet{})),
			policy: with(func(p *lull.Policy) { p.Limit = bulkhead.Config{InFlight: 10, MaxWait: 100 * ms, MaxQueue: 20} }),
			wrong:  func(p *lull.Policy) { p.Limit.MaxWait = 20 * ms },
		},
	}
}

// A flight is one experiment with real clients.
type flight struct {
	result sim.Result
	made   []sim.Made
	late   time.Duration // by which a call began at most
	err    error
}

// What real clients do lies, in virtual time, where the simulator says. Chance puts a figure outside now and then; a
// second flight, with other draws, must not have it on the same side.
func TestSimulatedIsShipped(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: a thousand simulations, each on one goroutine")
	}
	for i, e := range experiments() {
		fs := figuresOf(&e.scenario)
		bs, err := bands(t.Context(), e.scenario, sim.Contender{Policy: e.policy}, fs)
		if err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
		draws := seed.Source(t) // the second flight goes on in it
		fly := func(number uint64) (sides []int) {
			synctest.Test(t, func(t *testing.T) {
				c := sim.Contender{Name: e.name, Policy: e.policy, Options: []lull.Option{lull.WithRand(draws)}}
				f := play(t.Context(), inMemory, e.scenario, c, number)
				if f.err != nil {
					t.Fatalf("%s: %v", e.name, f.err)
				}
				var table string
				sides, table = compare(fs, bs, &f.result)
				t.Logf("%s: %d calls%s", e.name, f.result.Totals.Calls, table)
			})
			return sides
		}
		if first := fly(1 + uint64(i)); slices.ContainsFunc(first, outside) {
			for n, side := range fly(101 + uint64(i)) {
				if outside(side) && side == first[n] {
					t.Errorf("%s: %s: simulator and driver disagree, see above", e.name, fs[n].name)
				}
			}
		}
		foundOut(t, e, fs, bs)
	}
}

func outside(side int) bool { return side != 0 }

// foundOut: the experiment would notice another policy, in nine of ten flights.
func foundOut(t *testing.T, e experiment, fs []figure, bs []band) {
	t.Helper()
	wrong := e.policy
	e.wrong(&wrong)
	rs, err := simulate(t.Context(), e.scenario, sim.Contender{Policy: wrong})
	if err != nil {
		t.Fatalf("%s: %v", e.name, err)
	}
	out := 0
	for i := range rs {
		if sides, _ := compare(fs, bs, &rs[i]); slices.ContainsFunc(sides, outside) {
			out++
		}
	}
	t.Logf("%s: the wrong policy is found out in %d of %d flights", e.name, out, len(rs))
	if out < len(rs)*9/10 {
		t.Errorf("%s: the wrong policy would be found out in %d of %d flights only", e.name, out, len(rs))
	}
}
