package outlier

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// Neither calls nor the sweeps between them take memory, nor failures, nor attempts
// that avoid what was tried.
func TestCostNoAllocations(t *testing.T) {
	for name, c := range map[string]Config{
		"default":      {},
		"least loaded": {Choice: LeastLoaded},
		"round robin":  {Choice: RoundRobin},
		"least time":   {Choice: LeastTime},
		"split":        {Split: true, FailurePercent: 100},
		"envoy":        func() Config { c := EnvoyDefaults(); c.MaxEjected = -1; return c }(),
	} {
		for _, n := range []int{1, 3, 100} {
			s := must.Have(New(c))
			s.Update(0, keys(n))
			r := rand.New(rand.NewPCG(1, 1))
			var now time.Duration
			round := func() {
				now += 10 * ms
				var tried Tried
				for attempt := range 3 {
					e, ok := s.Pick(now, r.Uint64, &tried)
					if !ok {
						t.Fatal("no endpoint")
					}
					s.Done(now+ms, e, Evidence(attempt*r.IntN(4)), r.Uint64) // a third of each is no success
				}
			}
			for range 3000 {
				round() // sweeps take their scratch
			}
			check.Equal(t, testing.AllocsPerRun(3000, round), 0, "%s, %d endpoints: allocations", name, n)
		}
	}
}

func TestCostMemory(t *testing.T) {
	if n := unsafe.Sizeof(Endpoint{}); n > 24 {
		t.Errorf("an Endpoint takes %d bytes, want 24 at most", n)
	}
	if n := unsafe.Sizeof(Tried{}); n > 36 {
		t.Errorf("a Tried takes %d bytes, want 36 at most", n)
	}
	var h host
	if n := unsafe.Sizeof(h); n > 512 || n%64 != 0 {
		t.Errorf("a host takes %d bytes, want whole cache lines", n)
	}
	check.Equal(t, unsafe.Offsetof(h.key), 64, "bytes of a host that calls write, a cache line")
	var s Set
	if a, b, c := unsafe.Offsetof(s.next), unsafe.Offsetof(s.turn), unsafe.Offsetof(s.mu); b-a < 64 || c-b < 64 {
		t.Errorf("what all read, what calls write and the lock are at %d, %d and %d: too close", a, b, c)
	}
	check.Equal(t, unsafe.Sizeof(cell{}), 64, "bytes of a cell")
}

func benchmark(b *testing.B, c Config, n int, o Evidence) {
	s := must.Have(New(c))
	s.Update(0, keys(n))
	b.ReportAllocs()
	var now time.Duration
	for b.Loop() {
		now += 100
		e, _ := s.Pick(now, rand.Uint64, nil)
		s.Done(now, e, o, rand.Uint64)
	}
}

func BenchmarkPickDone(b *testing.B) {
	for c := range choices {
		for _, n := range []int{3, 100} {
			b.Run(fmt.Sprintf("%v/%d", c, n), func(b *testing.B) { benchmark(b, Config{Choice: c}, n, Success) })
		}
	}
}
