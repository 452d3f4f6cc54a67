package audience

import (
	"fmt"
	"sync"
	"testing"

	"github.com/lullgo/lull/internal/check"
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
	check.Slices(t, heard, []string{"first 1", "second 1", "first 2", "second 2", "first 3", "second 3"}, "heard")
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
			check.Equal(t, recover(), "no", "the panic is gone")
		}()
		mu.Lock()
		a.Announce(1)
		a.Announce(2)
		a.Unlock(&mu)
	}()
	mu.Lock()
	a.Announce(3)
	a.Unlock(&mu)
	check.Slices(t, heard, []int{1, 2, 3}, "heard")
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
		check.Equal(t, n, want, "heard")
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
	check.Equal(t, want, 8000, "heard")
	var none Audience[int]
	mu.Lock()
	none.Announce(1)
	none.Unlock(&mu)
}
