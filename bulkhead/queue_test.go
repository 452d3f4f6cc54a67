package bulkhead

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

func TestJoin(t *testing.T) {
	l := must.Have(New(Config{InFlight: 1, MaxWait: 3 * time.Second, MaxQueue: 2}))
	var admitted []int
	waiter := func(i int) *Waiter { return &Waiter{Admit: func() { admitted = append(admitted, i) }} }
	a, b, c, d := waiter(0), waiter(1), waiter(2), waiter(3)

	if got := l.Join(time.Second, a); got != Admitted {
		t.Fatalf("first: %v", got)
	}
	for i, w := range []*Waiter{b, c} {
		now := time.Duration(i) * time.Second
		if got := l.Join(now, w); got != Queued || w.Deadline != now+3*time.Second {
			t.Errorf("%v with deadline %v, want queued with %v", got, w.Deadline, now+3*time.Second)
		}
	}
	check.Equal(t, l.Join(0, d), Refused, "third in a queue of two")
	if !l.Leave(d) {
		t.Error("one who was refused owns a permit")
	}
	if got := l.Join(9*time.Second, b); got != Queued || b.Deadline != 3*time.Second || l.Waiting() != 2 {
		t.Errorf("joining again while waiting: %v, deadline %v, %d waiting", got, b.Deadline, l.Waiting())
	}
	if l.TryAcquire() || l.Join(0, nil) != Refused {
		t.Error("overtook those who wait")
	}
	check.Equal(t, len(admitted), 0, "calls of Admit, for %v", admitted)

	l.Release() // to b
	if l.Leave(b) {
		t.Error("b left, but had its permit")
	}
	for range 2 { // the second time it has nothing to leave
		if !l.Leave(c) {
			t.Error("c could not leave")
		}
	}
	if l.InFlight() != 1 || l.Waiting() != 0 || !slices.Equal(admitted, []int{1}) {
		t.Errorf("%d in flight, %d waiting, admitted %v; want 1, 0, [1]", l.InFlight(), l.Waiting(), admitted)
	}
	l.Release()
	check.Equal(t, l.InFlight(), 0, "in flight at the end")
	// A waiter can be used again, and what it was before does not stick to it.
	check.Equal(t, l.Join(0, b), Admitted, "again")
	if l.Join(0, c) != Queued || !l.Leave(c) {
		t.Error("c could not leave the second time")
	}
}

func TestDeadlineDoesNotOverflow(t *testing.T) {
	l := must.Have(New(Config{InFlight: 1, MaxWait: math.MaxInt64}))
	l.TryAcquire()
	for now, want := range map[time.Duration]time.Duration{
		0: math.MaxInt64, 1: math.MaxInt64, math.MaxInt64: math.MaxInt64, -5: math.MaxInt64 - 5, math.MinInt64: -1,
	} {
		var w Waiter
		l.Join(now, &w)
		check.Equal(t, w.Deadline, want, "now %v: deadline", now)
		l.Leave(&w)
	}
}

func TestStrangers(t *testing.T) {
	here, there := must.Have(New(Config{InFlight: 1, MaxWait: 1})), must.Have(New(Config{InFlight: 1, MaxWait: 1}))
	here.TryAcquire()
	there.TryAcquire()
	there.Join(0, new(Waiter))
	var w Waiter
	here.Join(0, &w)
	check.Equal(t, there.Join(0, &w), Refused, "waiting in two queues")
	if !there.Leave(&w) || here.Waiting() != 1 || there.Waiting() != 1 {
		t.Errorf("leaving the wrong queue: %d and %d waiting, want 1 and 1", here.Waiting(), there.Waiting())
	}
	if !here.Leave(nil) || here.Join(0, nil) != Refused {
		t.Error("nil waits")
	}
	if !must.Have(New(Config{InFlight: 1})).Leave(&w) {
		t.Error("left a queue that never was, with a permit")
	}
}

// An Admit may release at once: the next is called after it has returned, and
// however many there are, the stack does not grow with them.
func TestAdmitMayRelease(t *testing.T) {
	const n = 100_000
	l := must.Have(New(Config{InFlight: 1, MaxWait: 1, MaxQueue: n}))
	l.TryAcquire()
	var order []int
	inside := false
	for i := range n {
		l.Join(0, &Waiter{Admit: func() {
			if inside {
				t.Fatal("one Admit inside another")
			}
			inside = true
			l.Release()
			order = append(order, i)
			inside = false
		}})
	}
	l.Release()
	if len(order) != n || !slices.IsSorted(order) {
		t.Errorf("%d of %d admitted, in order: %v", len(order), n, slices.IsSorted(order))
	}
	if l.InFlight() != 0 || l.Waiting() != 0 {
		t.Errorf("%d in flight, %d waiting at the end", l.InFlight(), l.Waiting())
	}
}

func TestAPanickingAdmitHarmsNobodyElse(t *testing.T) {
	l := must.Have(New(Config{InFlight: 1, MaxWait: 1, MaxQueue: 10}))
	l.TryAcquire()
	var called []int
	for i := range 5 {
		l.Join(0, &Waiter{Admit: func() {
			called = append(called, i)
			l.Release()
			if i == 1 || i == 2 {
				panic(i)
			}
		}})
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		l.Release()
	}()
	check.Slices(t, called, []int{0, 1, 2, 3, 4}, "called")
	if l.InFlight() != 0 || l.Waiting() != 0 {
		t.Errorf("%d in flight, %d waiting", l.InFlight(), l.Waiting())
	}
	l.TryAcquire()
	l.Join(0, &Waiter{Admit: func() { called = nil }})
	l.Release()
	if called != nil {
		t.Error("no Admit was called after the panic")
	}
}
