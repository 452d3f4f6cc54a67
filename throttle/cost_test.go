package throttle

import (
	"math"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// states are the throttles whose calls are measured: how each came to be so, and
// what its calls bring.
var states = []struct {
	name    string
	config  Config
	prepare func(*Throttle)
	outcome Evidence
	refused bool
}{
	{"Off", Config{}, func(*Throttle) {}, Accepted, false},
	{"AdaptiveHealthy", Config{Mode: Adaptive}, func(t *Throttle) { learns(t, 0, Accepted, 1000) }, Accepted, false},
	{"AdaptiveErrors", Config{Mode: Adaptive, K: 1000}, func(t *Throttle) { learns(t, 0, Accepted, 1<<20) }, RateLimited, false},
	{"AdaptiveFewRequests", Config{Mode: Adaptive, MinRequests: math.MaxInt}, func(t *Throttle) { learns(t, 0, RateLimited, 5) }, RateLimited, false},
	{"AdaptiveRefused", Config{Mode: Adaptive, ProbeEvery: -1}, func(t *Throttle) { learns(t, 0, RateLimited, 1000) }, Accepted, true},
	{"CubicFree", Config{Mode: Cubic}, func(t *Throttle) { learns(t, 0, Accepted, 1000) }, Accepted, false},
	{"CubicLimiting", Config{Mode: Cubic, MinRate: 1e6, MaxWait: math.MaxInt64, Window: math.MaxInt64}, func(t *Throttle) { t.Done(0, RateLimited) }, Accepted, false},
	{"CubicRefused", Config{Mode: Cubic, MinRate: 0.001, MaxWait: -1, Window: math.MaxInt64}, func(t *Throttle) { t.Done(0, RateLimited); t.Start(0, nil) }, Accepted, true},
}

func TestCostNoAllocations(t *testing.T) {
	for _, s := range states {
		th := must.Have(New(s.config))
		s.prepare(th)
		var now time.Duration
		round := func() {
			now += 100 * time.Microsecond
			_, ok := th.Start(now, unlucky)
			if ok == s.refused {
				t.Fatalf("%s: passed %t at %v", s.name, ok, now)
			}
			if ok {
				th.Done(now, s.outcome)
			}
		}
		round()
		check.Equal(t, testing.AllocsPerRun(1000, round), 0, "%s: allocations", s.name)
		check.Equal(t, testing.AllocsPerRun(100, func() { th.State(now) }), 0, "%s: allocations of State", s.name)
	}
}

// bytes returns the bytes that each of a thousand results of make takes on the heap. Others
// may allocate meanwhile, so the least of a few tries counts.
func bytes(make func() *Throttle) uint64 {
	const n = 1000
	all := [n]*Throttle{}
	least := uint64(math.MaxUint64)
	for range 5 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range all {
			all[i] = make()
		}
		runtime.ReadMemStats(&after)
		least = min(least, (after.TotalAlloc-before.TotalAlloc)/n)
	}
	runtime.KeepAlive(&all)
	return least
}

func TestCostMemory(t *testing.T) {
	if n := unsafe.Sizeof(Throttle{}); n > 24 {
		t.Errorf("a Throttle takes %d bytes, want 24 at most", n)
	}
	for _, c := range []struct {
		name   string
		mode   Mode
		use    func(*Throttle)
		atMost uint64
	}{
		{"off", Off, func(t *Throttle) { t.Done(0, RateLimited) }, 24},
		{"adaptive, unused", Adaptive, func(t *Throttle) { t.Start(0, nil); t.State(0) }, 24},
		{"adaptive, accepts alone", Adaptive, func(t *Throttle) { t.Done(0, Accepted) }, 24 + 80 + 256},
		{"adaptive", Adaptive, func(t *Throttle) { t.Done(0, Accepted); t.Done(0, RateLimited) }, 24 + 80 + 256 + 48 + 256},
		{"cubic, unused", Cubic, func(t *Throttle) { t.State(0) }, 24},
		{"cubic", Cubic, func(t *Throttle) { t.Start(0, nil); t.Done(0, RateLimited) }, 24 + 144 + 8},
	} {
		p := must.Have(Prepare(Config{Mode: c.mode}))
		n := bytes(func() *Throttle { th := p.New(); c.use(th); return th })
		t.Logf("%s: %d bytes", c.name, n)
		if n > c.atMost {
			t.Errorf("%s: %d bytes, want %d at most", c.name, n, c.atMost)
		}
	}
}

func BenchmarkThrottle(b *testing.B) {
	for _, s := range states {
		b.Run(s.name, func(b *testing.B) {
			th := must.Have(New(s.config))
			s.prepare(th)
			var now time.Duration
			b.ReportAllocs()
			for b.Loop() {
				now += 100
				if _, ok := th.Start(now, unlucky); ok {
					th.Done(now, s.outcome)
				}
			}
		})
	}
}

func BenchmarkThrottleParallel(b *testing.B) {
	for _, s := range states {
		b.Run(s.name, func(b *testing.B) {
			th := must.Have(New(s.config))
			s.prepare(th)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				var now time.Duration
				for pb.Next() {
					now += 100
					if _, ok := th.Start(now, unlucky); ok {
						th.Done(now, s.outcome)
					}
				}
			})
		})
	}
}
