package wheel_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/lullgo/lull/lab/sim/internal/draw"
	"github.com/lullgo/lull/lab/sim/internal/wheel"
)

// A pop and a push with n pending, each a random time after the one popped.
func BenchmarkHold(b *testing.B) {
	exponential := make([]int64, 1<<16)
	for i := range exponential {
		exponential[i] = int64(rand.ExpFloat64() * 1e9)
	}
	for _, n := range []int{10, 100, 1e3, 1e4, 1e5, 1e6, 1e7} {
		b.Run(fmt.Sprintf("pending=%d", n), func(b *testing.B) {
			q := wheel.New(n)
			for i := range n {
				q.Push(exponential[i&(1<<16-1)]+int64(i), uint64(i))
			}
			for i := range min(2*n, 1<<20) {
				e, _ := q.Pop()
				q.Push(e.At+exponential[i&(1<<16-1)], e.Data)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				e, _ := q.Pop()
				q.Push(e.At+exponential[i&(1<<16-1)], e.Data)
				i++
			}
		})
	}
}

// A retry storm: n clients fail within 200 ms, and try again after a full jitter
// of 100 ms, doubled each time, up to four times. One operation is the whole.
func BenchmarkStorm(b *testing.B) {
	for _, n := range []int{1e3, 1e4, 1e5, 1e6, 1e7, 2.5e7} {
		b.Run(fmt.Sprintf("clients=%d", n), func(b *testing.B) {
			events := 0
			for b.Loop() {
				q := wheel.New(n)
				for i := range uint64(n) {
					q.Push(int64(draw.Mix(0, i)%200e6), i)
				}
				for {
					e, ok := q.Pop()
					if !ok {
						break
					}
					events++
					if attempt := e.Data >> 56; attempt < 4 {
						q.Push(e.At+int64(draw.Mix(0, e.Data)%(100e6<<attempt)), e.Data+1<<56)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
		})
	}
}
