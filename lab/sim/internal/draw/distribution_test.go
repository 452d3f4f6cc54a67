package draw

import (
	"math"
	"slices"
	"testing"

	"github.com/lullgo/lull/internal/check"
)

func TestUnit(t *testing.T) {
	for _, c := range []struct {
		bits uint64
		want float64
	}{
		{0, 0x1p-53},
		{1<<12 - 1, 0x1p-53},
		{1 << 12, 3 * 0x1p-53},
		{1<<63 - 1, 0.5 - 0x1p-53},
		{1 << 63, 0.5 + 0x1p-53},
		{math.MaxUint64, 1 - 0x1p-53},
	} {
		check.Equal(t, Unit(c.bits), c.want, "Unit(%x)", c.bits)
	}
	s := From(1)
	for range 1000 {
		if w := s.Uint64(); Unit(^w) != 1-Unit(w) {
			t.Errorf("Unit(%x) = %v, its complement's is %v", w, Unit(w), Unit(^w))
		}
	}
}

const sample = 200_000

func draws(key uint64, f func(uint64) float64) []float64 {
	s := From(key)
	xs := make([]float64, sample)
	for i := range xs {
		xs[i] = f(s.Uint64())
	}
	return xs
}

// testShape is the test of Kolmogorov and Smirnov at 0.1 %.
func testShape(t *testing.T, xs []float64, cdf func(float64) float64) {
	t.Helper()
	slices.Sort(xs)
	n, worst := float64(len(xs)), 0.0
	for i, x := range xs {
		p := cdf(x)
		worst = max(worst, p-float64(i)/n, float64(i+1)/n-p)
	}
	if worst*math.Sqrt(n) > 1.95 {
		t.Errorf("the distribution is off by %v", worst)
	}
}

func TestUnitIsUniform(t *testing.T) {
	xs := draws(10, Unit)
	testShape(t, xs, func(x float64) float64 { return x })
}

func TestExponential(t *testing.T) {
	xs := draws(11, Exponential)
	testShape(t, xs, func(x float64) float64 { return -math.Expm1(-x) })

	if got, want := Exponential(0), 53*math.Ln2; math.Abs(got/want-1) > 3e-16 {
		t.Errorf("the greatest is %v, want %v", got, want)
	}
	check.Equal(t, Exponential(math.MaxUint64), 0x1p-53, "the least")
}

func TestNormal(t *testing.T) {
	xs := draws(12, Normal)
	testShape(t, xs, func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 })

	s, last := From(13), math.Inf(-1)
	for range 1000 {
		if w := s.Uint64(); Normal(^w) != -Normal(w) {
			t.Errorf("Normal(%x) = %v, its complement's is %v", w, Normal(w), Normal(^w))
		}
	}
	for w := range uint64(4096) { // also from the tails into the middle
		if z := Normal(w << 52); !(z > last) {
			t.Errorf("Normal(%x) = %v, after %v", w<<52, z, last)
		} else {
			last = z
		}
	}
}

// The first three are those with which the algorithm was published; the rest are
// from an arithmetic of 50 digits.
func TestNormalQuantiles(t *testing.T) {
	for _, c := range []struct{ p, want float64 }{
		{0.25, -0.6744897501960817},
		{0.001, -3.090232306167814},
		{1e-20, -9.262340089798408},
		{1.1102230246251565e-16, -8.2095361516013869},
		{1e-15, -7.9413453261709968},
		{1.3e-11, -6.6676114565107408},
		{1e-09, -5.9978070150076869},
		{1e-05, -4.2648907939228246},
		{0.01, -2.3263478740408411},
		{0.05, -1.6448536269514727},
		{0.0749, -1.4402382675279637},
		{0.0751, -1.43882539275254},
		{0.1, -1.2815515655446004},
		{0.3, -0.52440051270804082},
		{0.45, -0.12566134685507401},
		{0.499, -0.0025066308995717662},
		{0.6, 0.25334710313579974},
		{0.9, 1.2815515655446006},
		{0.925, 1.4395314709384562},
		{0.9251, 1.4402382675279639},
		{0.975, 1.9599639845400539},
		{0.99, 2.3263478740408408},
		{0.999, 3.0902323061678133},
		{0.9999999990686774, 6.0093535655307439},
		{0.9999999999999999, 8.2095361516013869},
	} {
		if got := quantile(c.p); math.Abs(got-c.want) > 1e-15*math.Abs(c.want) {
			t.Errorf("the quantile of %v is %v, want %v", c.p, got, c.want)
		}
	}
	check.Equal(t, quantile(0.5), 0, "the median")
}
