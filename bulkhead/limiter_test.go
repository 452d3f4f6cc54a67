package bulkhead

import (
	"testing"
	"time"
	"unsafe"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/stripe"
)

func TestAReleaseTooManyIsIgnored(t *testing.T) {
	for _, l := range []*Limiter{must.Have(New(Config{InFlight: 2})), must.Have(New(Config{InFlight: 2, MaxWait: time.Second})), must.Have(New(Config{})), {}} {
		l.Release()
		l.Release()
		if l.InFlight() != 0 || l.Waiting() != 0 {
			t.Errorf("%d in flight and %d waiting after a Release of nothing", l.InFlight(), l.Waiting())
		}
		for range 2 {
			if !l.TryAcquire() {
				t.Error("a permit of 2 was refused")
			}
		}
		if l.limit == 2 && l.TryAcquire() {
			t.Error("the Release of nothing made a third permit")
		}
	}
}

// Cores that contend get cells, if there are permits enough for them; alone they get none.
func TestCells(t *testing.T) {
	for limit, want := range map[int]bool{0: true, 4*stripe.Count() - 1: false, 4 * stripe.Count(): true, 1000: true} {
		l := must.Have(New(Config{InFlight: limit}))
		for range 1000 {
			l.TryAcquire()
			l.Release()
		}
		if l.cells.Load() != nil {
			t.Errorf("limit %d: cells for one goroutine", limit)
		}
		for range lostStepsForCells {
			l.contended()
		}
		check.Equal(t, l.cells.Load() != nil, want, "limit %d: cells after contention", limit)
		if limit == 0 {
			continue
		}
		for range limit { // some through each stripe
			if stripe.Here().Move(); !l.TryAcquire() {
				t.Errorf("limit %d: refused at %d in flight", limit, l.InFlight())
			}
		}
		for n := range limit {
			if stripe.Here().Move(); l.TryAcquire() {
				t.Errorf("limit %d: a permit too many after %d rounds", limit, n)
			}
			l.Release()
			if stripe.Here().Move(); l.InFlight() != limit-1 || !l.TryAcquire() {
				t.Errorf("limit %d: the one permit in a cell was not found, %d in flight", limit, l.InFlight())
			}
		}
		for n := range limit {
			l.Release()
			stripe.Here().Move()
			check.Equal(t, l.InFlight(), limit-n-1, "limit %d: in flight", limit)
		}
		if !want {
			continue
		}
		kept := 0
		for i := range *l.cells.Load() {
			kept += int((*l.cells.Load())[i].free.Load())
		}
		if kept == 0 || kept > limit/2 { // the others are there for whoever finds their own cell empty
			t.Errorf("limit %d: %d permits are kept in cells, want some, and half of all at most", limit, kept)
		}
	}
}

func TestNoLimit(t *testing.T) {
	var zero Limiter
	for _, l := range []*Limiter{must.Have(New(Config{})), &zero} {
		for range 10_000 {
			if !l.TryAcquire() {
				t.Fatal("refused without a limit")
			}
		}
		check.Equal(t, l.Join(0, new(Waiter)), Admitted, "Join without a limit")
		check.Equal(t, l.InFlight(), 10_001, "InFlight()")
		l.word.Store(MaxLimit) // what a program that never releases comes to
		if l.TryAcquire() {
			t.Error("the count in flight would have run into the count of waiters")
		}
	}
}

func TestOneCacheLine(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) == 8 && unsafe.Sizeof(Limiter{}) != 64 {
		t.Errorf("a Limiter is %d bytes, want 64", unsafe.Sizeof(Limiter{}))
	}
}

func TestNoAllocations(t *testing.T) {
	l := must.Have(New(Config{InFlight: 1, MaxWait: time.Second}))
	striped := must.Have(New(Config{InFlight: 1000}))
	striped.makeCells(4)
	for _, l := range []*Limiter{l, striped} {
		check.Equal(t, testing.AllocsPerRun(100, func() { l.TryAcquire(); l.Release() }), 0, "TryAcquire and Release: allocations")
	}
	l.TryAcquire()
	w := Waiter{Admit: func() {}}
	if n := testing.AllocsPerRun(100, func() { l.Join(0, &w); l.Release() }); n != 0 {
		t.Errorf("Join, and a Release that hands over: %v allocations", n)
	}
	check.Equal(t, testing.AllocsPerRun(100, func() { l.Join(0, &w); l.Leave(&w) }), 0, "Join and Leave: allocations")
	refuse := must.Have(New(Config{InFlight: 1}))
	refuse.TryAcquire()
	check.Equal(t, testing.AllocsPerRun(100, func() { refuse.TryAcquire() }), 0, "a refusal: allocations")
}

func BenchmarkTryAcquireRelease(b *testing.B) {
	l := must.Have(New(Config{InFlight: 1000}))
	for b.Loop() {
		l.TryAcquire()
		l.Release()
	}
}

func BenchmarkTryAcquireReleaseParallel(b *testing.B) {
	l := must.Have(New(Config{InFlight: 1000}))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l.TryAcquire()
			l.Release()
		}
	})
}

func BenchmarkHandOver(b *testing.B) {
	l := must.Have(New(Config{InFlight: 1, MaxWait: time.Second}))
	l.TryAcquire()
	w := Waiter{Admit: func() {}}
	for b.Loop() {
		l.Join(0, &w)
		l.Release()
	}
}
