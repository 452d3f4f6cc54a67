package draw

import (
	"math"
	"math/big"
	"testing"
)

func unitInLastPlace(x float64) float64 {
	x = math.Abs(x)
	return math.Nextafter(x, math.Inf(1)) - x
}

// spread gives numbers of all magnitudes, those near 1 more often.
func spread(s *Source, i int) float64 {
	switch i % 4 {
	case 0:
		return math.Float64frombits(s.Below(infinity)) // any positive
	case 1:
		return 1 + (Unit(s.Uint64())-0.5)*math.Ldexp(1, -int(s.Below(50)))
	default:
		return Unit(s.Uint64())
	}
}

// The accuracy of any number is that of its cell of the table and of the constants, so that a wrong one is found.
func TestLogAndExpAreAccurate(t *testing.T) {
	s := From(1)
	for i := range 3000 {
		if x := spread(&s, i); x != 0 && x != 1 {
			wantAccurate(t, "Log", x, Log(x), bigLog(bigFloat(x)))
		}
		x := (Unit(s.Uint64()) - 0.5) * 1416
		if i%2 == 0 {
			x *= math.Ldexp(1, -int(s.Below(60)))
		}
		wantAccurate(t, "Exp", x, Exp(x), bigExp(bigFloat(x)))
	}
}

func wantAccurate(t *testing.T, name string, x, got float64, want *big.Float) {
	t.Helper()
	if off := ulps(got, want); off > 1.2 {
		t.Errorf("%s(%v) = %v is off by %.2f units in the last place", name, x, got, off)
	}
}

// math's own are off where numbers are subnormal: on amd64 its Log(5e-324) is -709,
// not -744, and its Exp(709.78) is infinite. There they are not compared.
func FuzzLogExp(f *testing.F) {
	f.Add(1.5)
	f.Add(0x1p-1022)
	f.Add(-700.0)
	f.Fuzz(func(t *testing.T, x float64) {
		if got, want := Log(x), math.Log(x); (x <= 0 || x >= 0x1p-1022) &&
			!same(got, want) && !(math.Abs(got-want) <= 4e-16*math.Abs(want)) {
			t.Errorf("Log(%v) = %v, math.Log gives %v", x, got, want)
		}
		if got, want := Exp(x), math.Exp(x); (x < 709 || x > 710) &&
			!same(got, want) && !(math.Abs(got-want) <= 7e-16*want+0x1p-1074) {
			t.Errorf("Exp(%v) = %v, math.Exp gives %v", x, got, want)
		}
	})
}

func TestLogAtTheEdges(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct{ x, want float64 }{
		{0, -inf}, {math.Copysign(0, -1), -inf}, {-1, nan}, {-0x1p-1074, nan},
		{inf, inf}, {-inf, nan}, {nan, nan}, {1, 0},
	} {
		if got := Log(c.x); !same(got, c.want) {
			t.Errorf("Log(%v) = %v, want %v", c.x, got, c.want)
		}
	}
	for _, x := range []float64{
		0x1p-1074, 0x1p-1073, 0x1.fffffp-1023, 0x1p-1022, math.MaxFloat64, 0x1p-53,
		1 - 0x1p-53, 1 + 0x1p-52, 0.6875, math.Nextafter(0.6875, 0), 1.375, 2, math.E,
	} {
		wantAccurate(t, "Log", x, Log(x), bigLog(bigFloat(x)))
	}
}

func TestExpAtTheEdges(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct{ x, want float64 }{
		{0, 1}, {math.Copysign(0, -1), 1}, {0x1p-1074, 1}, {-0x1p-1074, 1}, {1e-17, 1}, {-1e-17, 1},
		{inf, inf}, {-inf, 0}, {math.NaN(), math.NaN()},
		{709.7827128933841, inf}, {709.79, inf}, {710, inf}, {1e300, inf},
		{-745.1333, 0}, {-746, 0}, {-1e300, 0}, {-745.1332, 0x1p-1074},
	} {
		if got := Exp(c.x); !same(got, c.want) {
			t.Errorf("Exp(%v) = %v, want %v", c.x, got, c.want)
		}
	}
	for _, x := range []float64{
		1, -1, 709.78, 709.782712893384, -708.4, -720, -740, -745, 1e-300, 0x1p-30,
	} {
		wantAccurate(t, "Exp", x, Exp(x), bigExp(bigFloat(x)))
	}
}

func same(a, b float64) bool { return a == b || a != a && b != b }
