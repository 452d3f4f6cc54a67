package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullgo/lull/server/admission"
)

// failing is a service that fails at all times, of one worker and with work of 100 ms.
func failing(cost float64, q Queue, at ...int) Scenario {
	s := one(q, at...)
	s.Services[0].Errors, s.Services[0].ErrorCost = 1, cost
	return s
}

func wantFailed(t *testing.T, what string, r Result, at ...int) {
	t.Helper()
	var times []time.Duration
	for _, ms := range at {
		times = append(times, time.Duration(ms)*millisecond)
	}
	wantTimes(t, what+": failed", moments(r.Series, r.Series.Failed), times...)
}

// N attempts that fail keep the workers busy for N × cost × work, whatever is drawn for the work.
func TestErrorsTakeTheirShareOfTheWork(t *testing.T) {
	const n = 200
	for _, c := range []struct {
		cost    float64
		workers int
		fault   Fault
	}{
		{0, 1, Fault{}}, {0.01, 1, Fault{}}, {0.25, 1, Fault{}}, {1, 1, Fault{}}, {0.25, 4, Fault{}},
		{0.25, 1, Fault{Kind: SlowDown, For: time.Hour, Share: 0.5}},
		{0.25, 4, Fault{Kind: BrownOut, For: time.Hour, Share: 0.5}},
		{0.25, 1, Fault{Kind: Errors, For: time.Hour}},
	} {
		s := Scenario{
			Horizon:  time.Hour,
			Services: []Service{{Name: "api", Workers: c.workers, Queue: Queue{Limit: n}, Time: fixed(100 * millisecond), Errors: 1, ErrorCost: c.cost}},
			Fleets:   []Fleet{{Calls: "api", Arrivals: Arrivals{Kind: AtOnce, At: time.Second, Each: n}}},
		}
		busy := duration(n * c.cost * 1e8 / float64(c.workers))
		if c.fault.For > 0 {
			s.Services[0].Faults = []Fault{c.fault}
			if c.fault.Kind == Errors {
				s.Services[0].Errors = 0
			} else {
				busy *= 2
			}
		}
		r := play(t, s, once())
		what := fmt.Sprintf("a cost of %v, %d workers, %v: ", c.cost, c.workers, c.fault.Kind)
		want(t, what+"busy", r.Totals.Last-time.Second, busy)
		want(t, what+"errors", r.Totals.Errors, n)
		want(t, what+"failed", r.Totals.AttemptsFailed, n)
	}

	// The work of each attempt is that which it would have had.
	for _, takes := range []Distribution{{Kind: Exponential, Mean: 100 * millisecond}, {Kind: Bimodal, Mean: 10 * millisecond, Slow: 0.1, SlowMean: time.Second}} {
		last := func(cost float64) time.Duration {
			s := failing(cost, Queue{Limit: n})
			s.Horizon, s.Step, s.Services[0].Time = time.Hour, time.Second, takes
			s.Fleets = []Fleet{{Calls: "api", Arrivals: Arrivals{Kind: AtOnce, Each: n}}}
			return play(t, s, once()).Totals.Last
		}
		if whole, part := last(1), last(0.125); part < whole/8-n || part > whole/8+n {
			t.Errorf("%v: %v of work, and %v at a cost of an eighth", takes.Kind, whole, part)
		}
	}
}

func TestErrorsWaitForAWorker(t *testing.T) {
	// The second waits for the first one, and finds the fault.
	s := one(Queue{Limit: 1}, 1000, 1010, 1500, 1500)
	s.Services[0].ErrorCost = 0.3
	s.Services[0].Faults = []Fault{{Kind: Errors, At: 1010 * millisecond, For: 100 * millisecond}}
	r := play(t, s, once())
	wantFailed(t, "behind another", r, 1130)
	wantDone(t, "behind another", r, [2]int{1100, 100}, [2]int{1600, 100}, [2]int{1700, 200})

	// For the third there is no room.
	r = play(t, failing(0.3, Queue{Limit: 1}, 1000, 1000, 1000), once())
	wantFailed(t, "a full queue", r, 1000, 1030, 1060)
	want(t, "queue full", r.Totals.QueueFull, 1)

	// The time of an error takes no worker, and comes first.
	s = failing(0.3, Queue{Limit: 1}, 1000, 1000)
	s.Services[0].ErrorTime = 200 * millisecond
	r = play(t, s, once())
	wantFailed(t, "a time of errors", r, 1230, 1260)
	s.Services[0].Errors, s.Services[0].Faults = 0, []Fault{{Kind: Errors, For: time.Minute, After: 50 * millisecond}}
	wantFailed(t, "a time of the fault", play(t, s, once()), 1080, 1110)

	// A stall is none of the time.
	s = failing(0.3, Queue{}, 1000)
	s.Services[0].Faults = []Fault{{Kind: Stall, At: 1010 * millisecond, For: 100 * millisecond}}
	wantFailed(t, "a stall", play(t, s, once()), 1130)
}

