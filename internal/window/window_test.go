package window

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/stripe"
)

// The counter must agree with a list of (tick, delta) pairs that is summed the
// slow way, at any sequence of ticks that does not run backwards.
func TestSumAgreesWithAList(t *testing.T) {
	const n = 10
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := New(n)
		type entry struct {
			tick  uint64
			delta int64
		}
		var list []entry
		tick := uint64(r.IntN(1000))
		for range 300 {
			tick += uint64(r.IntN(4)) * uint64(r.IntN(2)) * uint64(1+r.IntN(6))
			delta := int64(r.IntN(2001) - 1000)
			c.Add(tick, delta)
			list = append(list, entry{tick, delta})
			ask := tick + uint64(r.IntN(12))
			var want int64
			for _, e := range list {
				if ask-e.tick < n {
					want += e.delta
				}
			}
			if got := c.Sum(ask, n); got != want {
				t.Fatalf("seed %d: Sum(%d) = %d, want %d", seed, ask, got, want)
			}
		}
	}
}

func TestATickThatIsLateIsNotLost(t *testing.T) {
	c := New(10)
	c.Add(100, 1)
	c.Add(97, 1) // its own slot is still free
	check.Equal(t, c.Sum(100, 10), 2, "Sum")
	c.Add(100-16, 1) // its slot now belongs to tick 100
	check.Equal(t, c.Sum(100, 1), 2, "the slot of tick 100")
}

func TestALongRestLosesNothing(t *testing.T) {
	for _, rest := range []uint64{16, 1000, 1 << 13, 1 << 20, 1 << 22, 1<<22 + 1, 3 << 21, 1<<23 - 1<<13} {
		c := New(10)
		c.Add(32, 5)
		c.Add(32+rest&^15, 7) // the same slot
		check.Equal(t, c.Sum(32+rest&^15, 10), 7, "the window after a rest of %d ticks", rest&^15)
	}
}

func TestASlotSaturatesInsteadOfSpilling(t *testing.T) {
	c := New(4)
	for range 8 {
		c.Add(3, Max/2+1)
	}
	if got := c.Sum(3, 1); got < Max || got > 2*Max {
		t.Errorf("after too many additions the slot holds %d, want it to stay about %d", got, int64(Max))
	}
	for range 16 {
		c.Add(3, -Max/2-1)
	}
	if got := c.Sum(3, 1); got > -Max || got < -2*Max {
		t.Errorf("after too many subtractions the slot holds %d, want it to stay about %d", got, -int64(Max))
	}
}

// Once its goroutines have rings of their own, a counter must give the same sums.
func TestStripesAddUp(t *testing.T) {
	c := New(10)
	c.Add(4, 1)
	if runtime.GOMAXPROCS(0) == 1 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	for range firstStripes {
		if c.shared.Load() != nil {
			t.Fatal("stripes before there was enough contention")
		}
		c.contended(false, 0)
	}
	before := c.shared.Load()
	if before == nil {
		t.Fatal("contention did not lead to stripes")
	}
	c.Add(4, 0)
	for seat := range stripe.Seat(8) {
		at := seat.Of(len(*before))
		c.contended(true, seat)
		if c.shared.Load() != before || seat.Of(len(*before)) == at {
			t.Error("further contention did not give the goroutine another of the same stripes")
		}
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			c.Add(4, 10)
			c.Add(5, 100)
		})
	}
	wg.Wait()
	for _, ask := range []struct {
		tick uint64
		n    int
		want int64
	}{{4, 1, 161}, {5, 1, 1600}, {5, 10, 1761}, {14, 10, 1600}, {15, 10, 0}} {
		check.Equal(t, c.Sum(ask.tick, ask.n), ask.want, "Sum(%d, %d)", ask.tick, ask.n)
	}
	c.Reset()
	check.Equal(t, c.Sum(5, 10), 0, "after Reset")
}

func TestConcurrentAddsAreAllCounted(t *testing.T) {
	c := New(4)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 10000 {
				c.Add(uint64(i/2500), int64(g+1))
			}
		})
	}
	wg.Wait()
	check.Equal(t, c.Sum(3, 4), 10000*(1+2+3+4), "Sum")
}

func TestTick(t *testing.T) {
	for _, c := range []struct {
		now  time.Duration
		want uint64
	}{{-time.Hour, 0}, {0, 0}, {999 * time.Millisecond, 0}, {time.Second, 1}, {1<<63 - 1, 9223372036}} {
		check.Equal(t, Tick(c.now, time.Second), c.want, "Tick(%v)", c.now)
	}
}

func BenchmarkAdd(b *testing.B) {
	c := New(10)
	var now time.Duration
	for b.Loop() {
		now += 100
		c.Add(Tick(now, time.Second), 1)
	}
}

func BenchmarkAddParallel(b *testing.B) {
	c := New(10)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.Add(7, 1)
		}
	})
}
