package hedge

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/problem"
)

func TestValidate(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		c    Config
		want string // the fields found wrong
	}{
		{Config{}, ""},
		{Config{Attempts: 1}, ""},
		{Config{Attempts: 1, Percentile: 0.9}, ""}, // switched off, settings kept
		{Config{Attempts: 2}, ""},
		{Config{Attempts: 5}, ""},
		{Config{Attempts: 6}, "Attempts"},
		{Config{Attempts: -1}, "Attempts"},
		{Config{Attempts: math.MinInt}, "Attempts"},
		{Config{Percentile: 0.95}, "Attempts"}, // forgotten
		{Config{Share: 0.1}, "Attempts"},

		{Config{Attempts: 2, Delay: 1}, ""},
		{Config{Attempts: 2, Delay: math.MaxInt64}, ""},
		{Config{Attempts: 2, Delay: -2}, "Delay"},
		{Config{Attempts: 2, Delay: math.MinInt64}, "Delay"},

		{Config{Attempts: 2, Percentile: 0.5}, ""},
		{Config{Attempts: 2, Percentile: 0.999}, ""},
		{Config{Attempts: 2, Percentile: 0.4999}, "Percentile"},
		{Config{Attempts: 2, Percentile: 0.9995}, "Percentile"},
		{Config{Attempts: 2, Percentile: 95}, "Percentile"},
		{Config{Attempts: 2, Percentile: -0.9}, "Percentile"},
		{Config{Attempts: 2, Percentile: math.NaN()}, "Percentile"},
		{Config{Attempts: 2, Percentile: math.Inf(1)}, "Percentile"},

		{Config{Attempts: 2, Window: time.Second}, ""},
		{Config{Attempts: 2, Window: time.Hour}, ""},
		{Config{Attempts: 2, Window: 999 * ms}, "Window"},
		{Config{Attempts: 2, Window: time.Hour + 1}, "Window"},
		{Config{Attempts: 2, Window: -time.Second}, "Window"},

		{Config{Attempts: 2, MinSamples: 1}, ""},
		{Config{Attempts: 2, MinSamples: 1_000_000}, ""},
		{Config{Attempts: 2, MinSamples: 1_000_001}, "MinSamples"},
		{Config{Attempts: 2, MinSamples: -1}, "MinSamples"},

		{Config{Attempts: 2, MinDelay: -1}, "MinDelay"},
		{Config{Attempts: 2, MaxDelay: -1}, "MaxDelay"},
		{Config{Attempts: 2, MinDelay: 5 * ms, MaxDelay: 5 * ms}, ""},
		{Config{Attempts: 2, MinDelay: 5 * ms, MaxDelay: 4 * ms}, "MaxDelay"},
		{Config{Attempts: 2, MaxDelay: 1}, ""}, // below the default MinDelay, which gives way

		{Config{Attempts: 2, Share: 0.05}, ""}, // what 0.95 leaves
		{Config{Attempts: 2, Share: 0.049}, "Share"},
		{Config{Attempts: 2, Share: 0.01, Percentile: 0.99}, ""},
		{Config{Attempts: 2, Share: 0.1, Percentile: 0.9}, ""},
		{Config{Attempts: 2, Share: 0.1, Percentile: 0.89}, "Share"},
		{Config{Attempts: 2, Share: 0.001, Delay: ms}, ""},
		{Config{Attempts: 2, Share: 4}, ""},
		{Config{Attempts: 2, Share: 4.1}, "Share"},
		{Config{Attempts: 2, Share: math.NaN()}, "Share"},
		{Config{Attempts: 2, Share: math.Inf(1)}, "Share"},
		{Config{Attempts: 2, Share: math.Inf(-1)}, ""},
		{Config{Attempts: 2, Share: -1}, ""},
		{Config{Attempts: 2, Delay: AtOnce}, "Share"}, // 0.1, but every call is late
		{Config{Attempts: 2, Delay: AtOnce, Share: 1}, ""},
		{Config{Attempts: 3, Delay: AtOnce, Share: 1.9}, "Share"},
		{Config{Attempts: 3, Delay: AtOnce, Share: 2}, ""},
		{Config{Attempts: 5, Delay: AtOnce, Share: -1}, ""},

		{Config{Attempts: 2, InFlight: -1}, ""},
		{Config{Attempts: 2, InFlight: math.MaxInt}, ""},

		{Config{Attempts: 2, Delay: ms, Percentile: 0.9, Window: time.Minute, MinSamples: 9, MinDelay: 1, MaxDelay: 2}, "Percentile Window MinSamples MinDelay MaxDelay"},
		{Config{Attempts: 9, Delay: -9, Percentile: 9, Window: -9, MinSamples: -9, MinDelay: -9, MaxDelay: -9, Share: 9},
			"Attempts Delay Percentile Window MinSamples MinDelay MaxDelay Share"},
		{Config{Attempts: 9, Percentile: 9, Window: -9, MinSamples: -9, MinDelay: -9, MaxDelay: -9, Share: 9}, "Attempts Percentile Window MinSamples MinDelay MaxDelay Share"},
	} {
		err := c.c.Validate()
		check.Equal(t, strings.Join(problem.Fields(err), " "), c.want, "%+v: problems (%v)", c.c, err)
		h, newErr := New(c.c)
		check.Equal(t, newErr != nil, err != nil, "%+v: New says %v, Validate %v", c.c, newErr, err)
		check.Equal(t, h != nil, err == nil && c.c.Attempts > 1, "%+v: New returns %v", c.c, h)
	}
}

