package throttle

import (
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// awsVectors are the published cases of the AWS SDKs; the file names their places.
type awsVectors struct {
	Curve []struct {
		Name    string
		LastMax string `json:"last_max"`
		Given   struct {
			LastMaxRate  float64 `json:"last_max_rate"`
			LastThrottle float64 `json:"last_throttle"`
		}
		Steps []struct {
			At, Rate    float64
			RateLimited bool `json:"throttled"`
		}
	}
	Plateau []struct{ Beta, Max, Seconds float64 }
	Start   []struct{ Beta, Max, Rate float64 }
	E2E     []struct {
		At, Sent, Fill float64
		RateLimited    bool `json:"throttled"`
	} `json:"end_to_end"`
	Meter []struct {
		Name string
		At   []float64
		Sent float64
	}
	Bucket []struct {
		Name      string
		Rate      float64
		At, Waits []float64
	}
}

func vectors(t *testing.T) (v awsVectors) {
	t.Helper()
	data := must.Have(os.ReadFile("testdata/aws_cubic.json"))
	must.Succeed(json.Unmarshal(data, &v))
	if len(v.Curve) != 3 || len(v.E2E) != 17 || len(v.Meter) != 5 || len(v.Bucket) != 3 {
		t.Fatalf("cases are missing: %+v", v)
	}
	return v
}

func TestVectorsCurve(t *testing.T) {
	v := vectors(t)
	for _, c := range v.Curve {
		last, fell, rate := c.Given.LastMaxRate, c.Given.LastThrottle, c.Given.LastMaxRate
		for _, s := range c.Steps {
			if s.RateLimited {
				last, fell, rate = rate, s.At, awsCurve.beta*rate
				if c.LastMax == "after" {
					last = rate
				}
			} else {
				rate = awsCurve.rate(s.At-fell, last)
			}
			if !near(rate, s.Rate) {
				t.Errorf("%s, at %v: %v, want %v", c.Name, s.At, rate, s.Rate)
			}
		}
	}
	for _, c := range v.Plateau {
		k := curve{c.Beta, awsCurve.scale}
		if got := k.plateau(c.Max); !near(got, c.Seconds) {
			t.Errorf("plateau of %v: %v, want %v", c.Max, got, c.Seconds)
		}
		if got := k.rate(c.Seconds, c.Max); !near(got, c.Max) {
			t.Errorf("on the plateau of %v: %v", c.Max, got)
		}
	}
	for _, c := range v.Start {
		if got := (curve{c.Beta, awsCurve.scale}).rate(0, c.Max); !near(got, c.Rate) {
			t.Errorf("at once after a rate-limited answer at %v: %v, want %v", c.Max, got, c.Rate)
		}
	}
}

// The curve of the mixed case, not step by step but through the throttle: the rate
// before a rate-limited answer is noted, not the one after it.
func TestTheRateBeforeIsTheMaximum(t *testing.T) {
	r := newRate(0)
	ru := Config{Mode: Cubic}.rules()
	r.fill, r.reducedAt, r.max = 10, 0, 10
	r.limiting.Store(true)
	r.meter.rate = 1e9
	r.done(&ru, 7*sec, RateLimited)
	if r.max != 10 || !near(r.fill, 7) {
		t.Errorf("after a rate-limited answer at 10/s: maximum %v, rate %v, want 10 and 7", r.max, r.fill)
	}
}

func TestVectorsEndToEnd(t *testing.T) {
	// The cases have no two rate-limited answers within a second.
	for _, every := range []time.Duration{0, -1} {
		th := must.Have(New(Config{Mode: Cubic, FallEvery: every}))
		th.Start(0, nil) // the client is made at 0
		for _, c := range vectors(t).E2E {
			o := Accepted
			if c.RateLimited {
				o = RateLimited
			}
			th.Done(at(c.At), o)
			if got := th.State(at(c.At)).Sent; !near(got, c.Sent) {
				t.Errorf("at %v: %v sent per second, want %v", c.At, got, c.Sent)
			}
			// Before the first rate-limited answer the rate is not in force, and not kept.
			r := th.rate.Load()
			fill := max(th.rules.minRate, min(r.curve(th.rules, at(c.At)), 2*r.meter.rate))
			if s := th.State(at(c.At)); s.Limiting {
				fill = s.Rate
			}
			if !near(fill, c.Fill) {
				t.Errorf("at %v: rate %v, want %v", c.At, fill, c.Fill)
			}
			check.Equal(t, th.State(at(c.At)).Limiting, c.At >= 2, "at %v: limiting", c.At)
		}
	}
}

func TestVectorsMeter(t *testing.T) {
	for _, c := range vectors(t).Meter {
		for _, since := range []time.Duration{0, time.Hour} { // whenever it is used first
			th := must.Have(New(Config{Mode: Cubic}))
			th.Start(since, nil)
			for _, s := range c.At {
				th.Done(since+at(s), Accepted)
			}
			if got := th.State(since + time.Hour).Sent; !near(got, c.Sent) {
				t.Errorf("%s, since %v: %v per second, want %v", c.Name, since, got, c.Sent)
			}
		}
	}
	// The first slot begins with the full second, as in botocore and aws-sdk-go-v2.
	th := must.Have(New(Config{Mode: Cubic}))
	th.Start(at(0.7), nil)
	th.Done(at(0.8), Accepted)
	if got := th.State(at(0.8)).Sent; !near(got, 0.8/0.5) {
		t.Errorf("%v per second, want 1.6", got)
	}
	// From botocore's test of the smoothing: after ten quiet seconds the rate lies
	// between the old one and the new one.
	th = must.Have(New(Config{Mode: Cubic}))
	th.Start(0, nil)
	for _, s := range []float64{1, 1.5, 2, 2.5, 3, 3.5, 4, 14} {
		th.Done(at(s), Accepted)
	}
	if got := th.State(at(14)).Sent; got < 0.1 || got > 2 {
		t.Errorf("%v per second, want 0.1 to 2", got)
	}
}

func TestVectorsBucket(t *testing.T) {
	for _, c := range vectors(t).Bucket {
		ru := Config{Mode: Cubic}.rules()
		r := newRate(0)
		r.limiting.Store(true)
		r.meter.rate = math.Inf(1)
		r.fill, r.capacity = c.Rate, c.Rate
		for i, s := range c.At {
			var want float64
			if c.Waits != nil {
				want = c.Waits[i]
			}
			wait, ok := r.start(&ru, at(s))
			if !ok || math.Abs(wait.Seconds()-want) > 1e-6 {
				t.Errorf("%s, at %v: wait %v, %t, want %v s", c.Name, s, wait, ok, want)
			}
		}
	}
	// The capacity is one at least, and the rate MinRate.
	ru := Config{Mode: Cubic, MinRate: 0.2}.rules()
	r := newRate(0)
	r.fill, r.capacity, r.meter.rate = 1, 1, math.Inf(1)
	if r.setRate(&ru, sec, 0.1); r.fill != 0.2 || r.capacity != 1 {
		t.Errorf("rate %v, capacity %v, want 0.2 and 1", r.fill, r.capacity)
	}
	// At most twice the measured rate.
	r.meter.rate = 20
	if r.setRate(&ru, sec, 100); r.fill != 40 || r.capacity != 40 {
		t.Errorf("rate %v, capacity %v, want 40 and 40", r.fill, r.capacity)
	}
}
