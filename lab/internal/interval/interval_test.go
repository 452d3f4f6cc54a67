package interval

import (
	"fmt"
	"math"
	"testing"
)

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
	if T(0) != 0 || T(-1) != 0 {
		t.Errorf("without a degree of freedom: %v, %v", T(0), T(-1))
	}
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
	inf, nan := math.Inf(1), math.NaN()
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

func ExampleMean() {
	mean, half := Mean([]float64{10.2, 9.7, 10.4, 9.9, 10.1}) // seconds to recover, five seeds
	fmt.Printf("%.2f ± %.2f\n", mean, half)
	// Output: 10.06 ± 0.34
}
