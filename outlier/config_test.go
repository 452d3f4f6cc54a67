package outlier

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/problem"
)

// Zeros stand for the values that the documentation gives, for both statistics.
func TestZerosAreTheDefaults(t *testing.T) {
	all := Enforce{100, 100, 100, 100, 100, 100, 100}
	for _, v := range []struct{ zero, full Config }{
		{Config{}, Config{Interval: 10 * time.Second, Sweeps: 10, Consecutive: 5, ConsecutiveGateway: -1, ConsecutiveLocal: 5, Factor: 3.5, Floor: 0.2,
			MinHosts: 2, MinCalls: 5, FailureMinHosts: 5, FailureMinCalls: 50, Enforce: all, BaseEjection: 30 * time.Second,
			MaxEjection: 300 * time.Second, Jitter: 3 * time.Second, MaxEjected: 50}},
		{Config{Split: true}, Config{Split: true, ConsecutiveLocal: 5}},
		{Config{Statistic: MeanDeviation}, Config{Statistic: MeanDeviation, Factor: 1.9, MinHosts: 5, MinCalls: 100}},
		{Config{BaseEjection: time.Hour}, Config{BaseEjection: time.Hour, MaxEjection: time.Hour, Jitter: 6 * time.Minute}},
		{Config{BaseEjection: 1}, Config{BaseEjection: 1, Jitter: 1}},
		{Config{Off: true}, Config{Off: true, Statistic: MeanDeviation, Consecutive: 3, FailurePercent: 20, Factor: 1.9, MinHosts: 5, MinCalls: 100}},
	} {
		a, b := v.zero.rules(), v.full.rules()
		if v.zero.Off {
			b.factor, b.minHosts, b.minCalls = a.factor, a.minHosts, a.minCalls // do not matter
		}
		check.Equal(t, a, b, "%+v", v.zero)
	}
}

// EnvoyDefaults has the values that envoy/config/cluster/v3/outlier_detection.proto and
// outlier_detection_impl.h give as defaults.
func TestEnvoyDefaults(t *testing.T) {
	check.Equal(t, EnvoyDefaults().Validate(), nil, "EnvoyDefaults().Validate()")
	r := EnvoyDefaults().rules()
	if r.width != 10*time.Second || r.inARow != [rows]uint64{5, 5, 0} || r.enforce != [findings]uint64{100, 0, 100, 100, 100, 0, 0} ||
		r.factor != 1.9 || r.minHosts != 5 || r.minCalls != 100 || r.failurePercent != 85 || r.failureMinHosts != 5 || r.failureMinCalls != 50 ||
		r.base != 30*time.Second || r.max != 300*time.Second || r.jitter != 0 || r.maxEjected != 10 || r.limit != RoundDown || !r.unconditional {
		t.Errorf("%+v", r)
	}
}

