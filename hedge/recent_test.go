package hedge

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

// history is a list of what happened, by slots of a quarter of a second.
type history struct {
	calls, late, hedges map[int]int
	stock               int64 // hedges, in units
}

func (h history) sum(m map[int]int, slot, n int) (sum int) {
	for i := range n {
		sum += m[slot-i]
	}
	return sum
}

// The rule by the book: late calls, this one included, are no more than share of
// the calls of the last 1, 2, 4 or 8 s, the first of these in which share of the
// calls is four or more, or else the last. If it is less than four even then, a hedge
// that is in stock does as well, but for what the late call itself has put there.
func (h *history) allows(share float64, slot int) bool {
	for n := 4; ; n *= 2 {
		pays := share * float64(h.sum(h.calls, slot, n))
		if pays < 4 && n < 32 {
			continue
		}
		if float64(h.sum(h.late, slot, n)) <= pays+1e-9 {
			return true
		}
		if pays >= 4 {
			return false
		}
		if h.stock = max(h.stock-int64(share*unit), 0); h.stock >= unit {
			h.stock -= unit
			return true
		}
		return false
	}
}

// Random histories: rates that change, latencies that change, bursts, pauses. Every
// answer is by the book, and the load that is added is bounded, in every stretch of
// time: hedges are no more than share of the calls in it and in the eight seconds
// before it, and what is in stock: two at most, and share of the calls where those are few.
func TestShareByTheBook(t *testing.T) {
	t.Parallel()
	granted, refused, seeds := 0, 0, seed.Runs(12)
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 5))
		share := []float64{0.02, 0.1, 0.1, 0.3, 1, 1.5}[r.IntN(6)]
		attempts := 2 + r.IntN(2)
		h := must.Have(New(Config{Attempts: attempts, Delay: ms, Share: share, InFlight: -1}))
		book := history{map[int]int{}, map[int]int{}, map[int]int{}, full}
		var waiting []Flight
		now := time.Duration(r.Int64N(int64(time.Hour)))
		first := int(now / tick)
		counting := false // calls are counted from the first late one on
		gap, lateness := 0.0, 0.0
		for step := range 4000 {
			if step%200 == 0 {
				gap = []float64{1e3, 1e6, 10e6, 100e6, 500e6}[r.IntN(5)]
				lateness = []float64{0, 0.05, 0.1, 0.2, 1}[r.IntN(5)]
				if r.IntN(4) == 0 {
					now += time.Duration(r.Int64N(20e9))
				}
			}
			now += time.Duration(r.ExpFloat64() * gap)
			slot := int(now / tick)
			f := h.Start(now)
			book.calls[slot]++
			if counting {
				book.stock = min(book.stock+int64(share*unit), full)
			}
			if r.Float64() < lateness {
				waiting = append(waiting, f)
			}
			for len(waiting) > 0 && r.IntN(2) == 0 {
				if !counting {
					counting = true
					clear(book.calls)
					book.calls[slot]++
				}
				late := waiting[0]
				waiting = waiting[1:]
				book.late[slot]++
				want := TooManyLate
				if book.allows(share, slot) {
					want = Granted
				}
				if why := h.Fire(now, &late); why != want {
					t.Fatalf("seed %d step %d: Fire says %v, want %v", seed, step, why, want)
				}
				if want == Granted {
					book.hedges[slot]++
					granted++
					if _, ok := late.Delay(); ok {
						waiting = append(waiting, late)
					}
				} else {
					refused++
				}
			}
			if step%50 == 0 {
				calls, late := h.Counts(now)
				if counting && (int(calls) != book.sum(book.calls, slot, 4) || int(late) != book.sum(book.late, slot, 4)) {
					t.Fatalf("seed %d step %d: counts %d, %d, want %d, %d", seed, step, calls, late, book.sum(book.calls, slot, 4), book.sum(book.late, slot, 4))
				}
			}
		}
		last := int(now / tick)
		for from := first; from <= last; from += 1 + (last-first)/300 {
			hedges, calls := 0, book.sum(book.calls, from-1, 32)
			for to := from; to <= last; to++ {
				hedges += book.hedges[to]
				calls += book.calls[to]
				if float64(hedges) > 2*share*float64(calls)+stocked+1e-6 {
					t.Fatalf("seed %d: %d hedges in %d slots, %v of %d calls", seed, hedges, to-from+1, share, calls)
				}
			}
		}
	}
	if want := 4000 * seeds / 120; granted < want || refused < want {
		t.Errorf("%d granted, %d refused: the test does not stir", granted, refused)
	}
}

// Once refused, a call is refused for good, and need not be asked about.
func TestRefusedForGood(t *testing.T) {
	h := must.Have(New(Config{Attempts: 3, Delay: ms}))
	for i := range stocked {
		if f := h.Start(0); h.Fire(ms, &f) != Granted {
			t.Fatalf("call %d of all, of which two are in stock: %v", i+1, f.Reason())
		}
	}
	f := h.Start(0)
	if why := h.Fire(ms, &f); why != TooManyLate {
		t.Fatalf("the third of all calls: %v", why)
	}
	for range 100 {
		h.Start(time.Second)
	}
	_, late := h.Counts(time.Second)
	if d, ok := f.Delay(); ok {
		t.Errorf("it has a delay of %v yet", d)
	}
	if why := h.Fire(time.Second, &f); why != TooManyLate || f.Reason() != TooManyLate {
		t.Errorf("asked again, it says %v, %v", why, f.Reason())
	}
	if _, again := h.Counts(time.Second); again != late {
		t.Errorf("it was counted again: %d late calls, then %d", late, again)
	}
}
