package rivals

import (
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/check"
)

type finagleVectors struct {
	Tower []struct {
		TTL       string
		MinPerSec int
		Pct       float64
		Script    [][]any
	}
	Finagle struct {
		Pcts []float64
	}
}

// tower's scripts use ratios at which its coarser arithmetic is Finagle's. A
// deposit is a call that begins or, OnSuccess, one that succeeds.
func TestFinagleTowerScripts(t *testing.T) {
	var v finagleVectors
	vectors(t, "testdata/tower_finagle.json", &v)
	check.Equal(t, len(v.Tower), 4, "scripts")
	for i, s := range v.Tower {
		ttl, _ := time.ParseDuration(s.TTL)
		for _, epoch := range []time.Duration{0, time.Hour} {
			onSuccess := epoch != 0
			b := newFinagleBucket(FinagleConfig{TTL: ttl, MinPerSecond: s.MinPerSec, Percent: s.Pct, OnSuccess: onSuccess})
			now := epoch
			for j, step := range s.Script {
				switch step[0] {
				case "deposit":
					b.Start(now)
					b.Failed(now)
					b.Done(now, false, 0, 0)
					b.Done(now, true, 0, 0)
				case "advance":
					d, _ := time.ParseDuration(step[1].(string))
					now += d
				case "withdraw":
					check.Equal(t, b.Withdraw(now, budget.Transient, never).OK, step[1].(bool), "script %d from %v, step %d", i, epoch, j)
				}
			}
		}
	}
}

// Finagle's property: of n times deposit and withdraw, n × pct + the reserve
// are granted, or one more or less.
func TestFinagleBudgetGrantsTheRatio(t *testing.T) {
	var v finagleVectors
	vectors(t, "testdata/tower_finagle.json", &v)
	const n = 10_000
	check.Equal(t, len(v.Finagle.Pcts), 10, "percentages")
	for _, pct := range v.Finagle.Pcts {
		for _, perSecond := range []int{0, 1, 10} {
			b := newFinagleBucket(FinagleConfig{TTL: time.Minute, MinPerSecond: perSecond, Percent: pct})
			granted := 0
			for i := range n {
				now := time.Duration(i) * time.Millisecond // all within the TTL
				b.Start(now)
				if b.Withdraw(now, budget.Transient, never).OK {
					granted++
				}
			}
			want := min(int(n*pct)+60*perSecond, n)
			if math.Abs(float64(granted-want)) > 1 {
				t.Errorf("%v and %d/s: %d granted, want %d ± 1", pct, perSecond, granted, want)
			}
		}
	}
}

// The reserve, and whatever was deposited, return and leave by the TTL; a
// caller that is late or a very long rest changes nothing of that.
func TestFinagleExpiry(t *testing.T) {
	b := newFinagleBucket(finagleDefault())
	check.Equal(t, b.Balance(0), 100, "balance")
	for range 500 {
		b.Start(time.Second)
	}
	check.Equal(t, b.Balance(0), 200, "balance")
	for n := range 200 {
		if !b.Withdraw(5*time.Second, budget.Transient, never).OK {
			t.Fatalf("retry %d refused, want 200", n)
		}
	}
	for _, now := range []time.Duration{10 * time.Second, 11 * time.Second, 9 * time.Second, 15*time.Second - 1} {
		check.Equal(t, b.Balance(now), 0, "at %v: balance", now)
	}
	check.Equal(t, b.Balance(15*time.Second), 100, "balance")
	check.Equal(t, b.Balance(math.MaxInt64), 100, "balance after 292 years")
}

// The smallest percentages saturate like Scala's toInt, and nothing overflows. With no percentage and no
// reserve it is Finagle's Empty: nothing is granted.
func TestFinagleExtremes(t *testing.T) {
	for _, c := range []struct {
		pct       float64
		perSecond int
	}{{5e-324, math.MaxInt}, {1e-9, math.MaxInt}, {1000, math.MaxInt}, {0, 0}} {
		b := newFinagleBucket(FinagleConfig{TTL: time.Minute, MinPerSecond: c.perSecond, Percent: c.pct})
		for range 1000 {
			b.Start(0)
			if b.Withdraw(0, budget.Transient, never).OK != (c.perSecond > 0) {
				t.Fatalf("%+v: wrong, within an enormous reserve or none", c)
			}
		}
	}
}
