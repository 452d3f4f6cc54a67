//go:build servers

package bench

import (
	"flag"
	"runtime"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

// Every subject runs to its end on one core and on two.
func TestMeasureEverySubject(t *testing.T) {
	benchtime := flag.Lookup("test.benchtime").Value
	was := benchtime.String()
	must.Succeed(benchtime.Set("20x"))
	defer benchtime.Set(was)
	for _, g := range groups() {
		for _, s := range g.subjects {
			for _, cores := range []int{1, 2} {
				before, failed := runtime.GOMAXPROCS(cores), false
				r := testing.Benchmark(func(b *testing.B) {
					defer func() { failed = failed || b.Failed() }()
					s.measure(b)
				})
				runtime.GOMAXPROCS(before)
				if failed || r.N != 20 || r.T <= 0 {
					t.Errorf("%s/%s on %d cores: %v", g.name, s.name, cores, r)
				}
			}
		}
	}
}

func TestExtrasOfServersTakeOneAllocation(t *testing.T) { extrasTakeOneAllocation(t, true) }
