package draw

import (
	"math"
	"testing"
)

var (
	word   uint64
	number float64
)

func TestNothingAllocates(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		s := From(Mix(Mix(1, 2), 3))
		word = s.Below(10)
		number = Exponential(s.Uint64()) + Normal(s.Uint64()) + Exp(Unit(s.Uint64()))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkMix(b *testing.B) {
	for i := uint64(0); b.Loop(); i++ {
		word = Mix(1, i)
	}
}

func BenchmarkFrom(b *testing.B) {
	for i := uint64(0); b.Loop(); i++ {
		s := From(i)
		word = s.Uint64()
	}
}

func BenchmarkBelow(b *testing.B) {
	for s := From(1); b.Loop(); {
		word = s.Below(1000)
	}
}

// The rest include the word, 1.2 ns.

func benchmark(b *testing.B, f func(uint64) float64) {
	for s := From(1); b.Loop(); {
		number = f(s.Uint64())
	}
}

func BenchmarkExponential(b *testing.B) { benchmark(b, Exponential) }
func BenchmarkNormal(b *testing.B)      { benchmark(b, Normal) }

func BenchmarkLog(b *testing.B) {
	benchmark(b, func(w uint64) float64 { return Log(Unit(w)) })
}

func BenchmarkExp(b *testing.B) {
	benchmark(b, func(w uint64) float64 { return Exp(Unit(w)) })
}

func BenchmarkMathLog(b *testing.B) {
	benchmark(b, func(w uint64) float64 { return math.Log(Unit(w)) })
}

func BenchmarkMathExp(b *testing.B) {
	benchmark(b, func(w uint64) float64 { return math.Exp(Unit(w)) })
}
