package draw

import (
	"hash/fnv"
	"math"
	"testing"

	"github.com/lullgo/lull/internal/check"
)

// What a seed stands for is a promise: a change of any of these bits changes the
// result of every simulation, and a machine that gives others is not one of the
// machines that the results are the same on.
func TestGolden(t *testing.T) {
	s := From(42)
	for _, c := range []struct {
		name      string
		got, want uint64
	}{
		{"Mix(0, 0)", Mix(0, 0), 0x48218226ff3cd4bf},
		{"Mix(1, 2)", Mix(1, 2), 0xf18d6ce93d6cf1ee},
		{"Mix(2, 1)", Mix(2, 1), 0x64684c4f0fd784b4},
		{"Mix(1<<63, 1<<62)", Mix(1<<63, 1<<62), 0x9da2c019f32a9aa3},
		{"s.Uint64()", s.Uint64(), 0xac575302cac2bc29},
		{"s.Uint64()", s.Uint64(), 0xee4c2199d21dd66e},
		{"s.Below(1_000_000)", s.Below(1_000_000), 0xcda0e},
		{"Unit(1<<60)", math.Float64bits(Unit(1 << 60)), 0x3fb0000000000008},
	} {
		check.Equal(t, c.got, c.want, "%s", c.name)
	}
}

// The bits of the least normal number, and of infinity.
const (
	leastNormal = 1 << 52
	infinity    = 0x7ff << 52
)

// The same for many: a hash of the bits of 100,000 results of each.
func TestGoldenHashes(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(uint64) float64
		want uint64
	}{
		{"Exponential", Exponential, 0x1889455a8fec69b7},
		{"Normal", Normal, 0xfeb708a68fd74a76},
		{"Log", func(w uint64) float64 { return Log(math.Float64frombits(leastNormal + w%(infinity-leastNormal))) }, 0x485c60d2cc5c5f5a},
		{"Log near 1", func(w uint64) float64 { return Log(31./32 + float64(Unit(w)/16)) }, 0xf60722f47062574f},
		{"Exp", func(w uint64) float64 { return Exp((Unit(w) - 0.5) * 1400) }, 0xbc8c7f1384d3ae55},
	} {
		h := fnv.New64a()
		for s, i := From(2026), 0; i < 100_000; i++ {
			b := math.Float64bits(c.f(s.Uint64()))
			h.Write([]byte{
				byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24),
				byte(b >> 32), byte(b >> 40), byte(b >> 48), byte(b >> 56),
			})
		}
		check.Equal(t, h.Sum64(), c.want, "%s: the hash", c.name)
	}
}
