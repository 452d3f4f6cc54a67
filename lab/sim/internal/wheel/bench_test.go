package wheel_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/lullgo/lull/lab/sim/internal/wheel"
)

// queue has the methods that the benchmarks compare.
type queue interface {
	Push(at int64, data uint64)
	Pop() (wheel.Event, bool)
}

// heapQueue is container/heap as it is usually taken: a pointer to each event.
type heapQueue struct{ ref reference }

func (h *heapQueue) Push(at int64, data uint64) { h.ref.push(at, data) }
func (h *heapQueue) Pop() (wheel.Event, bool) {
	x, ok := h.ref.pop()
	return wheel.Event{At: x.at, Data: x.data}, ok
}

var queues = []struct {
	name string
	most int // pending
	make func(n int) queue
}{
	{"wheel", 1e9, func(n int) queue { return wheel.New(n) }},
	{"heap", 1e6, func(n int) queue { return &heapQueue{} }},
}

// A pop and a push with n pending, each a random time after the one popped.
func BenchmarkHold(b *testing.B) {
	exponential := make([]int64, 1<<16)
	for i := range exponential {
		exponential[i] = int64(rand.ExpFloat64() * 1e9)
	}
	for _, n := range []int{10, 100, 1e3, 1e4, 1e5, 1e6, 1e7} {
		for _, c := range queues {
			b.Run(fmt.Sprintf("pending=%d/%s", n, c.name), func(b *testing.B) {
				if n > c.most {
					b.Skip("takes too long")
				}
				q := c.make(n)
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
}

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// A retry storm: n clients fail within 200 ms, and try again after a full jitter
// of 100 ms, doubled each time, up to four times. One operation is the whole.
func BenchmarkStorm(b *testing.B) {
	for _, n := range []int{1e3, 1e4, 1e5, 1e6, 1e7, 2.5e7} {
		for _, c := range queues {
			b.Run(fmt.Sprintf("clients=%d/%s", n, c.name), func(b *testing.B) {
				if n > c.most {
					b.Skip("takes too long")
				}
				events := 0
				for b.Loop() {
					q := c.make(n)
					for i := range uint64(n) {
						q.Push(int64(mix(i)%200e6), i)
					}
					for {
						e, ok := q.Pop()
						if !ok {
							break
						}
						events++
						if attempt := e.Data >> 56; attempt < 4 {
							q.Push(e.At+int64(mix(e.Data)%(100e6<<attempt)), e.Data+1<<56)
						}
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
			})
		}
	}
}
