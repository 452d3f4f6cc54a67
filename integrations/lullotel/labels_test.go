package lullotel

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
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
		if kept != min(most, 100) {
			t.Errorf("%d names are kept, want %d", kept, min(most, 100))
		}
	}
}

// The cost of adding names does not grow with their square: copies are counted, not time.
func TestManyNames(t *testing.T) {
	const many = 1 << 14
	n := newNames(many, newTally)
	copies, last := 0, n.table.old.Load()
	for i := range many {
		name := fmt.Sprint(i)
		for range 3 {
			n.get(name)
			if m := n.table.old.Load(); m != last {
				copies, last = copies+len(*m), m
			}
		}
	}
	if copies > 10*many {
		t.Errorf("%d names were copied for %d", copies, many)
	}
}

// A name that is looked up again and again is found without a lock in the end.
func TestNamesSettle(t *testing.T) {
	n := newNames(100, newTally)
	for i := range 50 {
		n.get(fmt.Sprint(i))
	}
	for range 50 {
		n.get("49")
	}
	if n.table.find("49") == nil {
		t.Error("it still takes the lock")
	}
}