// Zeros mean what the comments of Config state.
func TestDefaults(t *testing.T) {
	for _, c := range []struct {
		c          Config
		minSamples int64
		share      float64
	}{
		{Config{Attempts: 2}, 60, 0.1},
		{Config{Attempts: 2, Percentile: 0.9}, 30, 0.2},
		{Config{Attempts: 2, Percentile: 0.99}, 300, 0.02},
		{Config{Attempts: 2, Percentile: 0.999}, 3000, 0.002},
		{Config{Attempts: 2, Percentile: 0.5}, 20, 1},
		{Config{Attempts: 2, Share: 0.3, MinSamples: 7}, 7, 0.3},
		{Config{Attempts: 2, Share: -1}, 60, math.Inf(1)},
	} {
		r := c.c.rules()
		if r.minSamples != c.minSamples || math.Abs(r.share-c.share) > 1e-12 && r.share != c.share {
			t.Errorf("%+v: MinSamples %d, Share %v, want %d, %v", c.c, r.minSamples, r.share, c.minSamples, c.share)
		}
	}
	r := Config{Attempts: 2}.rules()
	if r.minDelay != time.Millisecond || r.slot != 5*time.Second || r.inFlight != 100 || r.percentile != 0.95 || r.maxDelay != math.MaxInt64 {
		t.Errorf("defaults: %+v", r)
	}
	if r := (Config{Attempts: 2, MaxDelay: 10}).rules(); r.minDelay != 10 {
		t.Errorf("MinDelay is %v beside a MaxDelay of 10ns", r.minDelay)
	}
	if r := (Config{Attempts: 2, Delay: time.Second}).rules(); r.share != 0.1 || r.learns {
		t.Errorf("with a fixed delay: %+v", r)
	}
}

// gRPC's published cases of hedging policies. What has no counterpart here is left
// out: status codes, and durations that are no durations.
func TestGRPCPolicies(t *testing.T) {
	data := must.Have(os.ReadFile("testdata/grpc_hedging_policies.json"))
	var file struct {
		Policies []struct {
			Name   string
			Policy struct {
				MaxAttempts  int
				HedgingDelay string
			} `json:"hedgingPolicy"`
			Error *string
		} `json:"hedgingPolicy"`
	}
	must.Succeed(json.Unmarshal(data, &file))
	judged := 0
	for _, p := range file.Policies {
		if p.Error != nil && *p.Error != "maxAttempts" {
			continue
		}
		judged++
		c := Config{Attempts: p.Policy.MaxAttempts, Delay: AtOnce, Share: -1, InFlight: -1}
		if s, ok := strings.CutSuffix(p.Policy.HedgingDelay, "s"); ok {
			seconds := must.Have(strconv.ParseFloat(s, 64))
			c.Delay = time.Duration(seconds * float64(time.Second))
		}
		h, err := New(c)
		// One attempt, an error there, is a hedger that is off here.
		if p.Error == nil && (err != nil || h == nil) || p.Error != nil && h != nil {
			t.Errorf("%s: %+v gives %v, %v", p.Name, c, h, err)
		}
	}
	if judged < 5 {
		t.Errorf("only %d cases", judged)
	}
}
