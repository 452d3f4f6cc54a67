package audience

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

// Listeners hear everything in order, also what they bring about themselves, and not
// under the lock.
func TestInOrderOutsideTheLock(t *testing.T) {
	var mu sync.Mutex
	var a Audience[int]
	var heard []string
	a = Of([]func(int){
		func(n int) {
			heard = append(heard, fmt.Sprint("first ", n))
			if n == 1 {
				mu.Lock() // would block for ever under the lock
				a.Announce(3)
				a.Unlock(&mu)
			}
		},
		func(n int) { heard = append(heard, fmt.Sprint("second ", n)) },
	})
	mu.Lock()
	a.Announce(1)
	a.Announce(2)
	a.Unlock(&mu)
	if want := []string{"first 1", "second 1", "first 2", "second 2", "first 3", "second 3"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
	mu.Lock() // free
	a.Unlock(&mu)
}

// If one panics the others are still called, and the panic continues.
func TestAPanicKeepsNothingFromOthers(t *testing.T) {
	var mu sync.Mutex
	var heard []int
	a := Of([]func(int){
		func(n int) {
			if n == 1 {
				panic("no")
			}
		},
		func(n int) { heard = append(heard, n) },
	})
	func() {
		defer func() {
			if recover() != "no" {
				t.Error("the panic is gone")
			}
		}()
		mu.Lock()
		a.Announce(1)
		a.Announce(2)
		a.Unlock(&mu)
	}()
	mu.Lock()
	a.Announce(3)
	a.Unlock(&mu)
	if !slices.Equal(heard, []int{1, 2, 3}) {
		t.Errorf("heard %v", heard)
	}
}

// Concurrent owners: each listener hears everything, and never two things at once.
func TestOneAtATime(t *testing.T) {
	var mu, one sync.Mutex
	next, want := 0, 0
	a := Of([]func(int){func(n int) {
		if !one.TryLock() {
			t.Error("two at once")
			return
		}
		defer one.Unlock()
		if n != want {
			t.Errorf("heard %d, want %d", n, want)
		}
		want++
	}})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				mu.Lock()
				a.Announce(next)
				next++
				a.Unlock(&mu)
			}
		})
	}
	wg.Wait()
	if want != 8000 {
		t.Errorf("heard %d of 8000", want)
	}
	var none Audience[int]
	mu.Lock()
	none.Announce(1)
	none.Unlock(&mu)
}