// What the service itself does not answer costs it nothing.
func TestLostAndRefusedAttemptsHaveNoErrorCost(t *testing.T) {
	s := one(Queue{Limit: 5}, 1000, 1050, 1110)
	s.Services[0].ErrorCost = 1
	s.Services[0].Faults = []Fault{{Kind: Crash, At: 1050 * millisecond, For: 50 * millisecond}}
	r := play(t, s, once())
	wantFailed(t, "a crash", r, 1050, 1050)
	wantDone(t, "a crash", r, [2]int{1210, 100})

	s = one(Queue{Limit: 5}, 1000, 1000)
	s.Services[0].ErrorCost, s.Services[0].Rate = 1, Rate{PerSecond: 1, Burst: 1}
	r = play(t, s, once())
	wantFailed(t, "a rate", r, 1000)
	wantDone(t, "a rate", r, [2]int{1100, 100})

	s = one(Queue{Limit: 5}, 1000, 1001)
	s.Services[0].ErrorCost, s.Fleets[0].Network.Loss = 1, 1
	s.Fleets[0].AttemptTimeout = 50 * millisecond
	wantDone(t, "a lost request", play(t, s, once()), [2]int{1101, 100})
}

// A failure is early: the service has called nobody yet. Nothing was carried out, so it is no wasted work either.
func TestErrorsWithACostCallNobody(t *testing.T) {
	s := failing(0.3, Queue{}, 1000)
	s.Services[0].Calls = []Hop{{Service: "db"}}
	s.Services = append(s.Services, Service{Name: "db", Time: fixed(100 * millisecond)})
	s.Fleets[0].NotIdempotent, s.Fleets[0].AttemptTimeout = true, 10*millisecond
	w, r := playWorld(t, s, Contender{Policy: once()}, Options{})
	want(t, "effects", r.Totals.Effects, 0)
	want(t, "wasted", r.Totals.Wasted, 0)
	want(t, "timed out", r.Totals.AttemptsTimedOut, 1)
	want(t, "attempts of the database", w.rec.loads[1].counted, 0)
}

// Work on the failure of a caller that has gone stops where all such work does.
func TestErrorsWithACostAreCancelled(t *testing.T) {
	for _, cancel := range []bool{false, true} {
		s := failing(1, Queue{}, 1000, 1050)
		s.Services[0].CancelWork = cancel
		s.Services[0].Errors, s.Services[0].Faults = 0, []Fault{{Kind: Errors, For: 1040 * millisecond}}
		r := play(t, patient(s, 40, 1000), once())
		done := int64(0)
		if cancel {
			done = 1
		}
		want(t, fmt.Sprintf("cancel %t: succeeded", cancel), r.Totals.Succeeded, done)
		want(t, fmt.Sprintf("cancel %t: queue full", cancel), r.Totals.QueueFull, 1-done)
	}
}

// The gate counts an attempt as in hand until its failure is answered.
func TestErrorsWithACostBehindTheGate(t *testing.T) {
	s := gated1(admission.Config{}, 1000, 1000)
	s.Services[0].Errors, s.Services[0].ErrorCost, s.Services[0].ErrorTime = 1, 0.3, 10*millisecond
	w, r := playWorld(t, s, Contender{Policy: once()}, Options{})
	wantFailed(t, "one after the other", r, 1040, 1080)
	want(t, "failed", gateOf(w).Departed(admission.Failed), 2)
	want(t, "jobs left", w.jobs.inUse(), 0)
}
