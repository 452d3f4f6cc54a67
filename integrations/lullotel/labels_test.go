package lullotel

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/lullgo/lull/internal/check"
)

// A name always returns the same thing, whoever asks, and there are no more things than the limit.
func TestNamesAreTheSameForAll(t *testing.T) {
	for _, most := range []int{1, 2, 7, 1000} {
		n := newNames(most, newTally)
		var seen sync.Map
		var all sync.WaitGroup
		for w := range uint64(4) {
			all.Go(func() {
				random := rand.New(rand.NewPCG(1, w))
				for range 5000 {
					name := fmt.Sprint(random.IntN(100))
					v := n.get(name)
					if was, _ := seen.LoadOrStore(name, v); was != v || v.label != name && v.label != Other {
						t.Errorf("%s is %s now", name, v.label)
						return
					}
				}
			})
		}
		all.Wait()
		kept, labels := 0, make(map[string]bool)
		n.all(func(v *tally) {
			if labels[v.label] {
				t.Errorf("%s is there twice", v.label)
			}
			labels[v.label] = true
			if v.label != Other {
				kept++
			}
		})
		check.Equal(t, kept, min(most, 100), "names that are kept")
	}
}
