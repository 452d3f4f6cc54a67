package queuetest

import (
	"sync"
	"testing"
)

// A sharedRestart restarts a server once for all tests that want it at a time: as soon as each test that has
// entered wants it, or has ended. None enters during a restart.
type sharedRestart struct {
	restart func(t testing.TB)

	mu         sync.Mutex
	changed    *sync.Cond // when one of these is
	entered    int
	waiting    int // of those that have entered
	restarting bool
	restarts   int
}

func newGathering(restart func(t testing.TB)) *sharedRestart {
	g := &sharedRestart{restart: restart}
	g.changed = sync.NewCond(&g.mu)
	return g
}

// enter has t take part until it ends.
func (g *sharedRestart) enter(t testing.TB) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.restarting {
		g.changed.Wait()
	}
	g.entered++
	t.Cleanup(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.entered--
		g.changed.Broadcast()
	})
}

// want returns when the server was restarted.
func (g *sharedRestart) want(t testing.TB) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting++
	g.changed.Broadcast()
	for before := g.restarts; g.restarts == before; g.changed.Wait() {
		if g.waiting < g.entered || g.restarting {
			continue
		}
		g.restarting = true
		g.mu.Unlock()
		defer func() { // in any case: restart may end the test
			g.mu.Lock()
			g.restarting, g.waiting = false, 0
			g.restarts++
			g.changed.Broadcast()
		}()
		g.restart(t)
		return
	}
}
