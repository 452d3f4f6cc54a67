package rivals

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/problem"
)

func never() uint64 { panic("no draw was due") }

// Whatever pays, the first refusal after a grant is the one worth an event.
func TestBudgetsMarkTheEdge(t *testing.T) {
	for name, b := range map[string]budget.Budget{
		"aws":     Budget{AWS: AWSConfig{Capacity: 10, RetryCost: 10, TimeoutCost: 10, RateLimitedCost: 10}}.New(),
		"envoy":   Budget{Envoy: EnvoyConfig{MinConcurrency: 1}}.New(),
		"finagle": Budget{Finagle: FinagleConfig{TTL: 1e9, MinPerSecond: 1}}.New(),
	} {
		fill := func() {
			for range 2 {
				b.Start(2e9)
				b.Release(2e9, 1)
				b.Done(2e9, true, 10, 10)
			}
		}
		drain := func() {
			for n := 0; ; n++ {
				b.Failed(2e9)
				g := b.Withdraw(2e9, budget.Transient, never)
				if n > 9 || !g.OK {
					if n == 0 || n > 9 || !g.Exhausted {
						t.Errorf("%s: after %d grants: %+v, want a few grants and then Exhausted", name, n, g)
					}
					break
				}
			}
			for range 3 {
				if g := b.Withdraw(2e9, budget.Transient, never); g != (budget.Grant{}) {
					t.Errorf("%s: a further refusal: %+v, want nothing new", name, g)
				}
			}
		}
		drain()
		if fill(); name != "finagle" { // earns by time alone here
			drain()
		}
		if got := b.Balance(2e9); got != 0 {
			t.Errorf("%s: balance %v when it refuses, want 0", name, got)
		}
	}
}

func TestBudgetsOfOthersValidate(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		config interface{ Validate() error }
		fields string // that are wrong, in order
	}{
		{AWSLegacy(), ""},
		{AWSStandard21(), ""},
		{AWSConfig{RetryCost: 1, TimeoutCost: 1, RateLimitedCost: 1}, ""},
		{AWSConfig{Capacity: -1, NoRetryIncrement: -1}, "Capacity RetryCost TimeoutCost RateLimitedCost NoRetryIncrement"},
		{EnvoyDefault(), ""},
		{EnvoyConfig{}, ""},
		{EnvoyConfig{Percent: -1, MinConcurrency: -1}, "Percent MinConcurrency"},
		{EnvoyConfig{Percent: 100.1}, "Percent"},
		{EnvoyConfig{Percent: nan}, "Percent"},
		{FinagleDefault(), ""},
		{FinagleConfig{TTL: 60*time.Second + 1}, ""}, // Finagle looks at whole seconds
		{FinagleConfig{TTL: 61 * time.Second, MinPerSecond: -1, Percent: 1000.1}, "TTL MinPerSecond Percent"},
		{FinagleConfig{TTL: time.Second, Percent: -0.1}, "Percent"},
		{FinagleConfig{Percent: nan}, "TTL Percent"},
	} {
		err := c.config.Validate()
		var list problem.List
		errors.As(err, &list)
		for _, p := range list {
			if p.Allowed == "" {
				t.Errorf("%#v: %s does not say what is allowed", c.config, p.Field)
			}
		}
		if got := problem.Fields(err); strings.Join(got, " ") != c.fields {
			t.Errorf("%#v: wrong fields %q, want %q", c.config, got, c.fields)
		}
	}
}

// poke calls everything once, with whatever values.
func poke(b budget.Budget, now time.Duration, c budget.Class, r budget.Receipt) {
	b.Start(now)
	b.Failed(now)
	b.Withdraw(now, c, never)
	b.Release(now, r)
	b.Done(now, true, r, int(r))
	b.Balance(now)
	b.Done(-now, false, -r, int(-r))
	b.Withdraw(-now, c, never)
}

// No input makes anything panic, and whatever a constructor accepts keeps a
// balance that is a number and not negative.
func FuzzBudgetsOfOthers(f *testing.F) {
	f.Add(0.1, int64(10*time.Second), true, int64(0), int64(time.Hour), byte(1), int64(5), 10)
	f.Add(1e-5, int64(100*time.Millisecond), false, int64(math.MaxInt64), int64(math.MaxInt64), byte(200), int64(math.MinInt64), math.MaxInt)
	f.Fuzz(func(t *testing.T, x float64, d int64, onSuccess bool, cost, now int64, class byte, receipt int64, n int) {
		for _, made := range []Budget{
			{AWS: AWSConfig{n, int(class), int(cost), int(d), int(cost)}},
			{Envoy: EnvoyConfig{x, n}},
			{Finagle: FinagleConfig{time.Duration(d), n, x, onSuccess}},
		} {
			b := made.New()
			for _, at := range []int64{now, now + 1, now - d, 0, math.MaxInt64, math.MinInt64, now} {
				poke(b, time.Duration(at), budget.Class(class), budget.Receipt(receipt))
				if got := b.Balance(time.Duration(at)); !(got >= 0) || math.IsInf(got, 1) {
					t.Errorf("%T: balance %v", b, got)
				}
			}
		}
	})
}
