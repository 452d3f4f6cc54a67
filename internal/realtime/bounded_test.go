package realtime

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
)

// Functions of AfterFunc run once, when the context ends for whatever reason, and those that were
// stopped do not.
func TestAfterFunc(t *testing.T) {
	ends := map[string]struct {
		end  func(c *Bounded, cancel func())
		want error
	}{
		"by the caller": {func(_ *Bounded, cancel func()) { cancel() }, context.Canceled},
		"by its time":   {func(*Bounded, func()) { time.Sleep(time.Second) }, context.DeadlineExceeded},
		"by End":        {func(c *Bounded, _ func()) { c.End() }, context.Canceled},
	}
	for name, e := range ends {
		for stopped := range 16 { // a bit for each function
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var clock Clock
				clock.Start()
				var c Bounded
				c.Init(ctx, &clock, clock.Now()+time.Second)
				ran := make(chan int, 8)
				var stops []func() bool
				var want []int
				for i := range 4 {
					stops = append(stops, c.AfterFunc(func() { ran <- i }))
				}
				for _, i := range []int{2, 0, 3, 1} {
					if stopped&(1<<i) == 0 {
						want = append(want, i)
					} else if !stops[i]() || stops[i]() {
						t.Errorf("%s: stop %d reports whether it has stopped the function, which it has once", name, i)
					}
				}
				child, cancelChild := context.WithCancel(&c)
				defer cancelChild()
				e.end(&c, cancel)
				synctest.Wait()
				close(ran)
				var got []int
				for i := range ran {
					got = append(got, i)
				}
				slices.Sort(got)
				slices.Sort(want)
				check.Slices(t, got, want, "%s", name)
				for i, stop := range stops {
					if stop() {
						t.Errorf("%s: function %d was stopped after the end", name, i)
					}
				}
				if c.Err() != e.want || child.Err() != e.want {
					t.Errorf("%s: the error is %v, and a child's %v: want %v", name, c.Err(), child.Err(), e.want)
				}
			})
		}
	}
}

// A function that was stopped has left, so that stopping it again does nothing to those that came
// after it, however many these are.
func TestAfterFuncManyTimes(t *testing.T) {
	var clock Clock
	clock.Start()
	ran := make(chan int, 2)
	var c Bounded
	c.Init(t.Context(), &clock, engine.Never)
	stops := make([]func() bool, 600)
	for i := range stops {
		stops[i] = c.AfterFunc(func() { ran <- i })
		for _, earlier := range stops[:i] {
			if earlier() {
				t.Fatalf("a function was stopped twice, the second time after %d others had come", i)
			}
		}
		if i < len(stops)-1 && !stops[i]() {
			t.Fatalf("function %d was not there", i)
		}
	}
	c.Cancel()
	check.Equal(t, <-ran, len(stops)-1, "the function that ran")
}

// A watcher is used again if nothing can call it any more, and only then: its late call would end
// another context.
func TestWatcherUsedAgain(t *testing.T) {
	for name, e := range map[string]struct {
		end   func(c *Bounded, cancel func())
		again bool
	}{
		"by the caller":   {func(_ *Bounded, cancel func()) { cancel() }, false},
		"by its time":     {func(*Bounded, func()) { time.Sleep(time.Second) }, false},
		"by End":          {func(c *Bounded, _ func()) { c.End() }, true},
		"Detach, Cancel":  {func(c *Bounded, _ func()) { c.Detach(); c.Cancel() }, true},
		"both at once":    {func(c *Bounded, cancel func()) { cancel(); c.End() }, false},
		"after extension": {func(c *Bounded, _ func()) { c.Extend(2 * time.Second); time.Sleep(3 * time.Second / 2); c.End() }, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var clock Clock
			clock.Start()
			c := &Bounded{Limit: engine.Never}
			c.Init(ctx, &clock, clock.Now()+time.Second)
			c.Done()
			c.mu.Lock()
			w := c.watcher
			c.mu.Unlock()
			e.end(c, cancel)
			synctest.Wait()
			if c.Err() == nil {
				t.Errorf("%s: the context has not ended", name)
			}
			if again := w.c == nil; again != e.again {
				t.Errorf("%s: the watcher is used again: %v, want %v", name, again, e.again)
			}
		})
	}
}

// What watches a context costs as little as can be, as much as context.WithTimeout: the channel, what
// the context package keeps of the function for the caller's end (two), and the timer. A child that
// package context hooks on costs it three more than under a context of its own.
func TestCost(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clock Clock
	clock.Start()
	measure := func(name string, want float64, f func(c *Bounded)) {
		n := testing.AllocsPerRun(100, func() {
			c := new(Bounded)
			c.Init(ctx, &clock, clock.Now()+time.Hour)
			f(c)
			c.End()
		})
		if n > want {
			t.Errorf("%s: %v allocations, want %v", name, n, want)
		}
	}
	measure("nobody watches", 1, func(c *Bounded) { c.Err() })
	measure("Done", 5, func(c *Bounded) { c.Done() })
	child := func(c *Bounded) { _, cancel := context.WithCancel(c); cancel() }
	measure("a child", 5+2+3, child)
	measure("one child after another", 5+2*(2+3), func(c *Bounded) { child(c); child(c) })
}
