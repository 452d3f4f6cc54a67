package outlier

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"
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
	data, err := os.ReadFile("testdata/envoy_outlier.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
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
		s := must(t, c)
		s.Update(0, keys(v.Hosts))
		for _, key := range keys(v.Failing) {
			calls(t, s, 0, key, 5, FiveXX)
			if status(t, s, 0, keys(1)[0]).Ejected != (v.Ejected > 0) {
				t.Errorf("%+v: the first is not the one", v)
			}
		}
		if got := len(ejected(s, 0)); got != v.Ejected {
			t.Errorf("%+v: %d are ejected", v, got)
		}
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
		s := must(t, c)
		s.Update(0, keys(1))
		for _, step := range steps.Steps {
			now := seconds(step.At)
			sweep(s, now)
			calls(t, s, now, keys(1)[0], step.Fail, FiveXX)
			calls(t, s, now, keys(1)[0], step.Succeed, Success)
			if got := len(ejected(s, now)) == 1; got != step.Ejected {
				t.Errorf("%s, at %v: ejected %v, want %v", name, now, got, step.Ejected)
			}
		}
	}
}

func TestEnvoyMaxEjectTime(t *testing.T) {
	for _, v := range vectors(t).MaxTime {
		c := EnvoyDefaults()
		c.BaseEjection, c.MaxEjection, c.MaxEjected = seconds(v.Base), seconds(v.Max), 100
		s := must(t, c)
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
			if now-from != want {
				t.Errorf("max %v, ejection %d: back after %v, want %v", v.Max, i+1, now-from, want)
			}
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
		s := must(t, config)
		s.Update(0, keys(1))
		for range 5 {
			e, _ := s.Pick(0, nil, nil)
			s.Done(0, e, FiveXX, func() uint64 { return c.random })
		}
		if d := s.Status(0)[0].Until - 30*time.Second; d < c.from || d > c.to {
			t.Errorf("%s: %v more than the base", name, d)
		}
	}
}

// What counts as what, without and with split_external_local_origin_errors.
func TestEnvoyOutcomes(t *testing.T) {
	for _, v := range []struct {
		split bool
		row   []Outcome
		want  Reason
	}{
		{false, []Outcome{FiveXX, FiveXX, FiveXX, FiveXX, FiveXX}, Consecutive},
		{false, []Outcome{FiveXX, GatewayFailure, LocalOrigin, FiveXX, LocalOrigin}, Consecutive},
		{false, []Outcome{LocalOrigin, GatewayFailure, LocalOrigin, GatewayFailure, LocalOrigin}, ConsecutiveGateway},
		{true, []Outcome{FiveXX, FiveXX, LocalOrigin, GatewayFailure, FiveXX, FiveXX}, Consecutive},
		{true, []Outcome{LocalOrigin, LocalOrigin, LocalOrigin, LocalOrigin, LocalOrigin}, ConsecutiveLocal},
		// An answer, even a bad one, shows that the endpoint can be reached.
		{true, []Outcome{LocalOrigin, LocalOrigin, LocalOrigin, LocalOrigin, FiveXX, LocalOrigin, LocalOrigin, LocalOrigin, LocalOrigin, LocalOrigin}, ConsecutiveLocal},
		{false, []Outcome{FiveXX, FiveXX, Neutral, FiveXX, FiveXX, 77, FiveXX}, Consecutive},
		{false, []Outcome{FiveXX, FiveXX, FiveXX, FiveXX, Success, FiveXX, FiveXX, FiveXX, FiveXX, FiveXX}, Consecutive},
	} {
		c := EnvoyDefaults()
		c.Split, c.MaxEjected, c.Enforce = v.split, 100, Enforce{}
		var got []Change
		s := must(t, c, func(c Change) { got = append(got, c) })
		s.Update(0, keys(1))
		for i, o := range v.row {
			if len(got) > 0 {
				t.Errorf("%+v: ejected after %d", v, i)
			}
			call(t, s, 0, keys(1)[0], o)
		}
		if len(got) != 1 || got[0].Reason != v.want {
			t.Errorf("%+v: %v", v, got)
		}
	}
}

// An outlier that is not enforced is reported, each time anew.
func TestEnvoyDetectsWithoutEnforcing(t *testing.T) {
	c := EnvoyDefaults()
	c.Enforce.Consecutive, c.MaxEjected = -1, 100
	var got []Change
	s := must(t, c, func(c Change) { got = append(got, c) })
	s.Update(0, keys(1))
	calls(t, s, 0, keys(1)[0], 14, FiveXX)
	if len(got) != 2 || got[0].Kind != Spared || got[1].Kind != Spared || len(ejected(s, 0)) != 0 {
		t.Errorf("%v", got)
	}
}

// With a chance of 30 % about as many are ejected.
func TestEnforceIsAChance(t *testing.T) {
	c := EnvoyDefaults()
	c.MaxEjected, c.Enforce.Consecutive = 100, 30
	s := must(t, c)
	n := 3000
	s.Update(0, keys(n))
	r := rand.New(rand.NewPCG(1, 1))
	var all []Endpoint
	for range 5 * n { // in turn
		e, _ := s.Pick(0, r.Uint64, nil)
		all = append(all, e)
	}
	for _, e := range all {
		s.Done(0, e, FiveXX, r.Uint64)
	}
	if got := len(ejected(s, 0)); got < 800 || got > 1000 {
		t.Errorf("%d of %d are ejected, want about 900", got, n)
	}
}

// Envoy's multiplier grows while multiplier × base < max + base: one beyond the one
// that reaches the longest ejection. So from there the next ejection is as long
// after two quiet intervals, and shorter only after three.
func TestEnvoyMultiplierGoesOneBeyond(t *testing.T) {
	const base, longest = 10 * time.Second, 300 * time.Second
	for quiet := range 6 {
		c := EnvoyDefaults()
		c.BaseEjection, c.MaxEjection, c.MaxEjected = base, longest, 100
		s := must(t, c)
		s.Update(0, keys(1))
		var now time.Duration
		multiplier := time.Duration(0)
		eject := func() time.Duration {
			if multiplier*base < longest+base {
				multiplier++
			}
			calls(t, s, now, keys(1)[0], 5, FiveXX)
			from := now
			now = s.Status(now)[0].Until
			sweep(s, now)
			return now - from
		}
		for range 40 {
			eject()
		}
		for range quiet {
			now += c.Interval
			sweep(s, now)
			multiplier--
		}
		if got, want := eject(), min(multiplier*base, longest); got != want {
			t.Errorf("after %d quiet intervals: ejected for %v, want %v", quiet, got, want)
		}
	}
}
