package hedge

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
)

// edges are the upper edges of all buckets: 32 steps of 1.024 µs, another 32, and then
// in each doubling 32 of twice the width.
var edges = func() (list []time.Duration) {
	at, width := time.Duration(0), time.Duration(1024)
	for doubling := range 22 {
		if doubling > 1 {
			width *= 2
		}
		for range 32 {
			at += width
			list = append(list, at)
		}
	}
	return list
}()

// edge is the upper edge of the bucket of d.
func edge(d time.Duration) time.Duration {
	i := sort.Search(len(edges), func(i int) bool { return edges[i] > d })
	return edges[min(i, len(edges)-1)]
}

func TestBucketEdges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	try := []time.Duration{0, 1, 1023, 1024, 32*1024 - 1, 32 * 1024, 64*1024 - 1, 64 * 1024, 1<<36 - 1, 1 << 36, 1<<36 + 1, math.MaxInt64}
	for range 200_000 {
		try = append(try, time.Duration(r.Uint64()>>(1+r.IntN(63))))
	}
	for _, d := range try {
		up := upper(bucket(d))
		if want := edge(d); up != want {
			t.Fatalf("%v is in a bucket up to %v, want %v", d, up, want)
		}
		if longest := time.Duration(1 << 36); d < longest && (up <= d || up-d > max(d/32, 1024)) || d >= longest && up != longest {
			t.Fatalf("%v is in a bucket up to %v", d, up)
		}
	}
}

func TestTallySlots(t *testing.T) {
	var tl tally
	for slot := range uint32(slots) {
		for n := range slot + 1 {
			tl.add(slot, time.Duration(n+1)*7*time.Millisecond)
		}
	}
	check.Equal(t, tl.total(span{5, slots}), 1+2+3+4+5+6, "in all slots")
	if n := tl.total(span{1, 3}); n != 2+1+6 { // slots 1, 0 and 5
		t.Errorf("%d in three slots back from the second, want 9", n)
	}
	tl.clear(5)
	check.Equal(t, tl.total(span{1, 3}), 2+1, "after one was cleared")
}
