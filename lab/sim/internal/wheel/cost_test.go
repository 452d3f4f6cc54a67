package wheel_test

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/lullgo/lull/lab/sim/internal/wheel"
)

// Sixteen bytes an event and not much more, wherever the events lie in time, and
// also after they were divided. A second burst takes what the first gave back.
func TestMemoryOfABurst(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: the memory of millions of events in one goroutine")
	}
	const n, most = 1 << 20, 21.0 // bytes an event
	for name, at := range map[string]func(r *rand.Rand) int64{
		"spread over 200 ms":  func(r *rand.Rand) int64 { return r.Int64N(200e6) },
		"at one instant":      func(r *rand.Rand) int64 { return 1e9 },
		"at three instants":   func(r *rand.Rand) int64 { return 1e9 * r.Int64N(3) },
		"on all scales":       func(r *rand.Rand) int64 { return int64(r.Uint64() >> (1 + r.IntN(63))) },
		"within 1000 ns":      func(r *rand.Rand) int64 { return 1e9 + r.Int64N(1000) },
		"exponential, 1 hour": func(r *rand.Rand) int64 { return int64(r.ExpFloat64() * 3600e9) },
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 3))
			start := allocated()
			q := wheel.New(0)
			burst := func() {
				now, _ := q.Next()
				for i := range uint64(n) {
					q.Push(now+at(r), i)
				}
				for range n / 4 {
					q.Pop()
				}
			}
			burst()
			first := allocated() - start
			for q.Len() > 0 {
				q.Pop()
			}
			burst()
			both := allocated() - start
			runtime.KeepAlive(q)
			t.Logf("%.2f bytes an event, %.2f after a second burst", first/n, both/n)
			if first/n > most || both/n > most {
				t.Errorf("%.2f bytes an event, %.2f after a second burst, want at most %v", first/n, both/n, most)
			}
		})
	}
}

// allocated returns the bytes in use on the heap, without garbage.
func allocated() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// What happens at the popped instant for ever, with others pending, must not
// pile up.
func TestMemoryOfAnEndlessInstant(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: the memory of millions of events in one goroutine")
	}
	for _, pending := range []int{1, 10, 1000} {
		q := wheel.New(0)
		for i := range pending {
			q.Push(5, 0)
			q.Push(int64(10+i), 0)
		}
		start := allocated()
		for range 1 << 20 {
			e, _ := q.Pop()
			q.Push(e.At, 0)
		}
		if grown := allocated() - start; grown > 1<<20 {
			t.Errorf("with %d pending: %.0f bytes more than before", pending, grown)
		}
		runtime.KeepAlive(q)
	}
}

func TestNothingIsAllocatedOnceSettled(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: the memory of millions of events in one goroutine")
	}
	for _, h := range hold {
		if h.name == "all scales" {
			continue // runs to the end of time
		}
		for _, pending := range []int{1, 100, 10000} {
			r := rand.New(rand.NewPCG(4, 4))
			q := wheel.New(pending)
			for range pending {
				q.Push(h.next(r, 0), 0)
			}
			run := func() {
				for range 100000 {
					e, _ := q.Pop()
					q.Push(h.next(r, e.At), 0)
				}
			}
			run()
			// A rare random peak may still ask for a chunk that no earlier one did.
			if n := testing.AllocsPerRun(1, run); n > 10 {
				t.Errorf("%s, %d pending: %v allocations for 100000 events", h.name, pending, n)
			}
		}
	}
}
