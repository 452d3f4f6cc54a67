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

func first(s Source) uint64 { return s.Uint64() }

// All include a word, 1.2 ns.
func Benchmark(b *testing.B) {
	for _, c := range []struct {
		name string
		f    func(*Source) float64
	}{
		{"Mix", func(s *Source) float64 { return float64(Mix(1, s.Uint64())) }},
		{"From", func(s *Source) float64 { return float64(first(From(s.Uint64()))) }},
		{"Below", func(s *Source) float64 { return float64(s.Below(1000)) }},
		{"Exponential", func(s *Source) float64 { return Exponential(s.Uint64()) }},
		{"Normal", func(s *Source) float64 { return Normal(s.Uint64()) }},
		{"Log", func(s *Source) float64 { return Log(Unit(s.Uint64())) }},
		{"Exp", func(s *Source) float64 { return Exp(Unit(s.Uint64())) }},
		{"math.Log", func(s *Source) float64 { return math.Log(Unit(s.Uint64())) }},
		{"math.Exp", func(s *Source) float64 { return math.Exp(Unit(s.Uint64())) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for s := From(1); b.Loop(); {
				number = c.f(&s)
			}
		})
	}
}