func TestValidate(t *testing.T) {
	inf := math.Inf(1)
	for _, v := range []struct {
		c    Config
		want string
	}{
		{Config{}, ""},
		{Config{Choice: 4, Statistic: 3, Limit: 3}, "Choice Statistic Limit"},
		{Config{Interval: -1, Sweeps: -1}, "Interval Sweeps"},
		{Config{Interval: ms - 1, Sweeps: 101}, "Interval Sweeps"},
		{Config{Interval: ms, Sweeps: 100}, ""},
		{Config{Consecutive: 1_000_001, ConsecutiveGateway: math.MaxInt, ConsecutiveLocal: math.MaxInt}, "Consecutive ConsecutiveGateway ConsecutiveLocal"},
		{Config{Consecutive: 1_000_000, ConsecutiveGateway: math.MinInt, ConsecutiveLocal: -1}, ""},
		{Config{Factor: -1, Floor: 1}, "Factor Floor"},
		{Config{Factor: math.NaN(), Floor: math.NaN()}, "Factor Floor"},
		{Config{Factor: inf, Floor: inf}, "Factor Floor"},
		{Config{Factor: 1000, Floor: -inf}, ""},
		{Config{MinHosts: -1, MinCalls: -1, FailureMinHosts: -1, FailureMinCalls: -1}, "MinHosts MinCalls FailureMinHosts FailureMinCalls"},
		{Config{FailurePercent: -1, MaxEjected: 101, Panic: -1}, "FailurePercent MaxEjected Panic"},
		{Config{FailurePercent: 101, MaxEjected: -5, Panic: 101}, "FailurePercent Panic"},
		{Config{FailurePercent: 100, MaxEjected: 100, Panic: 100}, ""},
		{Config{Enforce: Enforce{101, 101, 101, 101, 101, 101, 101}},
			"Enforce.Consecutive Enforce.ConsecutiveGateway Enforce.ConsecutiveLocal Enforce.SuccessRate Enforce.LocalSuccessRate Enforce.FailurePercent Enforce.LocalFailurePercent"},
		{Config{Enforce: Enforce{-1, 100, 0, -1, -1, -1, -1}}, ""},
		{Config{BaseEjection: -1, MaxEjection: -1}, "BaseEjection MaxEjection"},
		{Config{BaseEjection: time.Hour, MaxEjection: time.Minute}, "MaxEjection"},
		{Config{MaxEjection: time.Second}, "MaxEjection"}, // less than the default of BaseEjection
		{Config{BaseEjection: time.Second, MaxEjection: time.Second}, ""},
	} {
		err := v.c.Validate()
		check.Equal(t, strings.Join(problem.Fields(err), " "), v.want, "%+v: complains of", v.c)
		if s, err2 := New(v.c); (err == nil) != (err2 == nil) || (s == nil) != (err != nil) {
			t.Errorf("%+v: New says %v, Validate %v", v.c, err2, err)
		}
	}
}

// Updates that change nothing cost no memory and forget nothing.
func TestUpdateWithTheSame(t *testing.T) {
	s := must.Have(New(Config{}))
	k := keys(50)
	s.Update(0, k)
	e, _ := s.Pick(0, dice.Uint64, nil)
	check.Equal(t, testing.AllocsPerRun(100, func() { s.Update(0, k) }), 0, "allocations")
	if st := status(t, s, 0, e.Key()); st.Load != 1 {
		t.Errorf("%+v", st)
	}
}

// A failure that is counted just before its endpoint goes finds it gone when it looks
// at the row.
func TestARowOfOneThatIsGone(t *testing.T) {
	s := must.Have(New(Config{Choice: RoundRobin, Consecutive: 30, MaxEjected: 100}, func(c Change) { t.Error(c) }))
	s.Update(0, []string{"a", "b", "c"})
	h := s.byKey["a"]
	calls(t, s, 0, "a", 29, FiveXX)
	calls(t, s, 0, "b", 1000, Success)
	s.Update(0, []string{"b", "c"})
	s.failed(0, h, FiveXX, middle)
	if s.ejected != 0 || h.ejected {
		t.Error("one that is gone was ejected")
	}
}

// Quiet time begins at the epoch at the earliest: an endpoint that an Update has taken
// back before it has not been well for ever.
func TestShrinkingBeforeTheEpoch(t *testing.T) {
	for _, before := range []time.Duration{-time.Hour, math.MinInt64} {
		for quiet, want := range map[time.Duration]time.Duration{time.Second: 2 * DefaultBaseEjection, DefaultInterval: DefaultBaseEjection} {
			s := must.Have(New(Config{Unconditional: true, Jitter: -1}))
			s.Update(0, keys(4))
			for _, key := range keys(2) {
				calls(t, s, 0, key, 5, FiveXX)
			}
			s.Update(before, keys(2)) // one has to come back
			if got := ejected(s, 0); !slices.Equal(got, keys(2)[1:]) {
				t.Fatalf("ejected %v", got)
			}
			s.Update(before, append(keys(4)[2:], keys(1)[0]))
			sweep(s, quiet)
			calls(t, s, quiet, keys(1)[0], 5, FiveXX)
			check.Equal(t, status(t, s, quiet, keys(1)[0]).Until-quiet, want, "back at %v, ejected at %v: for how long", before, quiet)
		}
	}
}
