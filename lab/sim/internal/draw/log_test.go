package draw

import (
	"math"
	"math/big"
	"testing"

	"github.com/lullgo/lull/internal/check"
)

func unitInLastPlace(x float64) float64 {
	x = math.Abs(x)
	return math.Nextafter(x, math.Inf(1)) - x
}

// spread gives numbers of all magnitudes, those near 1 more often.
func spread(s *Source, i int) float64 {
	switch i % 4 {
	case 0:
		return math.Float64frombits(leastNormal + s.Below(infinity-leastNormal)) // any
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
		if x := spread(&s, i); x != 1 {
			wantAccurate(t, "Log", x, Log(x), bigLog(bigFloat(x)))
		}
		x := (Unit(s.Uint64()) - 0.5) * 1400
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

func TestEdges(t *testing.T) {
	for _, x := range []float64{
		0x1p-1022, math.MaxFloat64, 0x1p-53, 1 - 0x1p-53, 1 + 0x1p-52, 0.6875, math.Nextafter(0.6875, 0), 1.375, 2, math.E,
	} {
		wantAccurate(t, "Log", x, Log(x), bigLog(bigFloat(x)))
	}
	check.Equal(t, Log(1), 0, "Log(1)")
	for _, x := range []float64{0, 0x1p-1074, 1e-17, -1e-17, 1, -1, 700, -700, 1e-300, 0x1p-30} {
		wantAccurate(t, "Exp", x, Exp(x), bigExp(bigFloat(x)))
	}
}
