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

func TestLogCells(t *testing.T) {
	for i, c := range logs {
		// Ten bits times the halves of z, 26 and 27, are exact.
		if c.inverse*1024 != math.Trunc(c.inverse*1024) || c.inverse >= 2 || c.inverse < 0.5 {
			t.Errorf("cell %d: inverse %v has more than ten bits", i, c.inverse)
		}
		for _, end := range []uint64{uint64(i) << 46, uint64(i+1)<<46 - 1} {
			if z := math.Float64frombits(logFrom + end); math.Abs(z*c.inverse-1) > 1./64 {
				t.Errorf("cell %d: %v * %v is %v", i, z, c.inverse, z*c.inverse)
			}
		}
		want, _ := bigLog(bigFloat(c.inverse)).Float64()
		if c.log != -want {
			t.Errorf("cell %d: logarithm %v, want %v", i, c.log, -want)
		}
	}
}

func TestPowers(t *testing.T) {
	for i, got := range powers {
		x := bigFloat(0).Quo(bigFloat(0).Mul(bigLn2, bigFloat(float64(i))), bigFloat(32))
		if want, _ := bigExp(x).Float64(); got != want {
			t.Errorf("2^(%d/32) is %v, want %v", i, got, want)
		}
	}
}

func TestConstants(t *testing.T) {
	step := bigFloat(0).Quo(bigLn2, bigFloat(32))
	for _, c := range []struct {
		name         string
		upper, lower float64
		want         *big.Float
		zeros        int
	}{
		{"log 2", ln2Upper, ln2Lower, bigLn2, 16},
		{"log 2 / 32", stepUpper, stepLower, step, 18},
	} {
		if bits := math.Float64bits(c.upper); bits&(1<<c.zeros-1) != 0 {
			t.Errorf("%s: the upper part ends in %x, want %d zeros", c.name, bits, c.zeros)
		}
		lower, _ := bigFloat(0).Sub(c.want, bigFloat(c.upper)).Float64()
		if c.lower != lower {
			t.Errorf("%s: lower part %v, want %v", c.name, c.lower, lower)
		}
	}
	if want, _ := bigFloat(0).Quo(bigFloat(1), step).Float64(); stepsPerUnit != want {
		t.Errorf("32 / log 2 is %v, want %v", stepsPerUnit, want)
	}
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

func TestLogIsAccurate(t *testing.T) {
	s, worst := From(1), 0.0
	for i := range 3000 {
		x := spread(&s, i)
		if x == 0 || x == 1 {
			continue
		}
		off := ulps(Log(x), bigLog(bigFloat(x)))
		worst = max(worst, off)
		if off > 1.2 {
			t.Errorf("Log(%v) = %v is off by %.2f units in the last place", x, Log(x), off)
		}
	}
	t.Logf("at most %.3f units in the last place", worst)
}

func TestExpIsAccurate(t *testing.T) {
	s, worst := From(2), 0.0
	for i := range 3000 {
		x := (Unit(s.Uint64()) - 0.5) * 1416
		if i%2 == 0 {
			x *= math.Ldexp(1, -int(s.Below(60)))
		}
		off := ulps(Exp(x), bigExp(bigFloat(x)))
		worst = max(worst, off)
		if off > 1.2 {
			t.Errorf("Exp(%v) = %v is off by %.2f units in the last place", x, Exp(x), off)
		}
	}
	t.Logf("at most %.3f units in the last place", worst)
}

// math's own are off where numbers are subnormal: on amd64 its Log(5e-324) is -709,
// not -744, and its Exp(709.78) is infinite. So the edges are compared with the
// series of big_test.go, and math where it is right.
func TestAgreesWithMath(t *testing.T) {
	s := From(3)
	for i := range 200_000 {
		agree(t, max(spread(&s, i), 0x1p-1022))
		agree(t, (Unit(s.Uint64())-0.5)*1400)
	}
}

func FuzzLogExp(f *testing.F) {
	f.Add(1.5)
	f.Add(0x1p-1022)
	f.Add(-700.0)
	f.Fuzz(func(t *testing.T, x float64) { agree(t, x) })
}

func agree(t *testing.T, x float64) {
	if got, want := Log(x), math.Log(x); (x <= 0 || x >= 0x1p-1022) &&
		!same(got, want) && !(math.Abs(got-want) <= 4e-16*math.Abs(want)) {
		t.Errorf("Log(%v) = %v, math.Log gives %v", x, got, want)
	}
	if got, want := Exp(x), math.Exp(x); (x < 709 || x > 710) &&
		!same(got, want) && !(math.Abs(got-want) <= 7e-16*want+0x1p-1074) {
		t.Errorf("Exp(%v) = %v, math.Exp gives %v", x, got, want)
	}
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
		if off := ulps(Log(x), bigLog(bigFloat(x))); off > 1.2 {
			t.Errorf("Log(%v) = %v is off by %v units in the last place", x, Log(x), off)
		}
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
		if off := ulps(Exp(x), bigExp(bigFloat(x))); off > 1.2 {
			t.Errorf("Exp(%v) = %v is off by %v units in the last place", x, Exp(x), off)
		}
	}
}

func same(a, b float64) bool { return a == b || a != a && b != b }
