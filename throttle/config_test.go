package throttle

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/problem"
)

func TestValidateNamesEveryMistake(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		cfg  Config
		want string // fields
	}{
		{Config{}, ""},
		{Config{Mode: Adaptive}, ""},
		{Config{Mode: Cubic}, ""},
		{Config{Mode: Adaptive, Window: sec, K: 1.05, MinRequests: 1, Recent: sec, ProbeEvery: math.MinInt64}, ""},
		{Config{Mode: Adaptive, Window: math.MaxInt64, K: 1000, MinRequests: math.MaxInt, Recent: math.MaxInt64, ProbeEvery: math.MaxInt64}, ""},
		{Config{Mode: Adaptive, Recent: 2 * time.Minute}, ""},
		{Config{Mode: Adaptive, Recent: 1}, ""},
		{Config{Mode: Cubic, MinRate: 0.001, MaxWait: math.MinInt64, FallEvery: math.MinInt64}, ""},
		{Config{Mode: Cubic, MinRate: 1e6, MaxWait: math.MaxInt64, FallEvery: math.MaxInt64}, ""},
		{Config{K: 1.5, MinRate: 7}, ""}, // of modes that are not chosen
		{Config{Mode: 3}, "Mode"},
		{Config{Window: sec - 1}, "Window"},
		{Config{Window: -1, Recent: 2 * sec}, "Window Recent"},
		{Config{Window: time.Minute, Recent: time.Minute + 1}, "Recent"},
		{Config{Recent: 2*time.Minute + 1}, "Recent"},
		{Config{Mode: 255, Window: 1, K: 1, MinRequests: -1, Recent: -1, MinRate: -1},
			"Mode Window K MinRequests Recent MinRate"},
		{Config{K: nan, MinRate: nan}, "K MinRate"},
		{Config{K: inf, MinRate: inf}, "K MinRate"},
		{Config{K: 1.04, MinRate: 0.0009}, "K MinRate"},
		{Config{K: 1001, MinRate: 1e6 + 1}, "K MinRate"},
		{Config{K: -2}, "K"},
	} {
		err := c.cfg.Validate()
		check.Equal(t, strings.Join(problem.Fields(err), " "), c.want, "%+v: problems", c.cfg)
		th, newErr := New(c.cfg)
		if (th == nil) != (err != nil) || (newErr == nil) != (err == nil) {
			t.Errorf("%+v: New gives %v, %v", c.cfg, th, newErr)
		}
	}
	const want = "K is 1: want zero (2), or a number from 1.05 to 1000"
	if err := (Config{K: 1}).Validate(); err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestZerosAreFilledIn(t *testing.T) {
	for _, c := range []struct {
		cfg, want Config
		recent    int // slots of the window
	}{
		{Config{Mode: Adaptive}, Config{Mode: Adaptive, Window: 2 * time.Minute, K: 2, MinRequests: 10, Recent: 10 * sec, ProbeEvery: 30 * sec}, 3},
		{Config{Mode: Adaptive, Window: time.Minute}, Config{Mode: Adaptive, Window: time.Minute, Recent: 5 * sec, ProbeEvery: 15 * sec}, 3},
		{Config{Mode: Adaptive, Recent: 1}, Config{Mode: Adaptive, Recent: 4 * sec}, 1},
		{Config{Mode: Adaptive, Recent: 4*sec + 1}, Config{Mode: Adaptive, Recent: 8 * sec}, 2},
		{Config{Mode: Adaptive, Recent: 2 * time.Minute}, Config{Mode: Adaptive, Recent: 2*time.Minute - 1}, 30},
		{Config{Mode: Cubic}, Config{Mode: Cubic, Window: 2 * time.Minute, MinRate: 0.5, MaxWait: 2 * sec, FallEvery: sec}, 3},
		{Config{Mode: Cubic, MinRate: 0.1}, Config{Mode: Cubic, MinRate: 0.1, MaxWait: 10 * sec}, 3},
	} {
		got, want := c.cfg.rules(), c.want.rules()
		check.Equal(t, got, want, "%+v", c.cfg)
		check.Equal(t, got.recent, c.recent, "%+v: slots are recent", c.cfg)
	}
	if r := (Config{MaxWait: -1}).rules(); r.maxWait != 0 {
		t.Errorf("a negative MaxWait is %v, want none", r.maxWait)
	}
}

func TestOffDoesNothing(t *testing.T) {
	plan := must.Have(Prepare(Config{K: 3, Window: time.Hour}))
	var zero Throttle
	for name, th := range map[string]*Throttle{"nil": nil, "zero": &zero, "off": plan.New()} {
		learns(th, 0, RateLimited, 1000)
		for range 1000 {
			if wait, ok := th.Start(0, unlucky); wait != 0 || !ok {
				t.Fatalf("%s: wait %v, %t", name, wait, ok)
			}
		}
		check.Equal(t, th.State(0), Snapshot{}, "%s", name)
	}
}

func TestPlanMakesThrottlesApart(t *testing.T) {
	p := must.Have(Prepare(Config{Mode: Adaptive}))
	one := p.New()
	two := p.New()
	learns(one, 0, RateLimited, 100)
	learns(two, 0, Accepted, 7)
	if s := one.State(0); s.Requests != 100 || s.Accepts != 0 {
		t.Errorf("one: %+v", s)
	}
	if s := two.State(0); s.Requests != 7 || s.Accepts != 7 {
		t.Errorf("two: %+v", s)
	}
	if p, err := Prepare(Config{K: -1}); p != nil || err == nil {
		t.Errorf("a plan of a wrong configuration: %v, %v", p, err)
	}
}
