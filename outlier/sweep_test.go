package outlier

import (
	"math"
	"slices"
	"testing"
	"time"
)

// Whether calls come all the time or not for an hour: what is due is done as of the
// moment it was due.
func TestSweepsAreMadeUpFor(t *testing.T) {
	var got []Change
	s := must(t, Config{Jitter: -1, Choice: RoundRobin}, func(c Change) { got = append(got, c) })
	s.Update(0, keys(2))
	fillCalls(t, s, 0, 100, map[string]int{keys(2)[0]: 50})
	if len(got) != 1 || got[0].Kind != Ejected {
		t.Fatalf("%v", got)
	}
	until := got[0].Until
	sweep(s, time.Hour)
	if len(got) != 2 || got[1].Kind != Returned || got[1].At != until {
		t.Errorf("%+v, want a return at %v", got[1:], until)
	}
	if st := status(t, s, time.Hour, keys(2)[0]); st.Calls != 0 || st.Failures != 0 {
		t.Errorf("after an hour: %+v", st)
	}
	// The multiplier went down meanwhile: the next ejection is a short one.
	fillCalls(t, s, time.Hour, 100, map[string]int{keys(2)[0]: 50})
	if last := got[len(got)-1]; last.Kind != Ejected || last.Until-last.At != 30*time.Second {
		t.Errorf("%+v", last)
	}
}

// Status returns what is true at that time, also if no call has come since.
func TestStatusLooksAhead(t *testing.T) {
	s := must(t, Config{Unconditional: true, Jitter: -1})
	s.Update(0, keys(2))
	calls(t, s, 500*ms, keys(2)[1], 5, FiveXX)
	for _, v := range []struct {
		now     time.Duration
		ejected bool
		calls   int64
	}{
		{500 * ms, true, 5}, {9999 * ms, true, 5}, {10 * time.Second, true, 0}, {30 * time.Second, true, 0},
		{30999 * ms, true, 0}, {31 * time.Second, false, 0}, {math.MaxInt64, false, 0}, {0, true, 5}, {math.MinInt64, true, 5},
	} {
		if st := s.Status(v.now)[1]; st.Ejected != v.ejected || st.Calls != v.calls || st.Ejections != 1 || v.ejected != (st.Until != 0) {
			t.Errorf("at %v: %+v, want %+v", v.now, st, v)
		}
	}
	rate, ok := s.Status(0)[1].SuccessRate()
	if rate != 0 || !ok {
		t.Errorf("success rate %v, %v", rate, ok)
	}
	if _, ok := s.Status(0)[0].SuccessRate(); ok {
		t.Error("a success rate of nothing")
	}
}

// Calls that began before an ejection do not count for the endpoint after it.
func TestResultsOfBeforeDoNotCount(t *testing.T) {
	s := must(t, Config{Choice: RoundRobin, Jitter: -1})
	s.Update(0, keys(2))
	var old []Endpoint
	for range 50 { // they hang
		for {
			e, _ := s.Pick(0, middle, nil)
			if e.Key() == keys(2)[0] {
				old = append(old, e)
				break
			}
			s.Done(0, e, Success, middle)
		}
	}
	for i := 0; len(ejected(s, time.Duration(i)*100*ms)) == 0; i++ {
		now := time.Duration(i) * 100 * ms
		for _, key := range keys(2) {
			if i > 1000 {
				t.Fatal("never ejected")
			}
			o := Success
			if key == keys(2)[0] {
				o = FiveXX
			}
			if len(ejected(s, now)) == 0 {
				call(t, s, now, key, o)
			}
		}
	}
	now := 200 * time.Second // long back
	sweep(s, now)
	fillCalls(t, s, now, 50, nil)
	now += 9 * time.Second
	for _, e := range old {
		s.Done(now, e, LocalOrigin, middle)
	}
	for range 11 {
		now += time.Second
		sweep(s, now)
	}
	if st := s.Status(now)[0]; st.Ejected || st.Ejections != 1 || st.Load != 0 {
		t.Errorf("calls of before the ejection count: %+v", st)
	}
}

// Off: everything fails, nobody goes.
func TestOff(t *testing.T) {
	s := must(t, Config{Off: true, Unconditional: true, FailurePercent: 1, FailureMinHosts: 1, FailureMinCalls: 1, ConsecutiveGateway: 1, MaxEjected: 100},
		func(c Change) { t.Error(c) })
	s.Update(0, keys(3))
	for i := range 1000 {
		now := time.Duration(i) * 100 * ms
		e, _ := s.Pick(now, dice.Uint64, nil)
		o := GatewayFailure
		if e.Key() == keys(1)[0] {
			o = Success
		}
		s.Done(now, e, o, dice.Uint64)
	}
}

