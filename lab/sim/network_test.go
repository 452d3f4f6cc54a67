package sim

import (
	"testing"
	"time"

	"github.com/lullgo/lull/engine"
)

func TestNetwork(t *testing.T) {
	const calls = 10000
	s := Scenario{
		Horizon:  5 * time.Second,
		Services: []Service{{Name: "api", Time: fixed(100 * millisecond)}},
		Fleets:   []Fleet{{Calls: "api", AttemptTimeout: time.Second, NotIdempotent: true, Arrivals: Arrivals{Kind: AtOnce, Each: calls}}},
	}
	net := &s.Fleets[0].Network
	for _, workers := range []int{0, calls} {
		s.Services[0].Workers = workers
		*net = Network{Latency: fixed(20 * millisecond)}
		r := play(t, s, once())
		want(t, "there and back", r.Totals.MeanCompletion, 140*millisecond)
		*net = Network{Loss: 1}
		r = play(t, s, once())
		want(t, "all requests lost: timed out", r.Totals.AttemptsTimedOut, calls)
		want(t, "effects", r.Totals.Effects, 0)
		want(t, "last", r.Totals.Last, time.Second)
		*net = Network{LossBack: 1}
		r = play(t, s, once())
		want(t, "all responses lost: timed out", r.Totals.AttemptsTimedOut, calls)
		want(t, "effects", r.Totals.Effects, calls)
		*net = Network{Loss: 0.3, LossBack: 0.5}
		r = play(t, s, once())
		wantShare(t, "arrived", r.Totals.Effects, calls, 0.7)
		wantShare(t, "answered", r.Totals.Succeeded, calls, 0.35)
		// Refusals travel, and get lost, as well.
		s.Services[0].Errors = 1
		*net = Network{Latency: fixed(20 * millisecond), LossBack: 0.5}
		r = play(t, s, once())
		wantShare(t, "refusals that arrived", r.Totals.AttemptsFailed, calls, 0.5)
		want(t, "service saw", r.Totals.Errors, calls)
		s.Services[0].Errors = 0
	}
	// Who waits for ever for a response that is lost has not ended.
	*net = Network{LossBack: 1}
	s.Fleets[0].AttemptTimeout = 0
	want(t, "unfinished", play(t, s, once()).Totals.Unfinished, calls)
}

func TestRateLimit(t *testing.T) {
	s := Scenario{
		Horizon: 10 * time.Second, Step: millisecond,
		Services: []Service{{Name: "api", Rate: Rate{PerSecond: 10, Burst: 5}}},
		Fleets:   []Fleet{{Calls: "api", Arrivals: Arrivals{Kind: AtOnce, At: time.Second, Each: 20}}},
	}
	rate := &s.Services[0].Rate
	r := play(t, s, once())
	want(t, "a burst", r.Totals.Succeeded, 5)
	want(t, "rate-limited", r.Totals.RateLimited, 15)
	rate.Burst = 0
	want(t, "a second's worth", play(t, s, once()).Totals.Succeeded, 10)
	rate.PerSecond = 0.5
	want(t, "one at least", play(t, s, once()).Totals.Succeeded, 1)

	// Twenty a second, at 0.05, 0.1, ... 9.95 s: every other one, from the first on.
	*rate = Rate{PerSecond: 10, Burst: 1}
	s.Fleets[0].Arrivals = Arrivals{Kind: Constant, Rate: 20}
	r = play(t, s, once())
	want(t, "steady", r.Totals.Succeeded, 100)
	want(t, "rate-limited", r.Totals.RateLimited, 99)
	// A burst of three: two more at first.
	rate.Burst = 3
	want(t, "steady after a burst", play(t, s, once()).Totals.Succeeded, 102)

	*rate = Rate{PerSecond: 10, Burst: 1, RetryAfter: 2 * time.Second}
	s.Fleets = callsAt(time.Second, time.Second)
	p := retrying(2, millisecond)
	r = play(t, s, p)
	at := moments(r.Series, r.Series.Retries)
	if len(at) != 1 || at[0] < 3*time.Second || at[0] > 4*time.Second {
		t.Errorf("retry at %v, want one 2 to 3 s after 1 s", at)
	}
	p.HintLimit = time.Second
	want(t, "too long a wait", play(t, s, p).reason(engine.HintTooLong), 1)
}

// A call from far away is sent first and arrives last: what is near is not to be
// rate-limited because of it.
func TestRateLimitSeesRequestsAsTheyArrive(t *testing.T) {
	s := Scenario{
		Horizon: 10 * time.Second, Step: millisecond,
		Services: []Service{{Name: "api", Rate: Rate{PerSecond: 1, Burst: 1}}},
		Fleets:   callsAt(time.Second, 1100*millisecond),
	}
	s.Fleets[0].Network.Latency = fixed(3 * time.Second)
	want(t, "rate-limited", play(t, s, once()).Totals.RateLimited, 0)
}

// Ten read, write and are answered in step, 40 ms a round: one wins each.
func TestContention(t *testing.T) {
	s := Scenario{
		Horizon: time.Second, Step: millisecond,
		Services: []Service{{Name: "api", Contention: true}},
		Fleets: []Fleet{{
			Calls: "api", Processes: 10, Arrivals: Arrivals{Kind: AtOnce},
			Network: Network{Latency: fixed(10 * millisecond)},
		}},
	}
	r := play(t, s, retrying(100, 0))
	want(t, "attempts", r.Totals.Attempts, 10+9+8+7+6+5+4+3+2+1)
	want(t, "conflicts", r.Totals.AttemptsFailed, 45)
	want(t, "last", r.Totals.Last, 400*millisecond)
	want(t, "succeeded", r.Totals.Succeeded, 10)
	// With four attempts each: four win.
	want(t, "four rounds", play(t, s, retrying(4, 0)).Totals.Succeeded, 4)
}
