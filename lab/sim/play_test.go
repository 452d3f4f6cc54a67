package sim

import (
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

const millisecond = time.Millisecond

// retrying is a policy of so many attempts, always the same wait apart, and of
// nothing else: no budget, breaker, timeout or deadline.
func retrying(attempts int, wait time.Duration) lull.Policy {
	return lull.Policy{
		Attempts: attempts, Backoff: backoff.Schedule{Kind: backoff.Constant, Base: wait, Cap: max(wait, millisecond), Jitter: backoff.None},
		Timeouts: lull.TimeoutsAlways, AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout,
		RateLimitedBase: 1, HintLimit: time.Hour,
		Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
	}
}

func once() lull.Policy { return retrying(1, 0) }

// callsAt are fleets of one process that call "api" once each, at the given times.
func callsAt(times ...time.Duration) []Fleet {
	var fs []Fleet
	for _, at := range times {
		fs = append(fs, Fleet{Calls: "api", Arrivals: Arrivals{Kind: AtOnce, At: at}})
	}
	return fs
}

// fixed is always the same time.
func fixed(d time.Duration) Distribution { return Distribution{Mean: d} }

// play flies a policy through a scenario.
func play(t testing.TB, s Scenario, p lull.Policy) Result {
	t.Helper()
	_, r := playWorld(t, s, Contender{Name: "it", Policy: p}, Options{Seed: 1})
	return r
}

// playWorld is play for those who look inside.
func playWorld(t testing.TB, s Scenario, c Contender, o Options) (*world, Result) {
	t.Helper()
	w := build(t, s, c, o)
	w.rec.stopAfter = o.StopAfterRecovery
	if err := w.run(t.Context(), o); err != nil && err != errEnough {
		t.Fatal(err)
	}
	r := w.rec.result(w.now)
	r.Totals.Events = w.handled
	return w, r
}

func build(t testing.TB, s Scenario, c Contender, o Options) *world {
	t.Helper()
	must.Succeed(s.Validate())
	w := must.Have(newWorld(&s, c, o))
	return w
}

// want compares figures by name.
func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	check.Equal(t, got, want, "%s", what)
}

// moments is when things happened, of a series of rates.
func moments(s Series, rates []float64) (times []time.Duration) {
	for i, rate := range rates {
		for range int(math.Round(rate * s.Step.Seconds())) {
			times = append(times, time.Duration(i)*s.Step)
		}
	}
	return times
}

// wantTimes compares moments.
func wantTimes(t *testing.T, what string, got []time.Duration, want ...time.Duration) {
	t.Helper()
	same := len(got) == len(want)
	for i := 0; same && i < len(got); i++ {
		same = got[i] == want[i]
	}
	if !same {
		t.Errorf("%s at %v, want %v", what, got, want)
	}
}

// wantShare fails the test unless k of n agrees with a share of p: within five standard
// deviations.
func wantShare(t *testing.T, what string, k, n int64, p float64) {
	t.Helper()
	mean, sd := float64(n)*p, math.Sqrt(float64(n)*p*(1-p))
	if math.Abs(float64(k)-mean) > 5*sd+1e-9 {
		t.Errorf("%s: %d of %d, want %.0f ± %.0f", what, k, n, mean, sd)
	}
}

func (r Result) reason(why lull.Reason) int64 { return r.Totals.Reasons[why.String()] }
