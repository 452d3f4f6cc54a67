package recent

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/seed"
)

// The cache against a list in the order of use. Uses between two new keys have the
// same age, so which of those leaves is open.
func TestAgreesWithAModel(t *testing.T) {
	from := seed.Fresh(t)
	r := rand.New(rand.NewPCG(from, 1))
	for range 200 {
		size := 1 + r.IntN(40)
		made := 0
		c := New(size, func(string) int { made++; return made })
		value, used, clock := map[string]int{}, map[string]int{}, 0
		for step := range 400 {
			key := fmt.Sprint(r.IntN(3 * size))
			want, held := value[key]
			if c.Has(key) != held {
				t.Fatalf("seed %d, size %d, step %d: Has(%s) = %v", from, size, step, key, !held)
			}
			if !held {
				want = made + 1
			}
			if got := c.Get(key); got != want {
				t.Fatalf("seed %d, size %d, step %d: Get(%s) = %d, want %d", from, size, step, key, got, want)
			}
			if !held {
				clock++
			}
			value[key], used[key] = want, clock
			left := maps.Collect(c.All)
			if len(left) != c.Len() || len(left) > size {
				t.Fatalf("seed %d, size %d, step %d: %d keys, Len() = %d", from, size, step, len(left), c.Len())
			}
			var gone, stay []int
			for k := range value {
				if got, ok := left[k]; !ok {
					gone = append(gone, used[k])
					delete(value, k)
				} else if stay = append(stay, used[k]); got != value[k] {
					t.Fatalf("seed %d, size %d, step %d: %s has %d, want %d", from, size, step, k, got, value[k])
				}
			}
			if len(gone) > 0 && (held || len(gone) != max(size/8, 1) || len(stay) > 0 && slices.Max(gone) > slices.Min(stay)) {
				t.Fatalf("seed %d, size %d, step %d: ages %v left, %v stayed", from, size, step, gone, stay)
			}
		}
	}
}

func TestOneValueForAKey(t *testing.T) {
	c := New(4, func(string) *int { return new(int) })
	got := make([]*int, 16)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i] = c.Get("one") })
	}
	wg.Wait()
	for _, v := range got {
		if v != got[0] {
			t.Fatal("two goroutines got two values for one key")
		}
	}
}

// All uses at once: the bound holds, and no key is counted twice.
func TestConcurrentUse(t *testing.T) {
	c := New(16, func(key string) string { return key })
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 2))
			for range 2000 {
				key := fmt.Sprint(r.IntN(64))
				check.Equal(t, c.Get(key), key, "Get(%s)", key)
				c.Freeze(func() {
					if n := len(maps.Collect(c.All)); n != c.Len() || n > 16 {
						t.Errorf("%d keys, Len() = %d", n, c.Len())
					}
				})
			}
		})
	}
	wg.Wait()
}

func TestNoAllocations(t *testing.T) {
	c := New(2, func(string) int { return 1 })
	check.Equal(t, testing.AllocsPerRun(100, func() { c.Get("one"); c.Has("one"); c.Has("two") }), 0, "allocations")
}
