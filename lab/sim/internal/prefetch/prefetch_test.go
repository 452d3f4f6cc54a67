package prefetch

import (
	"testing"
	"unsafe"

	"github.com/lullgo/lull/internal/check"
)

// Asking changes nothing, whatever the addresses, and costs no memory.
func TestAskingIsHarmless(t *testing.T) {
	data := make([]int, 4096)
	for i := range data {
		data[i] = i
	}
	var ask []unsafe.Pointer
	Lines(ask)
	for i := range data {
		ask = append(ask, unsafe.Pointer(&data[i]))
	}
	ask = append(ask, nil)
	Lines(ask)
	Lines(ask[7:8])
	for i := range data {
		if data[i] != i {
			t.Fatalf("word %d is %d", i, data[i])
		}
	}
	check.Equal(t, testing.AllocsPerRun(100, func() { Lines(ask) }), 0, "allocations")
}

// What is asked for ahead is there: the sum of words that lie far apart, read in
// an order that no processor guesses.
func BenchmarkWalk(b *testing.B) {
	const n, stride, ahead = 1 << 20, 16, 32
	data := make([]uint64, n*stride)
	for _, ask := range []bool{false, true} {
		b.Run(map[bool]string{false: "unasked", true: "asked"}[ask], func(b *testing.B) {
			place := func(i int) *uint64 { return &data[(i*0x1e3779b1&(n-1))*stride] }
			var few [ahead]unsafe.Pointer
			var sum uint64
			for i := range b.N {
				if ask && i%ahead == 0 {
					for k := range few {
						few[k] = unsafe.Pointer(place(i + ahead + k))
					}
					Lines(few[:])
				}
				p := place(i + int(sum&1)) // each waits for the one before it
				sum += *p
				*p = 2 * sum
			}
		})
	}
}
