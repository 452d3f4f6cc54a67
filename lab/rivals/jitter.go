package rivals

import (
	"math"
	"time"

	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/internal/chance"
)

// Jitter is a client's own, where none of package backoff's is the same. The zero
// Jitter leaves it to Policy.Backoff.
type Jitter struct {
	// Low and High spread a wait: it is the schedule's ceiling times a factor drawn
	// evenly from [Low, High]. Both zero: not this one.
	Low, High float64
	// Smooth is Polly's "decorrelated jitter V2" on Policy.Backoff.Base (see
	// smooth). Not with Low and High.
	Smooth bool
}

// wait is the schedule with this jitter; nil if it keeps its own.
func (j Jitter) wait(s backoff.Schedule) backoff.Func {
	switch {
	case j == Jitter{}:
		return nil
	case j.Smooth:
		return smooth(s)
	}
	return func(retry int, _ time.Duration, rnd func() uint64) time.Duration {
		c := float64(s.Ceiling(retry))
		low, high := nanoseconds(c*j.Low), nanoseconds(c*j.High)
		return low + time.Duration(chance.UpTo(uint64(high-low), rnd))
	}
}

func nanoseconds(x float64) time.Duration {
	if x < math.MaxInt64 {
		return time.Duration(max(x, 0))
	}
	return math.MaxInt64
}

// smooth is the jitter that Polly adds to exponential waits:
//
//	wait n = (f(t_n) - f(t_(n-1))) × base/1.4,  t_n = n-1 + u,  f(t) = 2^t × tanh(√(4t))
//
// u uniform in [0, 1), f(t_0) = 0. The formula spreads a crowd without gaps,
// since the range of each wait begins where the one before ended. It needs to
// remember t of the retry before. The engine hands back the wait of the retry
// before, which gives it away for the second retry; from the third on it is drawn
// anew, so that each wait has the right distribution, but is independent of
// the one before.
//
// A simulation must come out the same on every machine, so nothing here may be
// rounded otherwise elsewhere: the functions of package math are assembly on some
// machines, and Go may compute x*y+z with one rounding where there is an
// instruction for it, unless the product is converted.
func smooth(s backoff.Schedule) backoff.Func {
	base := float64(s.Ceiling(1)) / 1.4
	longest := float64(math.MaxInt64)
	if s.Cap > 0 {
		longest = float64(s.Cap)
	}
	f := func(t float64) float64 { return float64(exp2(t) * tanh(math.Sqrt(4*t))) }
	return func(retry int, prev time.Duration, rnd func() uint64) time.Duration {
		// One draw of 64 bits makes two of 32.
		bits := chance.Bits(rnd)
		const half = 1 << 32
		u, v := float64(float64(bits>>32)/half), float64(float64(bits%half)/half)
		n := float64(max(retry, 1) - 1)
		before := 0.0
		switch {
		case retry == 2:
			before = float64(prev) / base
		case retry > 2:
			before = f(n - 1 + v)
		}
		return nanoseconds(min((f(n+u)-before)*base, longest))
	}
}

// exp2 is 2^x, to about one unit in the last place, by the Taylor series of
// e^(r log 2), r being what x is off the nearest integer.
func exp2(x float64) float64 {
	n := math.Floor(x + 0.5)
	r := float64((x - n) * math.Ln2)
	sum := 1.0
	for k := 14.0; k > 0; k-- {
		sum = 1 + float64(r*sum)/k
	}
	return math.Ldexp(sum, int(n))
}

// tanh is (1-q)/(1+q) with q = e^(-2x), for x that are not negative.
func tanh(x float64) float64 {
	q := exp2(float64(-2 * math.Log2E * x))
	return (1 - q) / (1 + q)
}
