package outlier

import (
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

type envoyStep struct {
	At      float64
	Fail    int
	Succeed int
	Ejected bool
}

type envoySteps struct {
	Base, Max           float64
	FailurePercentHosts int `json:"failure_percentage_minimum_hosts"`
	Steps               []envoyStep
}

// vectors are the published cases of Envoy.
func vectors(t *testing.T) (v struct {
	Thresholds []struct {
		Rates                  []int64
		Factor                 float64 `json:"stdev_factor"`
		Mean, Stdev, Threshold float64
	} `json:"success_rate_threshold"`
	MaxEjected []struct{ Percent, Hosts, Failing, Ejected int } `json:"max_ejection_percentage"`
	Backoff    envoySteps                                       `json:"eject_time_backoff"`
	TimeBased  envoySteps                                       `json:"eject_time_backoff_time_based"`
	MaxTime    []struct {
		Base, Max, Longest float64
		GrowsFor           int `json:"grows_for"`
	} `json:"max_eject_time"`
	Jitter struct{ Max float64 }
}) {
	t.Helper()
	data := must.Have(os.ReadFile("testdata/envoy_outlier.json"))
	must.Succeed(json.Unmarshal(data, &v))
	return v
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func TestEnvoyThreshold(t *testing.T) {
	for _, v := range vectors(t).Thresholds {
		var e []sample
		for _, rate := range v.Rates {
			e = append(e, sample{counts: counts{100, 100 - rate}})
		}
		mean, threshold := meanThreshold(e, v.Factor)
		if mean != v.Mean || threshold != v.Threshold {
			t.Errorf("%v: mean %v, threshold %v, want %v, %v", v.Rates, mean, threshold, v.Mean, v.Threshold)
		}
	}
}

func TestEnvoyMaxEjectionPercentage(t *testing.T) {
	for _, v := range vectors(t).MaxEjected {
		c := EnvoyDefaults()
		c.MaxEjected = v.Percent
		s := must.Have(New(c))
		s.Update(0, keys(v.Hosts))
		for _, key := range keys(v.Failing) {
			calls(t, s, 0, key, 5, FiveXX)
			check.Equal(t, status(t, s, 0, keys(1)[0]).Ejected, v.Ejected > 0, "%+v: the first is out", v)
		}
		check.Equal(t, len(ejected(s, 0)), v.Ejected, "%+v: ejected", v)
	}
}

func TestEnvoyEjectionTimes(t *testing.T) {
	v := vectors(t)
	for name, steps := range map[string]envoySteps{"backoff": v.Backoff, "time based": v.TimeBased} {
		c := EnvoyDefaults()
		c.BaseEjection, c.MaxEjection, c.MaxEjected = seconds(steps.Base), seconds(steps.Max), 100
		if steps.FailurePercentHosts > 0 {
			c.FailureMinHosts = steps.FailurePercentHosts
			c.Enforce = Enforce{Consecutive: -1, ConsecutiveGateway: -1, SuccessRate: -1}
		}
		s := must.Have(New(c))
		s.Update(0, keys(1))
		for _, step := range steps.Steps {
			now := seconds(step.At)
			sweep(s, now)
			calls(t, s, now, keys(1)[0], step.Fail, FiveXX)
			calls(t, s, now, keys(1)[0], step.Succeed, Success)
			check.Equal(t, len(ejected(s, now)) == 1, step.Ejected, "%s, at %v: ejected", name, now)
		}
	}
}

func TestEnvoyMaxEjectTime(t *testing.T) {
	for _, v := range vectors(t).MaxTime {
		c := EnvoyDefaults()
		c.BaseEjection, c.MaxEjection, c.MaxEjected = seconds(v.Base), seconds(v.Max), 100
		s := must.Have(New(c))
		s.Update(0, keys(1))
		var now time.Duration
		for i := range v.GrowsFor + 10 {
			calls(t, s, now, keys(1)[0], 5, FiveXX)
			from := now
			for len(ejected(s, now)) == 1 {
				now += 10 * time.Second
				sweep(s, now)
			}
			want := min(seconds(float64(i+1)*v.Base), seconds(v.Longest))
			check.Equal(t, now-from, want, "max %v, ejection %d: back after", v.Max, i+1)
		}
	}
}

// Envoy takes random() % (jitter+1) in milliseconds; here every nanosecond may be.
// Both are uniform and include both ends.
func TestEnvoyJitter(t *testing.T) {
	longest := seconds(vectors(t).Jitter.Max)
	for name, c := range map[string]struct {
		random   uint64
		from, to time.Duration
	}{"least": {0, 0, 0}, "most": {math.MaxUint64, longest, longest}, "between": {123456789 << 30, 1, longest - 1}} {
		config := EnvoyDefaults()
		config.Jitter, config.MaxEjected = longest, 100
		s := must.Have(New(config))
		s.Update(0, keys(1))
		for range 5 {
			e, _ := s.Pick(0, nil, nil)
			s.Done(0, e, FiveXX, func() uint64 { return c.random })
		}
		if d := s.States(0)[0].Until - 30*time.Second; d < c.from || d > c.to {
			t.Errorf("%s: %v more than the base", name, d)
		}
	}
}
