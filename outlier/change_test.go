package outlier

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

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
	if got, want := c.String(), "10.0.0.0:80 ejected: consecutive failures (5 of 5 failed)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := a[1].String(), "10.0.0.0:80 returned: time passed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
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
