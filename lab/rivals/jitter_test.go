package rivals

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/check"
)

// Polly's formula, as its source has it, with t of each retry remembered.
func pollyTotals(base float64, rnd *rand.Rand, retries int) (sums []float64) {
	prev, sum := 0.0, 0.0
	for attempt := range retries {
		t := float64(attempt) + rnd.Float64()
		next := math.Pow(2, t) * math.Tanh(math.Sqrt(4*t))
		sum += (next - prev) * (1 / 1.4) * base
		sums = append(sums, sum)
		prev = next
	}
	return sums
}

// After the first two retries it is Polly's to the letter: what has been waited
// is f of the latest draw. Later waits have Polly's distribution each.
func TestSmooth(t *testing.T) {
	const base = 2e9
	wait := smooth(backoff.Schedule{Base: base, Cap: time.Hour})
	f := func(x float64) float64 { return math.Pow(2, x) * math.Tanh(math.Sqrt(4*x)) * base / 1.4 }
	draw := func(u float64) func() uint64 { return func() uint64 { return uint64(u*(1<<32)) << 32 } }
	for _, u := range []float64{0, 0.25, 0.5, 0.9} {
		first := wait(1, 0, draw(u))
		if want := f(u); math.Abs(float64(first)-want) > 10 {
			t.Errorf("u %v: first wait %v, want %v", u, first, time.Duration(want))
		}
		for _, v := range []float64{0, 0.5, 0.75} {
			second := wait(2, first, draw(v))
			if want := f(1 + v); math.Abs(float64(first+second)-want) > 10 {
				t.Errorf("u %v, v %v: waited %v, want %v", u, v, first+second, time.Duration(want))
			}
		}
	}

	rnd := rand.New(rand.NewPCG(1, 2))
	const n = 30_000
	var mean, pollys [4]float64
	for range n {
		var prev time.Duration
		for i := range mean {
			prev = wait(i+1, prev, rnd.Uint64)
			mean[i] += prev.Seconds() / n
			if prev < 0 {
				t.Fatalf("wait %d is %v", i+1, prev)
			}
		}
		before := 0.0
		for i, sum := range pollyTotals(base, rnd, 4) {
			pollys[i] += (sum - before) / 1e9 / n
			before = sum
		}
	}
	for i := range mean {
		if math.Abs(mean[i]-pollys[i]) > 0.02*pollys[i] {
			t.Errorf("wait %d is %.3f s in the mean, Polly's %.3f s", i+1, mean[i], pollys[i])
		}
	}
	check.Equal(t, smooth(backoff.Schedule{Base: base, Cap: time.Second * 3})(9, 0, rnd.Uint64), 3*time.Second, "a wait above its cap")
	if got := smooth(backoff.Schedule{Base: math.MaxInt64, Cap: math.MaxInt64})(1000, 0, rnd.Uint64); got <= 0 {
		t.Errorf("overflows to %v", got)
	}
}

// Whatever the schedule and the source, a wait lies between the factors.
func TestSpread(t *testing.T) {
	s := backoff.Schedule{Jitter: backoff.None, Base: time.Second, Cap: time.Minute}
	wait := Jitter{Low: 0.5, High: 1.5}.wait(s)
	rnd := rand.New(rand.NewPCG(3, 4))
	for retry := 1; retry < 20; retry++ {
		c := s.Ceiling(retry)
		for range 1000 {
			if d := wait(retry, 0, rnd.Uint64); d < c/2 || d > c/2*3 {
				t.Fatalf("retry %d: %v around %v", retry, d, c)
			}
		}
		if d := wait(retry, 0, nil); (d - c).Abs() > 1 {
			t.Errorf("retry %d: the middle is %v, want %v", retry, d, c)
		}
	}
	check.Equal(t, (Jitter{High: 10}).wait(backoff.Schedule{Jitter: backoff.None, Base: math.MaxInt64, Cap: math.MaxInt64})(1, 0, highest), math.MaxInt64, "a wait that overflows")
	if (Jitter{}).wait(s) != nil {
		t.Error("no jitter replaces the schedule's")
	}
}

// The functions that Smooth is made of are as good as package math's, and the
// same to the last bit on every machine: these are amd64's.
func TestSmoothIsExact(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	sum := fnv.New64a()
	for range 10_000 {
		x := rnd.Float64() * math.Ldexp(1, rnd.IntN(12)-2)
		if got, want := exp2(x), math.Exp2(x); math.Abs(got-want) > 1e-15*want && !math.IsInf(want, 1) {
			t.Fatalf("2^%v = %v, want %v", x, got, want)
		}
		if got, want := tanh(x), math.Tanh(x); math.Abs(got-want) > 1e-15 {
			t.Fatalf("tanh %v = %v, want %v", x, got, want)
		}
		fmt.Fprintf(sum, "%x %x ", math.Float64bits(exp2(x)), math.Float64bits(tanh(x)))
	}
	wait := smooth(backoff.Schedule{Base: 2 * time.Second, Cap: 24 * time.Hour})
	for range 1000 {
		var prev time.Duration
		for retry := 1; retry <= 8; retry++ {
			prev = wait(retry, prev, rnd.Uint64)
			fmt.Fprint(sum, prev, " ")
		}
	}
	check.Equal(t, sum.Sum64(), 0xc181059370fbccc3, "the sum of the bits")
}
