package hedge

import (
	"testing"
	"time"
	"unsafe"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// trained is a hedger that has seen a hundred thousand calls, and counts them.
func trained(tb testing.TB) (*Hedger, time.Duration) {
	h := must.Have(New(Config{Attempts: 2}))
	var now time.Duration
	for i := range 100_000 {
		now += ms
		f := h.Start(now)
		took := time.Duration(1+i%10) * ms
		if d, ok := f.Delay(); ok && i%20 == 0 {
			h.Fire(now+d, &f)
			h.Done(now+d+ms, &f, false)
			h.Release()
			continue
		}
		h.Done(now+took, &f, true)
	}
	if _, ok := h.Delay(now); !ok || h.recent.Load() == nil {
		tb.Fatal("it has learned nothing")
	}
	return h, now
}

func TestCostNoAllocations(t *testing.T) {
	h, now := trained(t)
	fixed := must.Have(New(Config{Attempts: 3, Delay: ms, Share: 2}))
	var nobody *Hedger
	for name, h := range map[string]*Hedger{"learned": h, "fixed": fixed, "off": nobody} {
		call := func() { // also through slots and windows, and learning anew
			now += 20 * ms
			f := h.Start(now)
			h.Fire(now+10*ms, &f)
			h.Fire(now+11*ms, &f)
			h.Release()
			h.Done(now+12*ms, &f, now%(100*ms) != 0)
			h.Delay(now)
			h.Counts(now)
		}
		call()
		check.Equal(t, testing.AllocsPerRun(10_000, call), 0, "%s: allocations a call", name)
	}
}

func TestCostMemory(t *testing.T) {
	if n := unsafe.Sizeof(Flight{}); n > 24 {
		t.Errorf("a Flight takes %d bytes, want 24 at most", n)
	}
	if n := unsafe.Sizeof(Hedger{}); n > 40 {
		t.Errorf("a Hedger takes %d bytes, want 40 at most", n)
	}
	if n := unsafe.Sizeof(latencies{}); n > 416 {
		t.Errorf("what is learned takes %d bytes, want 416 at most", n)
	}
	check.Equal(t, unsafe.Sizeof(page{}), 768, "bytes of a doubling")
	if n := 2 * doublings * unsafe.Sizeof(page{}); n > 34<<10 {
		t.Errorf("all doublings take %d bytes, want 34 KiB at most", n)
	}
	p := must.Have(Prepare(Config{Attempts: 2}))
	check.Equal(t, testing.AllocsPerRun(100, func() { sink = p.New() }), 1, "allocations of a plan's hedger")
	// Few calls, or none that is late, are not remembered.
	h := p.New()
	if n := testing.AllocsPerRun(1000, func() {
		f := h.Start(time.Hour)
		h.Delay(time.Hour)
		h.Counts(time.Hour)
		h.Done(time.Hour, &f, false)
	}); n != 0 || h.learned.Load() != nil || h.recent.Load() != nil {
		t.Errorf("%v allocations for calls of which there is nothing to remember", n)
	}
	warm(h, 0)
	for range 100 {
		learnt(h, 0, 5*ms, true)
	}
	pages := 0
	for d := range doublings {
		if h.learned.Load().succeeded[d].Load() != nil {
			pages++
		}
		if h.learned.Load().unfinished[d].Load() != nil {
			pages++
		}
	}
	if pages != 1 || h.recent.Load() != nil {
		t.Errorf("%d pages for calls that all took 5ms, want 1; counters of calls: %v", pages, h.recent.Load() != nil)
	}
}

var sink *Hedger

func BenchmarkCall(b *testing.B) {
	for _, c := range []struct {
		name string
		h    *Hedger
	}{
		{"off", nil},
		{"fixed", must.Have(New(Config{Attempts: 2, Delay: time.Second}))},
		{"learned", func() *Hedger { h, _ := trained(b); return h }()},
	} {
		b.Run(c.name, func(b *testing.B) {
			now := 100 * time.Second
			b.ReportAllocs()
			for b.Loop() {
				now += 100
				f := c.h.Start(now)
				c.h.Done(now+5*ms, &f, true)
			}
		})
		b.Run(c.name+", all cores", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				now := 100 * time.Second
				for pb.Next() {
					now += 100
					f := c.h.Start(now)
					c.h.Done(now+5*ms, &f, true)
				}
			})
		})
	}
}

func BenchmarkHedge(b *testing.B) {
	for name, slow := range map[string]time.Duration{"granted": 20 * ms, "too many late": 0} {
		b.Run(name, func(b *testing.B) {
			h, now := trained(b)
			f := h.Start(now)
			for b.Loop() {
				now += slow
				for range slow / ms {
					h.Start(now)
				}
				g := f
				if h.Fire(now, &g) == Granted {
					h.Release()
				}
			}
		})
	}
}
