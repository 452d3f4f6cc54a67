package budget

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/problem"
)

var (
	_ Budget = (*Account)(nil)
	_ Budget = (*Bucket)(nil)
	_ Budget = (*Ratio)(nil)
	_ Budget = (*GRPCThrottle)(nil)
)

// A budget with a window is a Ratio. One that grants everything needs neither a
// window nor a time.
func TestTheWindowChoosesTheKind(t *testing.T) {
	for c, want := range map[Config]string{
		{}:                                     "*budget.Account",
		{Stock: 1}:                             "*budget.Account",
		{Earn: Arrivals}:                       "*budget.Account",
		{Window: time.Second, Stock: 1}:        "*budget.Ratio",
		{Unlimited: true}:                      "*budget.Bucket",
		{Unlimited: true, Window: time.Second}: "*budget.Bucket",
	} {
		b, err := New(c)
		if got := fmt.Sprintf("%T", b); got != want || err != nil {
			t.Errorf("%+v: %v, %v, want %v", c, got, err, want)
		}
		if g := b.Withdraw(0, Transient, nil); c.Unlimited && (!g.OK || !math.IsInf(b.Balance(0), 1)) {
			t.Errorf("%+v: %+v", c, g)
		}
	}
}

// What CanStartLate promises, tried: whatever ran before the first retry that is
// wanted, no two calls closer together than QuietGap, the answer to it and to all
// that follow is that of a new budget.
func TestCanStartLateMeansThatCallsChangeNothing(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   bool
	}{
		{Config{}, true},
		{Config{Earn: Arrivals}, true},
		{Config{Ratio: MaxRatio, Stock: 1}, true},
		{Config{Ratio: 0.00001, Stock: 1.5}, true},
		{Config{Unlimited: true}, true},
		{Config{Unlimited: true, Window: time.Second}, true},
		{Config{Window: time.Second}, false},
		{Config{Window: time.Hour, Stock: 10}, false},
		{Config{Window: time.Hour, Stock: 10, Earn: Arrivals}, false},
	} {
		check.Equal(t, c.config.CanStartLate(), c.want, "%+v: CanStartLate", c.config)
		fresh, _ := New(c.config)
		used, _ := New(c.config)
		var now time.Duration
		for i := range 25 {
			used.Start(now)
			used.Failed(now)
			used.Done(now, i%2 == 0, 0, 0)
			now += c.config.QuietGap()
		}
		same := fresh.Balance(now) == used.Balance(now)
		for i := range 60 {
			// From now on whatever happens: calls that succeed all at once, too.
			if i > 15 {
				earnMany(fresh, now, i%3)
				earnMany(used, now, i%3)
			}
			same = same && fresh.Withdraw(now, Transient, soonest) == used.Withdraw(now, Transient, soonest)
		}
		check.Equal(t, same, c.want, "%+v: calls left it as it was", c.config)
	}
}

func TestValidate(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		config interface{ Validate() error }
		fields string // that are wrong, in order
	}{
		{Config{}, ""},
		{Config{Ratio: MaxRatio, Window: time.Hour, Earn: Arrivals, Floor: 1e6, Cooldown: math.MaxInt64, Stock: 1e6}, ""},
		{Config{Ratio: 0.00001, Window: 100 * time.Millisecond}, ""},
		{Config{Ratio: 0.00001, Earn: Arrivals, Stock: 1}, ""},
		{Config{Ratio: MaxRatio, Stock: 1e6}, ""},
		{Config{Window: time.Second, Stock: 0.01}, ""},
		{Config{Stock: 0.99}, "Stock"}, // would never hold a retry
		{Config{Floor: 1, Cooldown: time.Second}, "Floor Cooldown"},
		{Config{Floor: nan, Stock: nan}, "Floor Stock"},
		{Config{Stock: 1e6 + 1}, "Stock"},
		{Config{Unlimited: true}, ""},
		{Config{Ratio: 0.000009}, "Ratio"}, // would round to nothing
		{Config{Ratio: -0.1, Window: -1, Earn: 2, Floor: -1, Cooldown: -1, Stock: -1}, "Ratio Window Earn Floor Cooldown Stock"},
		{Config{Ratio: nan, Window: time.Hour, Floor: nan, Stock: nan}, "Ratio Floor Stock"},
		{Config{Ratio: inf, Window: time.Hour, Floor: inf, Stock: inf}, "Ratio Floor Stock"},
		{Config{Ratio: 4.1, Window: time.Hour + 1, Floor: 1e6 + 1, Stock: 1e6 + 1}, "Ratio Window Floor Stock"},
		{Config{Window: 100*time.Millisecond - 1}, "Window"},
		{GRPCConfig{1000, 0.001}, ""},
		{GRPCConfig{}, "MaxTokens TokenRatio"},
		{GRPCConfig{1001, 0.0009}, "MaxTokens TokenRatio"},
		{GRPCConfig{-1, nan}, "MaxTokens TokenRatio"},
		{GRPCConfig{1, inf}, "TokenRatio"},
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
		check.Equal(t, strings.Join(got, " "), c.fields, "%#v: wrong fields", c.config)
	}
}

func TestConstructorsRefuseWhatIsInvalid(t *testing.T) {
	if b, err := New(Config{Ratio: 11}); b != nil || err == nil {
		t.Errorf("New: %v, %v", b, err)
	}
	for _, c := range []Config{{Ratio: 11}, {Window: time.Second}, {Floor: 1}} {
		if b, err := NewBucket(c); b != nil || err == nil {
			t.Errorf("NewBucket(%+v): %v, %v", c, b, err)
		}
	}
	if b, err := NewGRPCThrottle(GRPCConfig{}); b != nil || err == nil {
		t.Errorf("NewGRPCThrottle: %v, %v", b, err)
	}
	b, _ := NewGRPCThrottle(GRPCConfig{10, 1})
	if b.Rescale(GRPCConfig{}) == nil || b.Tokens() != 10 {
		t.Error("Rescale to nothing was accepted")
	}
}

// A zero value that no constructor made refuses, and does not panic.
func TestZeroValuesRefuse(t *testing.T) {
	for _, b := range []Budget{new(Account), new(Bucket), new(Ratio), new(GRPCThrottle)} {
		poke(b, 1<<40, 77, -3, never)
		if b.Withdraw(time.Hour, Transient, never).OK || b.Balance(time.Hour) != 0 {
			t.Errorf("%T: the zero value grants retries", b)
		}
	}
}

// poke calls everything once, with whatever values.
func poke(b Budget, now time.Duration, c Class, r Receipt, rnd func() uint64) {
	b.Start(now)
	b.Failed(now)
	b.Withdraw(now, c, rnd)
	b.Release(now, r)
	b.Done(now, true, r, int(r))
	b.Balance(now)
	b.Done(-now, false, -r, int(-r))
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
		add(New(Config{Ratio: x, Window: time.Second, Floor: y, Stock: z, Cooldown: time.Duration(cool)}))
		add(New(Config{Ratio: x, Earn: Earn(earn), Stock: z}))
		add(NewBucket(Config{Ratio: x, Earn: Earn(earn), Stock: z}))
		add(NewGRPCThrottle(GRPCConfig{n, x}))
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
