package status

import (
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/recent"
)

// A Page shows the state of dependencies. It is an http.Handler for the page, and an event.Observer that counts
// what fails. The zero Page is ready. Its methods may be called concurrently; it must not be copied after its
// first use.
type Page struct {
	// ForceCircuits shows buttons that force the circuit of a dependency open or closed, or end that. They send a
	// POST with the fields "dependency" (its name: all that have it are meant) and "circuit" ("open", "closed" or
	// "auto"). What a browser sends from another site is refused. Who else may send one is for the handler before
	// the page to decide, which should also refuse hosts that it does not know: a name of somebody else that leads
	// to this server (DNS rebinding) is the page's own site for a browser. It must be set before the first request.
	ForceCircuits bool

	once    sync.Once
	began   time.Time
	tallies *recent.Cache[*tally] // by the name of the dependency

	mu      sync.Mutex // guards listers
	listers []iter.Seq[*lull.Dependency]
}

const (
	maxTallies = 1024
	maxName    = 128 // bytes of a name that are kept and shown
)

func (p *Page) init() {
	p.once.Do(func() {
		p.began = time.Now()
		p.tallies = recent.New(maxTallies, func(string) *tally { return new(tally) })
	})
}

// Watch shows the dependencies.
func (p *Page) Watch(deps ...*lull.Dependency) { p.WatchAll(slices.Values(slices.Clone(deps))) }

// WatchAll shows all dependencies that all yields when somebody asks for the page, such as those of a
// lull.Registry (WatchAll(registry.All)). nil shows none.
func (p *Page) WatchAll(all iter.Seq[*lull.Dependency]) {
	if all == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listers = append(p.listers, all)
}

// dependencies calls f with each dependency to show, once.
func (p *Page) dependencies(f func(*lull.Dependency)) {
	p.mu.Lock()
	listers := p.listers[:len(p.listers):len(p.listers)]
	p.mu.Unlock()
	seen := map[*lull.Dependency]bool{nil: true}
	for _, all := range listers {
		for d := range all {
			if !seen[d] {
				seen[d] = true
				f(d)
			}
		}
	}
}
