package interval

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// Printed in any textbook.
func TestPublished(t *testing.T) {
	for v, want := range map[int]float64{
		1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228,
		11: 2.201, 12: 2.179, 13: 2.160, 14: 2.145, 15: 2.131, 16: 2.120, 17: 2.110, 18: 2.101, 19: 2.093, 20: 2.086,
		21: 2.080, 22: 2.074, 23: 2.069, 24: 2.064, 25: 2.060, 26: 2.056, 27: 2.052, 28: 2.048, 29: 2.045, 30: 2.042,
		40: 2.021, 50: 2.009, 60: 2.000, 80: 1.990, 100: 1.984, 120: 1.980, 1000: 1.962, math.MaxInt32: 1.960,
		0: 0, -1: 0,
	} {
		if got := T(v); math.Abs(got-want) > 0.0005 {
			t.Errorf("T(%d) = %v, want %v", v, got, want)
		}
	}
}

// central is the probability that |t| is at most x, with v degrees of freedom: a
// finite sum (Abramowitz and Stegun, 26.7.3 and 26.7.4).
func central(x float64, v int) float64 {
	angle := math.Atan(x / math.Sqrt(float64(v)))
	sin, cos := math.Sincos(angle)
	if v == 1 {
		return 2 * angle / math.Pi
	}
	term, k := 1.0, 2
	if v%2 == 1 {
		term, k = cos, 3
	}
	sum := term
	for ; k < v; k += 2 {
		term *= cos * cos * float64(k-1) / float64(k)
		sum += term
	}
	if v%2 == 1 {
		return 2 / math.Pi * (angle + sin*sum)
	}
	return sin * sum
}

func TestTHolds95Percent(t *testing.T) {
	for v := 1; v <= 500; v++ {
		tolerance := 1e-14
		if v > len(students) {
			tolerance = 4e-9
		}
		if p := central(T(v), v); math.Abs(p-0.95) > tolerance {
			t.Errorf("%d degrees of freedom: %v lie within T", v, p)
		}
		if v > 1 && T(v) >= T(v-1) {
			t.Errorf("T(%d) = %v, T(%d) = %v", v, T(v), v-1, T(v-1))
		}
	}
}

func TestMean(t *testing.T) {
	inf, nan, most := math.Inf(1), math.NaN(), math.MaxFloat64
	for _, c := range []struct {
		name       string
		xs         []float64
		mean, half float64
	}{
		{"none", nil, 0, 0},
		{"one", []float64{7.3}, 7.3, 0},
		{"equal", []float64{0.1, 0.1, 0.1}, 0.1, 0},
		{"zeros", []float64{0, 0}, 0, 0},
		{"two", []float64{1, 3}, 2, 12.706204736174705},
		// Deviations 2, 1, 0, 1, 2: s² = 10/4, and t(4) is 2.7764451051977944.
		{"five", []float64{8, 9, 10, 11, 12}, 10, 2.7764451051977944 * math.Sqrt(0.5)},
		{"negative", []float64{-8, -9, -10, -11, -12}, -10, 2.7764451051977944 * math.Sqrt(0.5)},
		{"far from zero", []float64{1e9 + 8, 1e9 + 9, 1e9 + 10, 1e9 + 11, 1e9 + 12}, 1e9 + 10, 2.7764451051977944 * math.Sqrt(0.5)},
		{"large", []float64{1e300, 3e300}, 2e300, 12.706204736174705e300},
		{"small", []float64{1e-300, 3e-300}, 2e-300, 12.706204736174705e-300},
		{"greatest", []float64{most, most}, most, 0},
		{"opposite", []float64{most, -most}, 0, most},
		{"least", []float64{0x1p-1074, 0x1p-1074}, 0x1p-1074, 0},
		{"not finite", []float64{nan, 1, inf, 3, -inf}, 2, 12.706204736174705},
		{"nothing finite", []float64{nan, inf}, 0, 0},
		{"one finite", []float64{nan, 4}, 4, 0},
	} {
		mean, half := Mean(c.xs)
		if !near(mean, c.mean) || !near(half, c.half) {
			t.Errorf("%s: %v ± %v, want %v ± %v", c.name, mean, half, c.mean, c.half)
		}
		if c.half == 0 && (half != 0 || mean != c.mean) {
			t.Errorf("%s: %v ± %v, want %v exactly", c.name, mean, half, c.mean)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-15*math.Abs(b) }

// The interval of n normal numbers holds the true mean in 95 of 100 cases. The
// numbers are quantiles in a shuffled order, so that the cases are always the same.
func TestMeanHolds95Percent(t *testing.T) {
	const cases = 20_000
	for _, n := range []int{2, 5, 40} {
		held, state := 0, uint64(n)
		xs := make([]float64, n)
		for range cases {
			for i := range xs {
				sum := -6.0 // twelve uniform numbers are nearly normal
				for range 12 {
					state = state*6364136223846793005 + 1442695040888963407
					sum += float64(state>>11) * 0x1p-53
				}
				xs[i] = 3 + 2*sum
			}
			if mean, half := Mean(xs); math.Abs(mean-3) <= half {
				held++
			}
		}
		// Four standard deviations, and a little for what is not quite normal.
		if share := float64(held) / cases; math.Abs(share-0.95) > 4*math.Sqrt(0.95*0.05/cases)+0.002 {
			t.Errorf("%d values: the mean is in %.2f %% of the intervals", n, 100*share)
		}
	}
}

func TestGolden(t *testing.T) {
	mean, half := Mean([]float64{0.9983, 0.9991, 0.9979, 0.9988, 0.1 + 0.2})
	for _, c := range []struct {
		name string
		got  float64
		want uint64
	}{
		{"mean", mean, 0x3feb7b7414a4d2b3}, {"half", half, 0x3fd8d31616e36990},
		{"T(31)", T(31), 0x400050ec6978360c}, {"T(1000)", T(1000), 0x3fff65bda9fcfe74},
	} {
		if got := math.Float64bits(c.got); got != c.want {
			t.Errorf("%s is %#x (%v), want %#x", c.name, got, c.got, c.want)
		}
	}
}

func FuzzMean(f *testing.F) {
	f.Add(1.0, 2.0, 3.0)
	f.Add(math.MaxFloat64, -math.MaxFloat64, 0x1p-1074)
	f.Add(math.NaN(), math.Inf(1), 0.0)
	f.Fuzz(func(t *testing.T, a, b, c float64) {
		xs := []float64{a, b, c}
		mean, half := Mean(xs)
		if !finite(mean) || !finite(half) || half < 0 {
			t.Errorf("%v: %v ± %v", xs, mean, half)
		}
		xs = slices.DeleteFunc(xs, func(x float64) bool { return !finite(x) })
		if len(xs) == 0 {
			return
		}
		// Rounded, the mean may lie beyond values that are equal but for the last bit.
		slack := 4 * 0x1p-53 * max(math.Abs(slices.Max(xs)), math.Abs(slices.Min(xs)))
		if mean < slices.Min(xs)-slack || mean > slices.Max(xs)+slack {
			t.Errorf("the mean of %v is %v", xs, mean)
		}
	})
}

func ExampleMean() {
	mean, half := Mean([]float64{10.2, 9.7, 10.4, 9.9, 10.1}) // seconds to recover, five seeds
	fmt.Printf("%.2f ± %.2f\n", mean, half)
	// Output: 10.06 ± 0.34
}
