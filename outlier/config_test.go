package outlier

import (
	"math"
	"strings"
	"testing"
	"time"

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
		if a != b {
			t.Errorf("%+v\nis %+v\nnot %+v", v.zero, a, b)
		}
	}
}

// EnvoyDefaults has the values that envoy/config/cluster/v3/outlier_detection.proto and
// outlier_detection_impl.h give as defaults.
func TestEnvoyDefaults(t *testing.T) {
	if err := EnvoyDefaults().Validate(); err != nil {
		t.Error(err)
	}
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
		if got := strings.Join(problem.Fields(err), " "); got != v.want {
			t.Errorf("%+v: complains of %q, want %q", v.c, got, v.want)
		}
		if s, err2 := New(v.c); (err == nil) != (err2 == nil) || (s == nil) != (err != nil) {
			t.Errorf("%+v: New says %v, Validate %v", v.c, err2, err)
		}
	}
}
