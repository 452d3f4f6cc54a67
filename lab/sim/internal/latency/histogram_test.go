package latency

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/lullgo/lull/internal/check"
)

// exact are the same durations, sorted.
type exact []time.Duration

// quantile is the least duration that at least p of 10,000 do not exceed.
func (s exact) quantile(p int) time.Duration {
	rank := (p*len(s) + 9999) / 10000
	return s[max(rank, 1)-1]
}

func (s exact) mean() time.Duration {
	sum := new(big.Int)
	for _, d := range s {
		sum.Add(sum, big.NewInt(int64(d)))
	}
	n := big.NewInt(int64(len(s)))
	sum.Add(sum, new(big.Int).Rsh(n, 1)) // to the nearest
	return time.Duration(sum.Div(sum, n).Int64())
}

// compare compares h with what was recorded, which it sorts.
func compare(t *testing.T, name string, h *Histogram, ds []time.Duration) {
	t.Helper()
	s := exact(ds)
	slices.Sort(s)
	if len(s) == 0 {
		if h.Count() != 0 || h.Mean() != 0 || h.Quantile(0) != 0 || h.Max() != 0 || h.Quantile(0.5) != 0 {
			t.Errorf("%s: not empty: %v", name, *h)
		}
		return
	}
	if h.Count() != int64(len(s)) || h.Quantile(0) != s[0] || h.Max() != s[len(s)-1] || h.Mean() != s.mean() {
		t.Errorf("%s: count %d, min %d, max %d, mean %d, want %d, %d, %d, %d", name,
			h.Count(), h.Quantile(0), h.Max(), h.Mean(), len(s), s[0], s[len(s)-1], s.mean())
	}
	for _, p := range []int{0, 1, 100, 700, 2500, 5000, 9000, 9500, 9900, 9990, 9999, 10000} {
		got, want := h.Quantile(float64(p)/10000), s.quantile(p)
		if got < want || got-want > want/128 || want < 256 && got != want || got > h.Max() {
			t.Errorf("%s: quantile %v is %d, want %d and at most 1/128 more", name, float64(p)/10000, got, want)
		}
	}
}

func TestAgainstSorted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name string
		draw func() time.Duration
	}{
		{"nanoseconds", func() time.Duration { return time.Duration(r.IntN(300)) }},
		{"constant", func() time.Duration { return 1_234_567 }},
		{"uniform", func() time.Duration { return time.Duration(r.Int64N(int64(time.Second))) }},
		{"exponential", func() time.Duration { return time.Duration(r.ExpFloat64() * float64(time.Millisecond)) }},
		{"bimodal", func() time.Duration { return time.Millisecond << (10 * r.IntN(2)) }},
		{"all magnitudes", func() time.Duration { return time.Duration(r.Uint64() >> 1 >> r.IntN(63)) }},
		{"greatest", func() time.Duration { return math.MaxInt64 - time.Duration(r.IntN(2)) }},
		{"powers of two", func() time.Duration { return 1<<r.IntN(63) - time.Duration(r.IntN(2)) }},
	} {
		for _, n := range []int{0, 1, 2, 3, 100, 9999} {
			var h Histogram
			ds := make([]time.Duration, n)
			for i := range ds {
				ds[i] = c.draw()
				h.Record(ds[i])
			}
			compare(t, fmt.Sprintf("%d %s", n, c.name), &h, ds)
		}
	}
}

// Bars follow each other without gap, each as wide as is promised.
func TestBars(t *testing.T) {
	next := time.Duration(0)
	for at := range 57 {
		for bar := range 128 {
			last := end(at, bar)
			for _, d := range []time.Duration{next, last} {
				if a, b := place(d); a != at || b != bar {
					t.Fatalf("place(%d) is %d, %d, want %d, %d", d, a, b, at, bar)
				}
			}
			if last-next > next/128 {
				t.Fatalf("bar %d, %d is from %d to %d", at, bar, next, last)
			}
			next = last + 1
		}
	}
	if next != math.MinInt64 {
		t.Errorf("the last bar ends at %d, want the greatest duration", next-1)
	}
}

func TestNegativeCountsAsZero(t *testing.T) {
	var h Histogram
	h.Record(-5)
	h.Record(math.MinInt64)
	compare(t, "negative", &h, []time.Duration{0, 0})
}

func TestQuantileAtTheEdges(t *testing.T) {
	var h Histogram
	for d := range time.Duration(100) {
		h.Record((d + 1) * 1_000_003)
	}
	for _, c := range []struct {
		q    float64
		want time.Duration
	}{
		{0, h.Quantile(0)}, {-1, h.Quantile(0)}, {math.NaN(), h.Quantile(0)}, {math.Inf(-1), h.Quantile(0)},
		{1, h.Max()}, {2, h.Max()}, {math.Inf(1), h.Max()},
	} {
		check.Equal(t, h.Quantile(c.q), c.want, "quantile %v", c.q)
	}
	// 0.07 and 0.29 times 100 are above 7 and 29 in float64; some others are below.
	for k := 1; k <= 100; k++ {
		want := time.Duration(k) * 1_000_003
		if got := h.Quantile(float64(k) / 100); got < want || got-want > want/128 {
			t.Errorf("quantile %v is %d, want %d and at most 1/128 more", float64(k)/100, got, want)
		}
	}
}

func TestCost(t *testing.T) {
	if size := unsafe.Sizeof(Histogram{}); size > 72 {
		t.Errorf("an empty histogram is %d bytes, the package says 72", size)
	}
	var h Histogram
	if n := testing.AllocsPerRun(100, func() {
		h.Record(time.Second)
		h.Record(time.Millisecond)
		h.Quantile(0.99)
	}); n != 0 {
		t.Errorf("%v allocations once grown", n)
	}
	rows := 0
	for _, r := range h.rows {
		if r != nil {
			rows++
		}
	}
	check.Equal(t, rows, 2, "rows for two doublings")
}

func ExampleHistogram() {
	var h Histogram
	for ms := range time.Duration(1000) {
		h.Record((ms + 1) * time.Millisecond)
	}
	fmt.Println(h.Count(), h.Mean(), h.Max())
	fmt.Println(h.Quantile(0.5), h.Quantile(0.99))
	// Output:
	// 1000 500.5ms 1s
	// 501.219327ms 994.050047ms
}

func BenchmarkRecord(b *testing.B) {
	var h Histogram
	for d := time.Duration(1); b.Loop(); d = d * 48271 % (1<<31 - 1) {
		h.Record(d)
	}
}

func BenchmarkQuantile(b *testing.B) {
	var h Histogram
	for i := range time.Duration(100_000) {
		h.Record(i * 48271)
	}
	for b.Loop() {
		h.Quantile(0.99)
	}
}
