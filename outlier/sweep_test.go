package outlier

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// Off: everything fails, nobody goes.
func TestOff(t *testing.T) {
	s := must.Have(New(Config{Off: true, Unconditional: true, FailurePercent: 1, FailureMinHosts: 1, FailureMinCalls: 1, ConsecutiveGateway: 1, MaxEjected: 100},
		func(c Change) { t.Error(c) }))
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

// Time that runs backwards a little is taken as it comes.
func TestTimeRunsBackwards(t *testing.T) {
	s := must.Have(New(Config{}))
	s.Update(5*time.Second, keys(3))
	for i := range 2000 {
		now := time.Duration(i)*20*ms - time.Duration(i%7)*50*ms
		e, ok := s.Pick(now, dice.Uint64, nil)
		if !ok {
			t.Fatal("no endpoint")
		}
		s.Done(now-time.Second, e, Success, dice.Uint64)
	}
	for _, st := range s.States(0) {
		if st.Ejected || st.Load != 0 {
			t.Errorf("%+v", st)
		}
	}
}

// An endpoint that starts anew has no calls that began since: those under way are of before.
func TestWhatIsUnderWayWhenAnEndpointStartsAnewIsOfBefore(t *testing.T) {
	s := must.Have(New(Config{Jitter: -1}))
	s.Update(0, keys(1))
	h := s.hosts[0]
	for _, want := range []int64{1, 2, 0, 1} {
		if want == 0 {
			s.forget(h)
		} else {
			s.Pick(0, middle, nil)
		}
		check.Equal(t, s.growth(h), want, "calls began")
	}
}

func TestListenersHearInOrder(t *testing.T) {
	var a, b []Change
	var s *Set
	var err error
	s, err = New(Config{Unconditional: true, Jitter: -1}, func(c Change) {
		a = append(a, c)
		// A listener may use the set.
		s.States(c.At)
		s.Update(c.At, append(keys(2), c.Key))
		sweep(s, c.At)
	}, nil, func(c Change) { b = append(b, c) })
	must.Succeed(err)
	s.Update(0, keys(2))
	for i := range 5 {
		now := time.Duration(i) * 100 * time.Second
		sweep(s, now)
		calls(t, s, now, keys(2)[i%2], 5, FiveXX)
	}
	if len(a) != 9 || !slices.Equal(a, b) {
		t.Fatalf("%d changes, the same to both: %v", len(a), slices.Equal(a, b))
	}
	for i, c := range a {
		if want := ChangeKind(i % 2); c.Kind != want || i > 0 && c.At < a[i-1].At {
			t.Errorf("change %d: %+v", i, c)
		}
	}
	c := a[0]
	if c != (Change{Key: keys(1)[0], Kind: Ejected, Reason: Consecutive, Until: 30 * time.Second, Ejections: 1, Calls: 5, Failures: 5}) {
		t.Errorf("%+v", c)
	}
	check.Equal(t, c.String(), "10.0.0.0:80 ejected: consecutive failures (5 of 5 failed)", "c.String()")
	check.Equal(t, a[1].String(), "10.0.0.0:80 returned: time passed", "a[1].String()")
}

// A change by a statistic says what is usual, and from where on it was another's fault. Success rates
// of 100 % four times and of 40 % have a mean of 88 %, and a deviation of 24 %.
func TestWhatAChangeSays(t *testing.T) {
	for statistic, want := range map[Statistic]Change{
		Statistic(0):  {Usual: 1, Threshold: 0.8},
		MeanDeviation: {Usual: 0.88, Threshold: 0.88 - 1.9*0.24},
	} {
		var got []Change
		s := must.Have(New(Config{Choice: RoundRobin, Sweeps: 1, Consecutive: -1, Jitter: -1, Statistic: statistic}, func(c Change) { got = append(got, c) }))
		s.Update(0, keys(5))
		fillCalls(t, s, 0, 100, map[string]int{keys(5)[2]: 60})
		sweep(s, 12*time.Second)
		if len(got) != 1 || math.Abs(got[0].Usual-want.Usual) > 1e-9 || math.Abs(got[0].Threshold-want.Threshold) > 1e-9 {
			t.Fatalf("%v: %+v, want %+v", statistic, got, want)
		}
		got[0].Usual, got[0].Threshold = 0, 0
		if want := (Change{Key: keys(3)[2], Kind: Ejected, Reason: SuccessRate, At: 10 * time.Second, Until: 40 * time.Second, Ejections: 1, Calls: 100, Failures: 60}); got[0] != want {
			t.Errorf("%v: %+v, want %+v", statistic, got[0], want)
		}
	}
}

func TestPermitted(t *testing.T) {
	for _, v := range []struct {
		percent int
		limit   Limit
		n, want int
	}{
		{10, RoundDown, 9, 0}, {10, RoundDown, 10, 1}, {10, RoundDown, 19, 1}, {10, RoundDown, 20, 2}, {10, RoundDown, 3, 0},
		{10, RoundUp, 1, 0}, {10, RoundUp, 3, 1}, {10, RoundUp, 10, 1}, {10, RoundUp, 11, 2}, {50, RoundUp, 3, 2},
		{10, AtLeastOne, 3, 1}, {10, AtLeastOne, 10, 1}, {10, AtLeastOne, 20, 2}, {0, AtLeastOne, 2, 1}, {0, AtLeastOne, 3, 1}, {0, AtLeastOne, 4, 2},
		{0, AtLeastOne, 5, 2}, {0, AtLeastOne, 1, 0}, {0, AtLeastOne, 0, 0}, {100, AtLeastOne, 5, 4}, {100, RoundDown, 5, 4}, {-1, AtLeastOne, 9, 0},
		{-1, RoundUp, 9, 0}, {7, RoundDown, 1_000_003, 70_000}, {7, RoundUp, 1_000_003, 70_001},
	} {
		r := Config{MaxEjected: v.percent, Limit: v.limit}.rules()
		check.Equal(t, r.permitted(v.n), v.want, "%+v", v)
	}
	r := EnvoyDefaults()
	r.MaxEjected = 100
	rules := r.rules()
	check.Equal(t, rules.permitted(5), 5, "Envoy may eject all")
}
