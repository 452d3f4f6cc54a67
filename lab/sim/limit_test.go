package sim

import (
	"testing"
	"time"

	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
)

// One call at a time for the process, of 100 ms; another may wait for 150 ms, and
// two may wait at a time. Of four that come at once the first goes, the second
// follows, the third waits in vain and the fourth is refused.
func TestWaitingForRoomUnderAConcurrencyLimit(t *testing.T) {
	p := once()
	p.Limit = bulkhead.Config{InFlight: 1, MaxWait: 150 * millisecond, MaxQueue: 2}
	for _, workers := range []int{0, 5} {
		s := Scenario{
			Horizon: 3 * time.Second, Step: millisecond,
			Services: []Service{{Name: "api", Workers: workers, Time: fixed(100 * millisecond)}},
			Fleets:   []Fleet{{Calls: "api", Arrivals: Arrivals{Kind: AtOnce, At: time.Second, Each: 4}}},
		}
		w, r := playWorld(t, s, Contender{Policy: p}, Options{})
		wantDone(t, "limit", r, [2]int{1100, 100}, [2]int{1200, 200})
		wantTimes(t, "limited", moments(r.Series, r.Series.Failed), 1000*millisecond, 1150*millisecond)
		want(t, "limited", r.reason(engine.Limited), 2)
		want(t, "refused", r.Totals.Refused, 2)
		want(t, "attempts", r.Totals.Attempts, 2)
		want(t, "in flight", w.origins[0].states[0].Limiter().InFlight(), 0)
		want(t, "in line", len(w.waitingForRoom), 0)

		// A deadline that is nearer than MaxWait ends the wait.
		s.Fleets[0].Deadline = 120 * millisecond
		r = play(t, s, p)
		wantTimes(t, "limited", moments(r.Series, r.Series.Failed), 1000*millisecond, 1120*millisecond, 1120*millisecond)
		want(t, "at the deadline", r.reason(engine.Deadline)+r.reason(engine.AttemptsExhausted), 2)
		s.Fleets[0].Deadline = 0

		// Room that comes in the moment in which the wait ends is taken.
		exact := p
		exact.Limit.MaxWait = 100 * millisecond
		want(t, "in the last moment", play(t, s, exact).Totals.Succeeded, 2)

		// Without MaxWait nobody waits; each process has a limit of its own.
		none := p
		none.Limit = bulkhead.Config{InFlight: 1}
		want(t, "no wait", play(t, s, none).Totals.Succeeded, 1)
		s.Fleets[0].Processes = 3
		want(t, "three processes", play(t, s, none).Totals.Succeeded, 3)
	}
}

// A call that waits before a retry holds no place.
func TestACallThatWaitsHoldsNoPlace(t *testing.T) {
	p := retrying(2, time.Second)
	p.Limit = bulkhead.Config{InFlight: 1}
	s := Scenario{
		Horizon: 5 * time.Second, Step: millisecond,
		Services: []Service{{Name: "api", Time: fixed(100 * millisecond), Faults: []Fault{{Kind: Errors, At: time.Second, For: millisecond}}}},
		Fleets:   []Fleet{{Calls: "api", Arrivals: Arrivals{Kind: Constant, At: 500 * millisecond, Rate: 2, Ramp: []RampPoint{{Factor: 1}, {At: 1600 * millisecond, Factor: 1}, {At: 1600 * millisecond}}}}},
	}
	r := play(t, s, p)
	want(t, "calls", r.Totals.Calls, 2)
	wantTimes(t, "done", moments(r.Series, r.Series.Goodput), 1600*millisecond, 2100*millisecond)
}
