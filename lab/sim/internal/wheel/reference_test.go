package wheel_test

import "container/heap"

// A Queue has to equal a reference event for event: a binary heap by time, then by
// insertion.
type reference struct {
	items refHeap
	seq   uint64
	now   int64
	began bool
}

type refItem struct {
	at   int64
	seq  uint64
	data uint64
}

type refHeap []refItem

func (h refHeap) Len() int { return len(h) }
func (h refHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h refHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *refHeap) Push(x any)   { *h = append(*h, x.(refItem)) }
func (h *refHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

func (r *reference) push(at int64, data uint64) {
	if r.began {
		at = max(at, r.now)
	}
	r.seq++
	heap.Push(&r.items, refItem{at, r.seq, data})
}

func (r *reference) pop() (refItem, bool) {
	if len(r.items) == 0 {
		return refItem{}, false
	}
	x := heap.Pop(&r.items).(refItem)
	r.now, r.began = x.at, true
	return x, true
}
