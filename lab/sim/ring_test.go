package sim

import (
	"testing"
	"unsafe"

	"github.com/lullgo/lull/internal/check"
)

// inUse is how many places are out.
func (s *slab[T]) inUse() int { return int(s.used) - s.free.n }

// A ring does what a slice would.
func TestRing(t *testing.T) {
	var r ring
	var model []uint32
	d := random(1)
	for i := range uint32(100_000) {
		switch k := d(5); {
		case k < 3 && len(model) < 1000 || len(model) == 0:
			r.push(i)
			model = append(model, i)
		case k == 3:
			last := len(model) - 1
			if got := r.popBack(); got != model[last] {
				t.Fatalf("step %d: back %d, want %d", i, got, model[last])
			}
			model = model[:last]
		default:
			if got := r.front(); got != model[0] {
				t.Fatalf("step %d: front %d, want %d", i, got, model[0])
			}
			if got := r.popFront(); got != model[0] {
				t.Fatalf("step %d: first %d, want %d", i, got, model[0])
			}
			model = model[1:]
		}
		if r.n != len(model) {
			t.Fatalf("step %d: %d in it, want %d", i, r.n, len(model))
		}
	}
}

// Places are given out once at a time, what stands in them does not move, and the
// latest that was given back comes first.
func TestSlab(t *testing.T) {
	var s slab[int]
	const n = (manyBlocks+1)*blockSize + 5
	var at []*int
	for i := range n {
		k, p := s.take()
		if int(k) != i {
			t.Fatalf("place %d, want %d", k, i)
		}
		*p = i
		at = append(at, p)
	}
	for i := range n {
		if *s.at(uint32(i)) != i || s.at(uint32(i)) != at[i] {
			t.Fatalf("place %d has moved", i)
		}
	}
	s.release(7)
	s.release(9)
	want(t, "in use", s.inUse(), n-2)
	var again []uint32
	for range 3 {
		k, _ := s.take()
		again = append(again, k)
	}
	check.Slices(t, again, []uint32{9, 7, n}, "given out again")
	want(t, "in use", s.inUse(), n+1)
	for i := range uint32(n) { // all of them back, and out again
		s.release(i)
	}
	for i := range uint32(n) {
		if k, _ := s.take(); k != n-1-i {
			t.Fatalf("given out again: %d, want %d", k, n-1-i)
		}
	}
}

// What every event of a flight needs lies in one line of the cache.
func TestFlightsLieInLines(t *testing.T) {
	const line = 64
	var f flight
	want(t, "size of a flight", unsafe.Sizeof(f), 2*line)
	// Of a call, the first 40 bytes: up to what it paid, and its place at the breaker.
	if end := unsafe.Offsetof(f.call) + 40; end > line {
		t.Errorf("%d bytes are needed by every event, want %d at most", end, line)
	}
	var s slab[flight]
	for i := range uint32(blockSize + pieceSize + 1) {
		if _, p := s.take(); i%pieceSize == 0 && uintptr(unsafe.Pointer(p))%line != 0 {
			t.Fatalf("flight %d lies across two lines", i)
		}
	}
}
