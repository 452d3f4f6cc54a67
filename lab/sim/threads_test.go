package sim

import (
	"testing"
	"time"

	"github.com/lullgo/lull/engine"
)

// A process has two threads, and room for one call that waits. Of four calls that come at once two begin, the third follows
// when they have ended, and the fourth is refused.
func TestCallsWaitForThreads(t *testing.T) {
	s := Scenario{
		Horizon: 3 * time.Second, Step: millisecond,
		Services: []Service{{Name: "api", Time: fixed(100 * millisecond)}},
		Fleets:   []Fleet{{Calls: "api", Threads: 2, Backlog: 1, Arrivals: Arrivals{Kind: AtOnce, At: time.Second, Each: 4}}},
	}
	r := play(t, s, once())
	wantDone(t, "threads", r, [2]int{1100, 100}, [2]int{1100, 100}, [2]int{1200, 200})
	want(t, "refused", r.reason(engine.Limited), 1)
	want(t, "refused without an attempt", r.Totals.Refused, 1)
	wantSeconds(t, "held", r.Totals.Held.Seconds, 0.4)
	want(t, "most at once", r.Totals.Held.Most, 4)
	// Each process has its own.
	s.Fleets[0].Processes = 2
	want(t, "two processes", play(t, s, once()).Totals.Succeeded, 6)
	// A caller's deadline counts from when it came.
	s.Fleets[0].Processes, s.Fleets[0].Deadline = 1, 150*millisecond
	want(t, "within 150 ms", play(t, s, once()).Totals.Succeeded, 2)
}

// A call that waits for its retry keeps its thread: another call does not begin before it has ended.
func TestWaitingCallsStarveOthers(t *testing.T) {
	s := Scenario{
		Horizon: 3 * time.Second, Step: millisecond,
		Services: []Service{{Name: "api", Time: fixed(100 * millisecond), Faults: []Fault{{Kind: Errors, At: time.Second, For: millisecond}}}},
		Fleets:   []Fleet{{Calls: "api", Threads: 1, Backlog: 9, Arrivals: Arrivals{Kind: Constant, At: 500 * millisecond, Rate: 2, Ramp: []RampPoint{{Factor: 1}, {At: 1600 * millisecond, Factor: 1}, {At: 1600 * millisecond}}}}},
	}
	// The call of 1.0 s fails, and succeeds from 2.0 to 2.1 s. The one of 1.5 s follows it.
	r := play(t, s, retrying(2, time.Second))
	wantTimes(t, "done", moments(r.Series, r.Series.Goodput), 2100*millisecond, 2200*millisecond)
}
