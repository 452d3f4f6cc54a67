package queuetest

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A server is restarted once for those that want it at a time, never while one that has entered is at work, and also if
// others end without a restart, or the one that carries it out ends with it.
func TestGathering(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var restarts, working atomic.Int64
		fail := true
		g := newGathering(func(t testing.TB) {
			if n := working.Load(); n != 0 {
				t.Errorf("%d are at work", n)
			}
			restarts.Add(1)
			time.Sleep(time.Minute)
			if fail {
				fail = false
				t.FailNow()
			}
		})
		work := func(d time.Duration) {
			working.Add(1)
			time.Sleep(d)
			working.Add(-1)
		}
		var all sync.WaitGroup
		var failed atomic.Int64
		run := func(f func(t testing.TB)) {
			all.Go(func() {
				r := &recorder{TB: t}
				r.run(func(t testing.TB) {
					g.enter(t)
					f(t)
				})
				if r.Failed() {
					failed.Add(1)
				}
			})
		}
		for i := range 4 {
			run(func(t testing.TB) {
				work(time.Duration(i+1) * time.Second)
				if i == 1 {
					return
				}
				g.want(t)
				work(time.Duration(i) * time.Second)
				if i == 2 {
					g.want(t)
				}
			})
		}
		time.Sleep(30 * time.Second)
		run(func(testing.TB) { work(time.Second) }) // it comes during the first restart
		all.Wait()
		if n := restarts.Load(); n != 2 {
			t.Errorf("%d restarts, want 2", n)
		}
		if n := failed.Load(); n != 1 {
			t.Errorf("%d have failed, want the one whose restart did", n)
		}
	})
}
