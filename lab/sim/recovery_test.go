package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/lab/sim/internal/draw"
)

// recorded is a recorder of 40 windows of a second with ten calls each, of which
// good(window) succeed, in a scenario with a fault from the 10th to the 12th.
func recorded(good func(second int) int64, faults ...Fault) *recorder {
	if faults == nil {
		faults = []Fault{{Kind: Stall, At: 10 * time.Second, For: 2 * time.Second}}
	}
	s := &Scenario{Horizon: 40 * time.Second, Window: time.Second, Services: []Service{{Name: "api", Faults: faults}}, Fleets: []Fleet{{Calls: "api", Arrivals: Arrivals{Rate: 10}}}}
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
		{"after three seconds", allBut([2]int{10, 15}), Recovery{Recovered: true, Time: 3 * sec, First: 3 * sec, Normal: 1, Final: 1}},
		{"nothing was ever wrong", allBut(), Recovery{Recovered: true, Normal: 1, Final: 1}},
		{"never", allBut([2]int{10, 40}), Recovery{Normal: 1}},
		{"with a relapse for good", allBut([2]int{10, 15}, [2]int{30, 40}), Recovery{First: 3 * sec, Relapses: 1, Normal: 1}},
		{"with a relapse", allBut([2]int{10, 15}, [2]int{20, 22}), Recovery{Recovered: true, Time: 10 * sec, First: 3 * sec, Relapses: 1, Normal: 1, Final: 1}},
		{"with two", allBut([2]int{20, 22}, [2]int{28, 30}), Recovery{Recovered: true, Time: 18 * sec, Relapses: 2, Normal: 1, Final: 1}},
		{"a dip that is no relapse", func(i int) int64 {
			if i == 25 {
				return 8
			}
			return 10
		}, Recovery{Recovered: true, Normal: 1, Final: 1}},
		{"too late to tell", allBut([2]int{10, 36}), Recovery{Normal: 1, Final: 1}},
		{"four good seconds are not enough", allBut([2]int{10, 15}, [2]int{19, 25}), Recovery{Recovered: true, Time: 13 * sec, First: 13 * sec, Normal: 1, Final: 1}},
		{"nothing succeeds before, either", allBut([2]int{0, 40}), Recovery{Recovered: true}},
		{"half of normal is normal where it was before", func(i int) int64 {
			if i >= 10 && i < 14 {
				return 0
			}
			return 5
		}, Recovery{Recovered: true, Time: 2 * sec, First: 2 * sec, Normal: 0.5, Final: 0.5}},
		{"90 % of normal is not enough", func(i int) int64 {
			if i >= 10 {
				return 9
			}
			return 10
		}, Recovery{Normal: 1, Final: 0.9}},
	} {
		c.want.Measured, c.want.From, c.want.Within = true, 12*sec, 5*sec
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
	}
	s := &Scenario{Horizon: 40 * sec, Services: []Service{{}}}
	want(t, "no fault", newRecorder(s).recovery(40*sec), Recovery{})
	want(t, "stopped before the end of the fault", recorded(allBut()).recovery(11*sec), Recovery{})
}

