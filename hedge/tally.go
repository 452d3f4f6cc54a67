package hedge

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// A tally counts durations in buckets: 32 to each doubling, and 32 of 1.024 µs below the
// first. The upper edge of a bucket is above its durations by at most 1/32, or by about 1
// µs. Durations from 69 s on share the last bucket. The buckets of a doubling are made at
// the first duration, for all slots of the window.
type tally [doublings]atomic.Pointer[page]

type page [slots][steps]atomic.Uint32

const (
	stepBits  = 5
	steps     = 1 << stepBits
	unitBits  = 10 // 1.024 µs
	doublings = 22
	slots     = 6 // of the window
)

// bucket returns where d is counted. d must not be negative.
func bucket(d time.Duration) (doubling, step int) {
	v := uint64(d) >> unitBits
	if v < steps {
		return 0, int(v)
	}
	shift := bits.Len64(v) - stepBits - 1
	if shift+1 >= doublings {
		return doublings - 1, steps - 1
	}
	return shift + 1, int(v>>shift) - steps
}

// upper returns the upper edge of the bucket.
func upper(doubling, step int) time.Duration {
	if doubling == 0 {
		return time.Duration(step+1) << unitBits
	}
	return time.Duration(steps+step+1) << (doubling - 1 + unitBits)
}

func (t *tally) add(slot uint32, d time.Duration) {
	doubling, step := bucket(d)
	p := t[doubling].Load()
	if p == nil {
		t[doubling].CompareAndSwap(nil, new(page))
		p = t[doubling].Load()
	}
	p[slot][step].Add(1)
}

func (t *tally) clear(slot uint32) {
	for i := range t {
		if p := t[i].Load(); p != nil {
			for j := range p[slot] {
				p[slot][j].Store(0)
			}
		}
	}
}

// A span is some slots: the newest, and those before it.
type span struct {
	newest uint32
	slots  int
}

func (s span) slot(back int) uint32 { return (s.newest + slots - uint32(back)) % slots }

// sum returns how many are in one bucket. A nil page is empty.
func (p *page) sum(s span, step int) (n int64) {
	if p == nil {
		return 0
	}
	for back := range s.slots {
		n += int64(p[s.slot(back)][step].Load())
	}
	return n
}

func (t *tally) total(s span) (n int64) {
	for i := range t {
		if p := t[i].Load(); p != nil {
			for step := range steps {
				n += p.sum(s, step)
			}
		}
	}
	return n
}