// One endpoint alone has nobody to be compared with.
func TestTheLastOneStays(t *testing.T) {
	s := must(t, Config{MaxEjected: 100}, func(c Change) { t.Error(c) })
	s.Update(0, keys(2))
	for range 10 {
		call(t, s, 0, keys(2)[0], Success)
	}
	s.Update(0, keys(2)[1:])
	for i := range 300 {
		call(t, s, time.Duration(i)*50*ms, keys(2)[1], FiveXX)
	}
}

// The worst goes first when there is not room for all.
func TestTheWorstGoesFirst(t *testing.T) {
	s := must(t, Config{Choice: RoundRobin, Sweeps: 1, MaxEjected: 20, Consecutive: -1})
	s.Update(0, keys(7))
	fillCalls(t, s, 0, 200, map[string]int{keys(7)[0]: 100, keys(7)[3]: 150, keys(7)[6]: 120})
	sweep(s, 10*time.Second)
	if got := ejected(s, 10*time.Second); !slices.Equal(got, keys(7)[3:4]) {
		t.Errorf("ejected %v", got)
	}
	if st := s.Status(10 * time.Second); st[0].Overflows != 1 || st[6].Overflows != 1 || st[3].Overflows != 0 || st[1].Overflows != 0 {
		t.Errorf("%+v", st)
	}
}

// Time that runs backwards a little is taken as it comes.
func TestTimeRunsBackwards(t *testing.T) {
	s := must(t, Config{})
	s.Update(5*time.Second, keys(3))
	for i := range 2000 {
		now := time.Duration(i)*20*ms - time.Duration(i%7)*50*ms
		e, ok := s.Pick(now, dice.Uint64, nil)
		if !ok {
			t.Fatal("no endpoint")
		}
		s.Done(now-time.Second, e, Success, dice.Uint64)
	}
	for _, st := range s.Status(0) {
		if st.Ejected || st.Load != 0 {
			t.Errorf("%+v", st)
		}
	}
}

// Quiet time counts in full, whether calls come meanwhile or not: for each whole
// Interval since it came back an endpoint's next ejection is a step shorter.
func TestQuietTimeIsCountedInFull(t *testing.T) {
	const interval = DefaultInterval
	for _, v := range []struct {
		name string
		at   []time.Duration // calls come then, since it is back
		want int64           // times BaseEjection
	}{
		{"at once", nil, 4},
		{"all the time", []time.Duration{interval / 2, interval - 1, interval - 1}, 4},
		{"one interval", []time.Duration{interval}, 3},
		{"two and a half, then a half", []time.Duration{5 * interval / 2, 3*interval - 1}, 2},
		{"two and a half, then a half and more", []time.Duration{5 * interval / 2, 3 * interval}, 1},
		{"an hour", []time.Duration{time.Hour}, 1},
	} {
		var last Change
		s := must(t, Config{Unconditional: true, Jitter: -1}, func(c Change) { last = c })
		s.Update(0, keys(2))
		now := time.Duration(0)
		for range 3 {
			calls(t, s, now, keys(1)[0], 5, FiveXX)
			now = last.Until
			sweep(s, now)
		}
		if last.Kind != Returned || last.At != now {
			t.Fatalf("%+v, want a return at %v", last, now)
		}
		later := now
		for _, d := range v.at {
			later = now + d
			sweep(s, later)
		}
		calls(t, s, later, keys(1)[0], 5, FiveXX)
		if got := last.Until - last.At; last.Kind != Ejected || got != time.Duration(v.want)*DefaultBaseEjection {
			t.Errorf("%s: ejected for %v, want %d times the base", v.name, got, v.want)
		}
	}
}

// An endpoint that starts anew has no calls that began since: those under way are of before.
func TestWhatIsUnderWayWhenAnEndpointStartsAnewIsOfBefore(t *testing.T) {
	s := must(t, Config{Choice: RoundRobin, Jitter: -1})
	s.Update(0, keys(1))
	for range 5 {
		s.Pick(0, middle, nil)
	}
	h := s.hosts[0]
	if n := s.growth(h); n != 5 {
		t.Fatalf("%d of 5 calls began in the first interval", n)
	}
	s.forget(h)
	if n := s.growth(h); n != 0 {
		t.Errorf("%d calls began since the endpoint started anew", n)
	}
	s.Pick(0, middle, nil)
	if n := s.growth(h); n != 1 {
		t.Errorf("%d calls began since the endpoint started anew, and one more", n)
	}
}
