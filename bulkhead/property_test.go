package bulkhead

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/internal/stripe"
)

// A million random steps against a model that is a count and a list.
func TestAgreesWithAModel(t *testing.T) {
	from := seed.Fresh(t)
	r := rand.New(rand.NewPCG(from, 1))
	for range 2000 {
		c := Config{InFlight: 1 + r.IntN(4)}
		if r.IntN(4) > 0 {
			c.MaxWait = time.Duration(1 + r.IntN(100))
			c.MaxQueue = r.IntN(6)
		}
		striped := r.IntN(2) == 0
		if striped {
			c.InFlight = 1 + r.IntN(12)
		}
		l := must.Have(New(c))
		if striped {
			cells := make([]cell, 1<<r.IntN(3))
			l.cells.Store(&cells)
		}
		room := c.MaxQueue
		if c.MaxWait > 0 && room == 0 {
			room = c.InFlight
		}

		inFlight := 0
		var queue, admitted, want []int // numbers of waiters
		waiters := make([]Waiter, 12)
		owns := make([]bool, len(waiters)) // was handed a permit while queued
		for i := range waiters {
			waiters[i].Admit = func() { admitted = append(admitted, i) }
		}
		for step := range 600 {
			i := r.IntN(len(waiters))
			place := slices.Index(queue, i)
			if striped && r.IntN(3) == 0 {
				stripe.Here().Move() // as though another goroutine went on
			}
			switch r.IntN(5) {
			case 0:
				ok := inFlight < c.InFlight
				if got := l.TryAcquire(); got != ok {
					t.Fatalf("seed %d, %+v, step %d: TryAcquire() = %v", from, c, step, got)
				}
				if ok {
					inFlight++
				}
			case 1, 2:
				if striped && inFlight == 0 {
					break // one too many is not noticed
				}
				l.Release()
				switch {
				case inFlight > 0 && len(queue) > 0:
					owns[queue[0]] = true
					want, queue = append(want, queue[0]), queue[1:]
				case inFlight > 0:
					inFlight--
				}
			case 3:
				outcome := Refused
				switch {
				case place >= 0:
					outcome = Queued
				case inFlight < c.InFlight:
					outcome = Admitted
					inFlight++
					owns[i] = false
				case len(queue) < room:
					outcome = Queued
					queue = append(queue, i)
					owns[i] = false
				default:
					owns[i] = false
				}
				if got := l.Join(time.Duration(step), &waiters[i]); got != outcome {
					t.Fatalf("seed %d, %+v, step %d: Join = %v, want %v", from, c, step, got, outcome)
				}
			case 4:
				if place >= 0 {
					queue = slices.Delete(queue, place, place+1)
				}
				if got := l.Leave(&waiters[i]); got == owns[i] {
					t.Fatalf("seed %d, %+v, step %d: Leave = %v, but owns a permit: %v", from, c, step, got, owns[i])
				}
			}
			if l.InFlight() != inFlight || l.Waiting() != len(queue) || inFlight > c.InFlight || !slices.Equal(admitted, want) {
				t.Fatalf("seed %d, %+v, step %d: %d in flight, %d waiting, admitted %v; want %d, %d, %v",
					from, c, step, l.InFlight(), l.Waiting(), admitted, inFlight, len(queue), want)
			}
			if len(admitted) > 50 {
				admitted, want = nil, nil
			}
		}
	}
}

// Every way of taking and giving up a permit, by many goroutines at once: never
// more than Config.InFlight in flight, and nothing left over.
func TestPermitsUnderContention(t *testing.T) {
	t.Run("one word", func(t *testing.T) { contend(t, 3, 0) })
	t.Run("cells", func(t *testing.T) { contend(t, 8, 2) })
	t.Run("more cells than permits", func(t *testing.T) { contend(t, 5, 8) })
}

func contend(t *testing.T, limit, stripes int) {
	const callers, rounds = 16, 3000
	l := must.Have(New(Config{InFlight: limit, MaxWait: 50 * time.Microsecond, MaxQueue: 6}))
	if stripes > 0 {
		cells := make([]cell, stripes)
		l.cells.Store(&cells)
	}
	var inside, worst, got, handed, left atomic.Int64
	work := func() {
		n := inside.Add(1)
		for w := worst.Load(); n > w && !worst.CompareAndSwap(w, n); w = worst.Load() {
		}
		got.Add(1)
		for range 5 {
			runtime.Gosched() // so that others find the permits taken
		}
		inside.Add(-1)
		l.Release()
	}
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 2))
			for range rounds {
				switch r.IntN(2) {
				case 0:
					if l.TryAcquire() {
						work()
					}
				case 1:
					done := make(chan struct{})
					w := &Waiter{Admit: func() { close(done) }}
					switch l.Join(0, w) {
					case Admitted:
						work()
					case Queued:
						if r.IntN(2) == 0 && l.Leave(w) {
							left.Add(1)
							break
						}
						<-done
						handed.Add(1)
						work()
					}
				}
			}
		})
	}
	wg.Wait()
	if l.InFlight() != 0 || l.Waiting() != 0 {
		t.Errorf("%d in flight and %d waiting when all have gone", l.InFlight(), l.Waiting())
	}
	if worst.Load() > int64(limit) {
		t.Errorf("%d in flight at once, limit %d", worst.Load(), limit)
	}
	t.Logf("%d served, %d of them after a wait; %d left; at most %d at once", got.Load(), handed.Load(), left.Load(), worst.Load())
	if handed.Load() == 0 || left.Load() == 0 {
		t.Error("some way out was never taken: the test has lost its point")
	}
	free := 0
	for l.TryAcquire() {
		free++
	}
	check.Equal(t, free, limit, "permits left")
}

// Permits that come back on several goroutines at once still reach the waiters,
// and their Admits, in order of arrival. The appends carry no lock: the race
// detector sees it if two Admits run side by side.
func TestAdmitsAreCalledInOrder(t *testing.T) {
	const limit, waiting = 8, 400
	for range 50 {
		l := must.Have(New(Config{InFlight: limit, MaxWait: 1, MaxQueue: waiting}))
		for range limit {
			l.TryAcquire()
		}
		var order []int
		for i := range waiting {
			l.Join(0, &Waiter{Admit: func() { order = append(order, i) }})
		}
		var wg sync.WaitGroup
		for range limit {
			wg.Go(func() {
				for range waiting / limit {
					l.Release()
				}
			})
		}
		wg.Wait()
		if len(order) != waiting || !slices.IsSorted(order) {
			t.Fatalf("%d of %d called, order: %v", len(order), waiting, order)
		}
	}
}
