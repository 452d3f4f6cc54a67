package wheel_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lullgo/lull/lab/sim/internal/wheel"
)

// pair drives a queue and the reference side by side.
type pair struct {
	t   testing.TB
	q   *wheel.Queue
	ref reference
	id  uint64
}

func newPair(t testing.TB) *pair { return &pair{t: t, q: wheel.New(0)} }

func (p *pair) push(at int64) {
	p.id++
	p.q.Push(at, p.id)
	p.ref.push(at, p.id)
}

func (p *pair) now() int64 { return p.ref.now }

func (p *pair) pop() bool {
	want, ok := p.ref.pop()
	got, gotOK := p.q.Pop()
	if ok != gotOK || ok && (got.At != want.at || got.Data != want.data) {
		p.t.Fatalf("pop %d: got %v, %v, want {%d %d}, %v", p.id, got, gotOK, want.at, want.data, ok)
	}
	if p.q.Len() != len(p.ref.items) {
		p.t.Fatalf("Len is %d, want %d", p.q.Len(), len(p.ref.items))
	}
	return ok
}

func (p *pair) look(n int) {
	at, ok := p.q.Next()
	if ok != (len(p.ref.items) > 0) || ok && at != p.ref.items[0].at {
		p.t.Fatalf("Next is %d, %v, with %d pending", at, ok, len(p.ref.items))
	}
	next := p.q.Upcoming(n)
	if len(next) > max(n, 0) {
		p.t.Fatalf("Upcoming(%d) has %d events", n, len(next))
	}
	for _, e := range append([]wheel.Event(nil), next...) {
		for p.ref.items[0].data != e.Data { // one that came between
			if p.ref.items[0].at >= e.At {
				p.t.Fatalf("Upcoming has %v, which comes after %v", e, p.ref.items[0])
			}
			p.pop()
		}
		p.pop()
	}
}

func (p *pair) drain() {
	for p.pop() {
	}
}

var hold = []struct {
	name string
	next func(r *rand.Rand, now int64) int64
}{
	{"exponential", func(r *rand.Rand, now int64) int64 { return now + int64(r.ExpFloat64()*1e9) }},
	{"uniform", func(r *rand.Rand, now int64) int64 { return now + r.Int64N(1e8) }},
	{"one nanosecond", func(r *rand.Rand, now int64) int64 { return now + 1 }},
	{"the same time", func(r *rand.Rand, now int64) int64 { return now }},
	{"few distinct times", func(r *rand.Rand, now int64) int64 { return now + r.Int64N(3)*1e6 }},
	{"few nanoseconds", func(r *rand.Rand, now int64) int64 { return now + r.Int64N(200) }},
	{"the past", func(r *rand.Rand, now int64) int64 { return now - r.Int64N(1e9) + 1e8 }},
	{"near and far", func(r *rand.Rand, now int64) int64 {
		if r.IntN(100) == 0 {
			return now + r.Int64N(3600e9)
		}
		return now + r.Int64N(1000)
	}},
	{"all scales", func(r *rand.Rand, now int64) int64 {
		at := now + int64(r.Uint64()>>(1+r.IntN(63)))
		if at < now {
			return math.MaxInt64
		}
		return at
	}},
	{"a common instant", func(r *rand.Rand, now int64) int64 {
		if r.IntN(2) == 0 {
			return (now/1e9 + 1) * 1e9
		}
		return now + r.Int64N(1e6)
	}},
}

func TestOrderWhilePendingStaysTheSame(t *testing.T) {
	for _, h := range hold {
		for _, pending := range []int{1, 10, 100, 1000, 30000} {
			r := rand.New(rand.NewPCG(1, uint64(pending)))
			p := newPair(t)
			for range pending {
				p.push(h.next(r, 0))
			}
			for range 2*pending + 5000 {
				p.pop()
				p.push(h.next(r, p.now()))
			}
			p.drain()
		}
	}
}

// Phases of growth, of holding and of draining, with changing densities.
func TestOrderWhileDensityChanges(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(2, seed))
		p := newPair(t)
		for range 12 {
			next := hold[r.IntN(len(hold))].next
			grow := []int{0, 20, 50, 50, 80, 100}[r.IntN(6)] // percent of pushes
			for range 1 << r.IntN(14) {
				if r.IntN(100) < grow {
					p.push(next(r, p.now()))
				} else {
					p.pop()
				}
				if r.IntN(50) == 0 {
					p.look(r.IntN(100) - 10)
				}
			}
		}
		p.drain()
	}
}

func TestTheEndsOfTime(t *testing.T) {
	p := newPair(t)
	for range 300 {
		for _, at := range []int64{math.MaxInt64, math.MinInt64, 0, math.MaxInt64 - 1, math.MinInt64 + 1, -1} {
			p.push(at)
		}
	}
	for range 400 {
		p.pop()
		p.push(math.MinInt64)
		p.push(math.MaxInt64)
	}
	p.drain()
	for range 300 {
		p.push(0) // long past
		p.push(math.MaxInt64)
	}
	p.drain()
}

func TestAPastTimeCountsAsThatOfTheLastPop(t *testing.T) {
	q := wheel.New(0)
	q.Push(10, 1)
	q.Push(10, 2)
	q.Push(20, 3)
	q.Pop()
	q.Push(-5, 4)
	for _, want := range []wheel.Event{{10, 2}, {10, 4}, {20, 3}} {
		if e, ok := q.Pop(); e != want || !ok {
			t.Errorf("got %v, %v, want %v", e, ok, want)
		}
	}
	if e, ok := q.Pop(); e != (wheel.Event{}) || ok {
		t.Errorf("got %v, %v of an empty queue", e, ok)
	}
	q.Push(0, 5)
	if at, ok := q.Next(); at != 20 || !ok {
		t.Errorf("Next is %d, %v, want 20", at, ok)
	}
}

// A burst is due at one instant; before it, others come and go in numbers that
// each time make the queue divide its front.
func TestATrickleBeforeABurst(t *testing.T) {
	for _, width := range []int64{1, 2, 1000, 1e6} {
		r := rand.New(rand.NewPCG(5, 5))
		p := newPair(t)
		for range 40000 {
			p.push(1e9 + r.Int64N(width))
		}
		for range 300 {
			for range 200 {
				p.push(min(p.now()+r.Int64N(1e6), 1e9))
			}
			for range 195 {
				p.pop()
			}
		}
		p.drain()
	}
}

// Each event is followed by one a nanosecond later, in the midst of many.
func TestANanosecondLater(t *testing.T) {
	p := newPair(t)
	for i := range int64(20000) {
		p.push(i * 50)
	}
	for range 60000 {
		p.pop()
		p.push(p.now() + 1)
	}
	p.drain()
}