// A ramp is a disturbance while it brings more than the service can do.
func TestRampsDisturbOnlyBeyondCapacity(t *testing.T) {
	const sec = time.Second
	spike := []RampPoint{{5 * sec, 1}, {5 * sec, 3}, {8 * sec, 3}, {8 * sec, 1}}
	slope := []RampPoint{{10 * sec, 1}, {20 * sec, 3}, {30 * sec, 1}}
	for _, c := range []struct {
		name     string
		ramp     []RampPoint
		service  Service // called at 10/s
		from, to time.Duration
	}{
		{"a spike", spike, Service{Workers: 2, Time: fixed(100 * millisecond)}, 5 * sec, 8 * sec},
		{"a spike that is just enough", spike, Service{Workers: 3, Time: fixed(100 * millisecond)}, 40 * sec, 0},
		{"a spike against a rate limit", spike, Service{Rate: Rate{PerSecond: 20}}, 5 * sec, 8 * sec},
		{"a spike that nothing bounds", spike, Service{Time: fixed(100 * millisecond)}, 40 * sec, 0},
		{"a slope", slope, Service{Hosts: 2, Workers: 1, Time: fixed(100 * millisecond)}, 15 * sec, 25 * sec},
		{"the end of the calls", []RampPoint{{0, 1}, {20 * sec, 1}, {20 * sec, 0}}, Service{Workers: 2, Time: fixed(100 * millisecond)}, 40 * sec, 0},
		{"a day that the service can bear, beside a stall", []RampPoint{{0, 1}, {15 * sec, 1.9}, {30 * sec, 1}},
			Service{Workers: 2, Time: fixed(100 * millisecond), Faults: []Fault{{Kind: Stall, At: 10 * sec, For: 2 * sec}}}, 10 * sec, 12 * sec},
		{"more from then on", []RampPoint{{20 * sec, 1}, {20 * sec, 3}}, Service{Workers: 2, Time: fixed(100 * millisecond)}, 20 * sec, 0},
	} {
		s := &Scenario{Horizon: 40 * sec, Services: []Service{c.service}, Fleets: []Fleet{{Arrivals: Arrivals{Rate: 10, Ramp: c.ramp}}}}
		from, to := s.Disturbance()
		want(t, c.name+": from", from, c.from)
		want(t, c.name+": to", to, c.to)
	}
	// The load of all fleets counts, and of services what those can do that they call.
	s := &Scenario{
		Horizon: 40 * sec,
		Services: []Service{
			{Name: "front", Calls: []Hop{{Service: "back"}}},
			{Name: "back", Workers: 3, Time: fixed(100 * millisecond)},
		},
		Fleets: []Fleet{{Calls: "front", Arrivals: Arrivals{Rate: 10, Ramp: spike}}, {Calls: "front", Arrivals: Arrivals{Rate: 5}}},
	}
	from, to := s.Disturbance()
	want(t, "layers: from", from, 5*sec)
	want(t, "layers: to", to, 8*sec)
}

// When calls end, there is nothing left that could fail.
func TestTheEndOfTheCallsIsNoFailure(t *testing.T) {
	const sec = time.Second
	r := recorded(allBut([2]int{10, 15}))
	for i := 25; i < 40; i++ {
		r.bins[i] = bin{}
	}
	want(t, "well", r.recovery(40*sec), Recovery{Measured: true, From: 12 * sec, Recovered: true, Time: 3 * sec, First: 3 * sec, Within: 5 * sec, Normal: 1, Final: 1})
	r = recorded(allBut([2]int{10, 25}))
	for i := 25; i < 40; i++ {
		r.bins[i] = bin{}
	}
	want(t, "failed to the last", r.recovery(40*sec).Recovered, false)
}

// Few calls say little: when things were normal is known no better than twenty calls take.
func TestFewCalls(t *testing.T) {
	const sec = time.Second
	sparse := func(n int64, bad ...[2]int) *recorder {
		good := allBut(bad...)
		r := recorded(good)
		for i := range r.bins {
			r.bins[i] = bin{}
			if i%2 == 1 {
				r.bins[i] = bin{calls: n, ended: n, succeeded: n * good(i) / 10}
			}
		}
		return r
	}
	want(t, "14 calls", sparse(1, [2]int{10, 12}).recovery(40*sec), Recovery{Few: true, From: 12 * sec, Normal: 1, Final: 1})
	want(t, "28 calls", sparse(2, [2]int{10, 12}).recovery(40*sec), Recovery{Measured: true, From: 12 * sec, Recovered: true, Within: 20 * sec, Normal: 1, Final: 1})
	// No call fails after the fault: that the first comes late is no time to recover.
	r := sparse(4, [2]int{10, 12})
	for i := 12; i < 20; i++ {
		r.bins[i] = bin{}
	}
	want(t, "the first call comes late", r.recovery(40*sec).Time, 0)
	want(t, "a failure first", sparse(2, [2]int{10, 14}).recovery(40*sec).Time, 2*sec)
}

