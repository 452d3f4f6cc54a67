package budget

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

var (
	_ Budget = (*Ratio)(nil)
	_ Budget = (*GRPCThrottle)(nil)
	_ Budget = (*AWSQuota)(nil)
	_ Budget = (*EnvoyConcurrency)(nil)
	_ Budget = (*FinagleBucket)(nil)
)

func TestZeroConfigIsTheDefault(t *testing.T) {
	zero, explicit := must(t, Config{}), must(t, Config{Ratio: 0.1, Window: 10 * time.Second, Earn: Successes})
	for n := range 95 {
		now := time.Duration(n) * 100 * time.Millisecond
		zero.End(now, true, 0)
		explicit.End(now, true, 0)
	}
	for _, now := range []time.Duration{9400 * time.Millisecond, 10 * time.Second, 15 * time.Second, 20 * time.Second} {
		if a, b := zero.Balance(now), explicit.Balance(now); a != b {
			t.Errorf("at %v: balances %v and %v", now, a, b)
		}
	}
}

func TestValidate(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		config interface{ Validate() error }
		fields string // that are wrong, in order
	}{
		{Config{}, ""},
		{Config{Ratio: 10, Window: time.Hour, Earn: Arrivals, Floor: 1e6, Cooldown: math.MaxInt64, Stock: 1e6}, ""},
		{Config{Ratio: 0.00001, Window: 100 * time.Millisecond}, ""},
		{Config{Unlimited: true}, ""},
		{Config{Ratio: 0.000009}, "Ratio"}, // would round to nothing
		{Config{Ratio: -0.1, Window: -1, Earn: 2, Floor: -1, Cooldown: -1, Stock: -1}, "Ratio Window Earn Floor Cooldown Stock"},
		{Config{Ratio: nan, Floor: nan, Stock: nan}, "Ratio Floor Stock"},
		{Config{Ratio: inf, Floor: inf, Stock: inf}, "Ratio Floor Stock"},
		{Config{Ratio: 10.1, Window: time.Hour + 1, Floor: 1e6 + 1, Stock: 1e6 + 1}, "Ratio Window Floor Stock"},
		{Config{Window: 100*time.Millisecond - 1}, "Window"},
		{GRPCConfig{1000, 0.001}, ""},
		{GRPCConfig{}, "MaxTokens TokenRatio"},
		{GRPCConfig{1001, 0.0009}, "MaxTokens TokenRatio"},
		{GRPCConfig{-1, nan}, "MaxTokens TokenRatio"},
		{GRPCConfig{1, inf}, "TokenRatio"},
		{AWSLegacy(), ""},
		{AWSStandard21(), ""},
		{AWSConfig{RetryCost: 1, TimeoutCost: 1, ThrottledCost: 1}, ""},
		{AWSConfig{Capacity: -1, NoRetryIncrement: -1}, "Capacity RetryCost TimeoutCost ThrottledCost NoRetryIncrement"},
		{EnvoyDefault(), ""},
		{EnvoyConfig{}, ""},
		{EnvoyConfig{Percent: -1, MinConcurrency: -1}, "Percent MinConcurrency"},
		{EnvoyConfig{Percent: 100.1}, "Percent"},
		{EnvoyConfig{Percent: nan}, "Percent"},
		{FinagleDefault(), ""},
		{FinagleConfig{TTL: 60*time.Second + 1}, ""}, // Finagle looks at whole seconds
		{FinagleConfig{TTL: 61 * time.Second, MinPerSecond: -1, Percent: 1000.1}, "TTL MinPerSecond Percent"},
		{FinagleConfig{Percent: nan}, "TTL Percent"},
	} {
		err := c.config.Validate()
		got := problem.Fields(err)
		var list problem.List
		errors.As(err, &list)
		for _, p := range list {
			if p.Allowed == "" {
				t.Errorf("%#v: %s does not say what is allowed", c.config, p.Field)
			}
		}
		if strings.Join(got, " ") != c.fields {
			t.Errorf("%#v: wrong fields %q, want %q", c.config, got, c.fields)
		}
	}
}

