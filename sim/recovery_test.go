package sim

import (
	"testing"
	"time"
)

// recorded is a recorder of 40 windows of a second with ten calls each, of which
// good(window) succeed, in a scenario with a fault from the 10th to the 12th.
func recorded(good func(second int) int64, faults ...Fault) *recorder {
	if faults == nil {
		faults = []Fault{{Kind: Stall, At: 10 * time.Second, For: 2 * time.Second}}
	}
	s := &Scenario{Horizon: 40 * time.Second, Window: time.Second, Services: []Service{{Name: "api", Faults: faults}}}
	r := newRecorder(s)
	for i := range 40 {
		r.bins[i] = bin{calls: 10, ended: 10, succeeded: good(i)}
	}
	return r
}

// from is all calls, but for those that begin in the seconds given.
func allBut(bad ...[2]int) func(int) int64 {
	return func(second int) int64 {
		for _, b := range bad {
			if second >= b[0] && second < b[1] {
				return 0
			}
		}
		return 10
	}
}

func TestRecovery(t *testing.T) {
	const sec = time.Second
	for _, c := range []struct {
		name string
		good func(int) int64
		want Recovery
	}{
		{"at once", allBut([2]int{10, 12}), Recovery{Recovered: true, Normal: 1, Final: 1}},
		{"after three seconds", allBut([2]int{10, 15}), Recovery{Recovered: true, Time: 3 * sec, Normal: 1, Final: 1}},
		{"nothing was ever wrong", allBut(), Recovery{Recovered: true, Normal: 1, Final: 1}},
		{"never", allBut([2]int{10, 40}), Recovery{Normal: 1}},
		{"with a relapse for good", allBut([2]int{10, 15}, [2]int{30, 40}), Recovery{Normal: 1}},
		{"four good seconds are not enough", allBut([2]int{10, 15}, [2]int{19, 25}), Recovery{Recovered: true, Time: 13 * sec, Normal: 1, Final: 1}},
		{"nothing succeeds before, either", allBut([2]int{0, 40}), Recovery{Recovered: true}},
		{"half of normal is normal where it was before", func(i int) int64 {
			if i >= 10 && i < 14 {
				return 0
			}
			return 5
		}, Recovery{Recovered: true, Time: 2 * sec, Normal: 0.5, Final: 0.5}},
		{"90 % of normal is not enough", func(i int) int64 {
			if i >= 10 {
				return 9
			}
			return 10
		}, Recovery{Normal: 1, Final: 0.9}},
	} {
		c.want.Measured, c.want.From = true, 12*sec
		want(t, c.name, recorded(c.good).recovery(40*sec), c.want)
	}
}

func TestRecoveryWithoutAnAfterwards(t *testing.T) {
	const sec = time.Second
	for name, f := range map[string]Fault{
		"to the end":       {At: 10 * sec, For: 30 * sec},
		"beyond the end":   {At: 10 * sec, For: never},
		"again at the end": {At: 10 * sec, For: 2 * sec, Every: 29 * sec},
	} {
		r := recorded(allBut([2]int{10, 40}), f)
		want(t, name, r.recovery(40*sec), Recovery{})
		want(t, name+": the warm-up ends before it", min(30*sec, r.from), 10*sec)
	}
	s := &Scenario{Horizon: 40 * sec, Services: []Service{{}}}
	want(t, "no fault", newRecorder(s).recovery(40*sec), Recovery{})
	want(t, "stopped before the end of the fault", recorded(allBut()).recovery(11*sec), Recovery{})
	// A spike is a disturbance as well.
	s.Fleets = []Fleet{{Arrivals: Arrivals{Ramp: []RampPoint{{5 * sec, 1}, {5 * sec, 3}, {8 * sec, 3}, {8 * sec, 1}}}}}
	from, to := s.disturbance()
	want(t, "spike from", from, 5*sec)
	want(t, "spike to", to, 8*sec)
}

// A warm-up ends at the latest where the first fault begins, also one that never
// ends.
func TestWarmupEndsBeforeTheFirstFault(t *testing.T) {
	const sec = time.Second
	for _, length := range []time.Duration{sec, never} {
		s := &Scenario{Horizon: 40 * sec, Warmup: 30 * sec, Services: []Service{{Faults: []Fault{{At: 10 * sec, For: length}}}}}
		want(t, "warm at", newRecorder(s).warm, 10*sec)
	}
	want(t, "no fault", newRecorder(&Scenario{Horizon: 40 * sec, Warmup: 30 * sec}).warm, 30*sec)
}

// Calls that never end have not succeeded: what went before the fault is not the
// final state.
func TestCallsThatHangAreNoRecovery(t *testing.T) {
	r := recorded(allBut([2]int{10, 40}))
	for i := 10; i < 40; i++ {
		r.bins[i].ended = 0
	}
	want(t, "hanging", r.recovery(40*time.Second), Recovery{Measured: true, From: 12 * time.Second, Normal: 1})
	// The last seconds of a run in which all is well: not all calls have ended.
	r = recorded(allBut([2]int{10, 15}))
	r.bins[39].ended, r.bins[39].succeeded = 8, 8
	v := r.recovery(40 * time.Second)
	want(t, "recovered", v.Recovered, true)
	want(t, "final", v.Final, 1)
}

// A run that is stopped early shows as much as it needs to.
func TestStopAfterRecovery(t *testing.T) {
	s := Scenario{
		Horizon: time.Hour, Step: time.Second, Window: time.Second,
		Services: []Service{{Name: "api", Time: fixed(10 * millisecond), Faults: []Fault{{Kind: Errors, At: 10 * time.Second, For: 2 * time.Second}}}},
		Fleets:   []Fleet{{Calls: "api", Arrivals: Arrivals{Kind: Constant, Rate: 100}}},
	}
	for _, c := range []struct{ stop, end time.Duration }{
		{0, time.Hour}, {-1, time.Hour}, {never, time.Hour}, {8 * time.Second, 20 * time.Second}, {time.Minute, 72 * time.Second},
		{time.Second, 17 * time.Second}, // five windows are needed to decide
	} {
		r, err := Run(t.Context(), s, Contender{Policy: once()}, Options{StopAfterRecovery: c.stop})
		if err != nil || r.Interrupted {
			t.Errorf("stop after %v: %v, interrupted %v", c.stop, err, r.Interrupted)
		}
		want(t, "end", r.End, c.end)
		want(t, "recovered", r.Recovery, Recovery{Measured: true, From: 12 * time.Second, Recovered: true, Normal: 1, Final: 1})
		conserved(t, &s, r)
	}
}
