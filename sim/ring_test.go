package sim

import (
	"slices"
	"testing"
)

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
	const n = (manyPieces+blockPieces)*pieceSize + 5
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
	s.give(7)
	s.give(9)
	want(t, "in use", s.inUse(), n-2)
	var again []uint32
	for range 3 {
		k, _ := s.take()
		again = append(again, k)
	}
	if !slices.Equal(again, []uint32{9, 7, n}) {
		t.Errorf("given out again: %v", again)
	}
	want(t, "in use", s.inUse(), n+1)
}