func TestConstructorsRefuseWhatIsInvalid(t *testing.T) {
	if b, err := New(Config{Ratio: 11}); b != nil || err == nil {
		t.Errorf("New: %v, %v", b, err)
	}
	if b, err := NewGRPCThrottle(GRPCConfig{}); b != nil || err == nil {
		t.Errorf("NewGRPCThrottle: %v, %v", b, err)
	}
	if b, err := NewAWSQuota(AWSConfig{}); b != nil || err == nil {
		t.Errorf("NewAWSQuota: %v, %v", b, err)
	}
	if b, err := NewEnvoyConcurrency(EnvoyConfig{Percent: -1}); b != nil || err == nil {
		t.Errorf("NewEnvoyConcurrency: %v, %v", b, err)
	}
	if b, err := NewFinagleBucket(FinagleConfig{}); b != nil || err == nil {
		t.Errorf("NewFinagleBucket: %v, %v", b, err)
	}
	b, _ := NewGRPCThrottle(GRPCConfig{10, 1})
	if b.Rescale(GRPCConfig{}) == nil || b.Tokens() != 10 {
		t.Error("Rescale to nothing was accepted")
	}
}

// A zero value that no constructor made refuses, and does not panic.
func TestZeroValuesRefuse(t *testing.T) {
	for _, b := range []Budget{new(Ratio), new(GRPCThrottle), new(AWSQuota), new(EnvoyConcurrency), new(FinagleBucket)} {
		poke(b, 1<<40, 77, -3, never)
		if b.Withdraw(time.Hour, Transient, never).OK || b.Balance(time.Hour) != 0 {
			t.Errorf("%T: the zero value grants retries", b)
		}
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		Transient.String(): "transient", Timeout.String(): "timeout", Throttled.String(): "throttled", Class(9).String(): "class(9)",
		Successes.String(): "successes", Arrivals.String(): "arrivals", Earn(9).String(): "earn(9)",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// poke calls everything once, with whatever values.
func poke(b Budget, now time.Duration, c Class, r Receipt, rnd func() uint64) {
	b.Begin(now)
	b.Failed(now)
	b.Withdraw(now, c, rnd)
	b.Settle(now, r)
	b.End(now, true, r)
	b.Balance(now)
	b.End(-now, false, -r)
	b.Withdraw(-now, c, rnd)
}

// No input makes anything panic, and whatever a constructor accepts keeps a
// balance that is a number and not negative.
func FuzzNothingPanics(f *testing.F) {
	f.Add(0.1, int64(10*time.Second), byte(0), 0.0, int64(0), 0.0, int64(time.Hour), byte(1), int64(5), 10)
	f.Add(1e-5, int64(100*time.Millisecond), byte(1), 1e6, int64(math.MaxInt64), 1e6, int64(math.MaxInt64), byte(200), int64(math.MinInt64), math.MaxInt)
	f.Fuzz(func(t *testing.T, x float64, d int64, earn byte, y float64, cool int64, z float64, now int64, class byte, receipt int64, n int) {
		var all []Budget
		add := func(b Budget, err error) {
			if err == nil {
				all = append(all, b)
			}
		}
		add(New(Config{x, time.Duration(d), Earn(earn), y, time.Duration(cool), z, false}))
		add(New(Config{Ratio: x, Floor: y, Stock: z, Cooldown: time.Duration(cool)}))
		add(NewGRPCThrottle(GRPCConfig{n, x}))
		add(NewAWSQuota(AWSConfig{n, int(class), int(earn), int(d), int(cool)}))
		add(NewEnvoyConcurrency(EnvoyConfig{x, n}))
		add(NewFinagleBucket(FinagleConfig{time.Duration(d), n, x}))
		for _, b := range all {
			for _, at := range []int64{now, now + 1, now - d, 0, math.MaxInt64, math.MinInt64, now} {
				poke(b, time.Duration(at), Class(class), Receipt(receipt), func() uint64 { return uint64(cool) })
				if got := b.Balance(time.Duration(at)); !(got >= 0) || math.IsInf(got, 1) {
					t.Errorf("%T: balance %v", b, got)
				}
			}
			if g, ok := b.(*GRPCThrottle); ok {
				_ = g.Rescale(GRPCConfig{int(class), y})
			}
		}
	})
}
