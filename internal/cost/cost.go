// Package cost compares calls with the same calls without lull. It is for tests and benchmarks of
// adapters.
package cost

import (
	"testing"
)

// Calls are the call without lull and the call with it, by name.
type Calls map[string][2]func() error

// Check fails the test if a call with lull makes more allocations beyond those of the other than
// most has for its name.
func Check(t *testing.T, calls Calls, most map[string]float64) {
	t.Helper()
	for name, x := range calls {
		if bare, with := least(x[0]), least(x[1]); with > bare+most[name] {
			t.Errorf("%s: %v allocations, where without lull it is %v: want %v more at most", name, with, bare, most[name])
		}
	}
}

// least returns how many allocations f makes, at the least of five measurements: goroutines that
// end meanwhile make some of their own.
func least(f func() error) float64 {
	n := testing.AllocsPerRun(50, func() { f() })
	for range 4 {
		n = min(n, testing.AllocsPerRun(50, func() { f() }))
	}
	return n
}

// Bench runs each pair.
func Bench(b *testing.B, calls Calls) {
	for name, x := range calls {
		for i, what := range []string{"bare", "lull"} {
			b.Run(name+"/"+what, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					x[i]()
				}
			})
		}
	}
}
