package outlier

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/lullgo/lull/internal/chance"
)

// An Endpoint stands for one call, from Pick to Done. The zero Endpoint stands for none;
// Done ignores it.
type Endpoint struct {
	h      *host
	start  time.Duration
	gen    uint32
	stripe uint32
}

// Key returns the key that was given to Update; empty for the zero Endpoint.
func (e Endpoint) Key() string {
	if e.h == nil {
		return ""
	}
	return e.h.key
}

// Tried has the latest eight endpoints of earlier attempts of a call. The zero Tried has
// none. It is a plain value of 36 bytes, for one call and one Set, and must not be used
// concurrently.
type Tried struct {
	ids [8]uint32 // oldest first
	n   uint32
}

// Add records an endpoint. Pick adds those that it returns.
func (t *Tried) Add(e Endpoint) {
	if e.h == nil {
		return
	}
	at := uint32(0)
	for at < t.n && t.ids[at] != e.h.id {
		at++
	}
	if at == uint32(len(t.ids)) {
		at = 0
	}
	if at == t.n {
		t.n++
	}
	copy(t.ids[at:t.n], t.ids[at+1:t.n])
	t.ids[t.n-1] = e.h.id
}

// Has reports whether e is among the latest eight.
func (t *Tried) Has(e Endpoint) bool {
	for _, id := range t.ids[:t.n] {
		if e.h != nil && id == e.h.id {
			return true
		}
	}
	return false
}

// Pick chooses an endpoint for a call that starts at now, a healthy one if there is one.
// Report the end of the call once with Done, however it ends: otherwise the endpoint seems
// busy for ever. ok is false if the set is empty.
//
// If tried is not nil, Pick avoids the endpoints in it, or if all healthy ones are in it,
// takes the one tried longest ago. It adds its choice to tried.
//
// random returns 64 random bits. Pick calls it once, and more often if a sweep is due. nil
// stands for the middle of every range: TwoChoices then compares the same two endpoints
// each time.
func (s *Set) Pick(now time.Duration, random func() uint64, tried *Tried) (Endpoint, bool) {
	if int64(now) >= s.next.Load() {
		s.sweep(now, random)
	}
	v := s.view.Load()
	stripe, seat := v.stripe()
	var h *host
	switch n := len(v.endpoints); {
	case n == 0:
		return Endpoint{}, false
	case n == 1:
		h = v.endpoints[0]
	case tried == nil || tried.n == 0:
		h = s.choose(v, nil, stripe, random)
	default:
		h = s.chooseUntried(v, tried, stripe, random)
	}
	e := Endpoint{h: h, start: now, gen: h.gen.Load(), stripe: stripe}
	c := h.cell(stripe)
	if w := c.Load(); !c.CompareAndSwap(w, w+oneCall) {
		c.Add(oneCall)
		s.contended(v, seat)
	}
	if tried != nil {
		tried.Add(e)
	}
	return e, true
}

func (s *Set) chooseUntried(v *view, tried *Tried, stripe uint32, random func() uint64) *host {
	var found [len(tried.ids)]int32
	skip := found[:0]
	for i := int(tried.n) - 1; i >= 0 && len(skip) < len(v.endpoints)-1; i-- { // latest first
		for at, id := range v.ids {
			if id == tried.ids[i] {
				i, _ := slices.BinarySearch(skip, int32(at))
				skip = slices.Insert(skip, i, int32(at))
				break
			}
		}
	}
	return s.choose(v, skip, stripe, random)
}

// choose returns a host of v at no place in skip, which is sorted, and leaves at least one.
func (s *Set) choose(v *view, skip []int32, stripe uint32, random func() uint64) *host {
	k := uint64(len(v.endpoints) - len(skip))
	if s.choice == RoundRobin {
		return v.at((s.turn.Add(1)-1)%k, skip)
	}
	r := chance.Bits(random)
	if s.choice == LeastLoaded {
		return v.least(r, k, skip, stripe)
	}
	if k == 1 {
		return v.at(0, skip)
	}
	i, j := r>>32*k>>32, r&math.MaxUint32*(k-1)>>32
	if j >= i {
		j++
	}
	a, b := v.at(i, skip), v.at(j, skip)
	if b.isBetterThan(a, stripe, s.choice) {
		return b
	}
	return a
}

// at returns the i-th host that is not skipped.
func (v *view) at(i uint64, skip []int32) *host {
	for _, place := range skip {
		if i >= uint64(place) {
			i++
		}
	}
	return v.endpoints[i]
}

// least returns the one of k hosts with the fewest calls in flight. It begins at a random
// place, so equals take turns.
func (v *view) least(r, k uint64, skip []int32, stripe uint32) *host {
	i, _ := bits.Mul64(r, k)
	best := v.at(i, skip)
	for range k - 1 {
		if i++; i == k {
			i = 0
		}
		if h := v.at(i, skip); h.load(stripe) < best.load(stripe) {
			best = h
		}
	}
	return best
}

func (h *host) isBetterThan(g *host, stripe uint32, c Choice) bool {
	a, b := h.load(stripe), g.load(stripe)
	if c == LeastTime {
		x, y := math.Float64frombits(h.took.Load()), math.Float64frombits(g.took.Load())
		if x > 0 && y > 0 {
			return float64(a+1)*x < float64(b+1)*y
		}
	}
	return a < b
}