// Where a tenth of the calls fails at all times, groups that are worse by chance are no relapses.
func TestChanceIsNoRelapse(t *testing.T) {
	const horizon = 1000
	s := &Scenario{Horizon: horizon * time.Second, Window: time.Second, Services: []Service{{Faults: []Fault{{Kind: Stall, At: 100 * time.Second, For: 2 * time.Second}}}}}
	for seed := range uint64(20) {
		r := newRecorder(s)
		src := draw.From(seed)
		for i := range horizon {
			b := bin{calls: 20, ended: 20}
			for range b.calls {
				if src.Below(10) > 0 && (i < 100 || i > 102) {
					b.succeeded++
				}
			}
			r.bins[i] = b
		}
		v := r.recovery(s.Horizon)
		if !v.Recovered || v.Time > 10*time.Second || v.Relapses > 0 {
			t.Errorf("seed %d: %+v", seed, v)
		}
	}
}

// A warm-up ends at the latest where the first fault begins, also one that never
// ends.
func TestWarmupEndsBeforeTheFirstFault(t *testing.T) {
	const sec = time.Second
	for _, length := range []time.Duration{sec, never} {
		s := &Scenario{Horizon: 40 * sec, Warmup: 30 * sec, Services: []Service{{Faults: []Fault{{At: 10 * sec, For: length}}}}}
		want(t, "warm at", newRecorder(s).warmupEnd, 10*sec)
	}
	want(t, "no fault", newRecorder(&Scenario{Horizon: 40 * sec, Warmup: 30 * sec}).warmupEnd, 30*sec)
}

// Calls that never end have not succeeded: what went before the fault is not the
// final state.
func TestCallsThatHangAreNoRecovery(t *testing.T) {
	r := recorded(allBut([2]int{10, 40}))
	for i := 10; i < 40; i++ {
		r.bins[i].ended = 0
	}
	want(t, "hanging", r.recovery(40*time.Second), Recovery{Measured: true, From: 12 * time.Second, Within: 5 * time.Second, Normal: 1})
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
		want(t, "recovered", r.Recovery, Recovery{Measured: true, From: 12 * time.Second, Recovered: true, Within: 5 * time.Second, Normal: 1, Final: 1})
		conserved(t, &s, r)
	}
}

// Calls that were made elsewhere are judged as those of a run: here they are the same ones.
func TestJudgeIsTheRuleOfARun(t *testing.T) {
	const sec = time.Second
	for _, good := range []func(int) int64{allBut([2]int{10, 15}), allBut([2]int{10, 40}), allBut([2]int{5, 10}), allBut([2]int{10, 15}, [2]int{30, 40})} {
		r := recorded(good)
		var calls []Made
		for i := range 40 {
			for n := range int64(10) {
				began := time.Duration(i) * sec
				calls = append(calls, Made{began, began + sec/2, n < good(i)})
			}
		}
		slices.Reverse(calls)
		got, err := r.s.Judge(calls)
		if want := r.recovery(40 * sec); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		check.Equal(t, got.Back(), r.recovery(40*sec).Recovered && good(7) == 10, "back of %+v", got)
	}
	// What did not end in time may still succeed, and what began after it is no call of the run.
	s := recorded(allBut()).s
	in, err := s.Judge([]Made{{30 * sec, 41 * sec, true}})
	out, err2 := s.Judge([]Made{{41 * sec, 42 * sec, false}})
	if err != nil || err2 != nil || in.Measured || out != in {
		t.Errorf("%+v, %v and %+v, %v: both are too few calls", in, err, out, err2)
	}
	for field, c := range map[string]Made{"Made.Began": {-1, sec, true}, "Made.Ended": {2 * sec, sec, true}} {
		if _, err := s.Judge([]Made{c}); !slices.Equal(problem.Fields(err), []string{field}) {
			t.Errorf("%+v: %v, want one about %s", c, err, field)
		}
	}
	if _, err := (&Scenario{}).Judge(nil); err == nil {
		t.Error("no error of a scenario that is none")
	}
}
