package sim

import (
	"math"
	"time"

	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/lab/sim/internal/draw"
)

type cache struct {
	def   *Cache
	until []time.Duration // by key: the end of its time; zero: it is not there
	order ring            // the keys that are there, if not all fit: the first came first
}

func newCache(def *Cache) *cache {
	if def.Keys == 0 {
		return nil
	}
	c := &cache{def: def, until: make([]time.Duration, def.Keys)}
	if def.Cold {
		return c
	}
	n := def.Keys
	if def.Size > 0 {
		n = def.Size
	}
	for k := range n { // the most popular
		c.store(uint32(k), 0)
		if def.For > 0 { // their times do not end all at once
			c.until[k] = max(duration(float64(def.For)*draw.Unit(draw.Mix(1, uint64(k)))), 1)
		}
	}
	return c
}

// key is what job j asks for in its nth call.
func (c *cache) key(j *job, n int) uint32 {
	u := draw.Unit(draw.Mix(draw.Mix(j.key, 1<<34), uint64(n)))
	all := float64(c.def.Keys)
	var x float64
	switch s := c.def.Skew; {
	case s == 0:
		x = float64(u * all)
	case s == 1: // the inverse of the integral of 1/x from 1 to all + 1
		x = draw.Exp(float64(u*draw.Log(all+1))) - 1
	default:
		e := 1 - s
		top := draw.Exp(float64(e*draw.Log(all+1))) - 1
		x = draw.Exp(draw.Log(1+float64(u*top))/e) - 1
	}
	return uint32(min(max(math.Floor(x), 0), all-1))
}

func (c *cache) store(key uint32, now time.Duration) {
	if c.def.Size > 0 && c.until[key] == 0 {
		if c.order.n >= c.def.Size {
			c.until[c.order.popFront()] = 0
		}
		c.order.push(key)
	}
	c.until[key] = never
	if c.def.For > 0 {
		c.until[key] = saturating.Add(now, c.def.For)
	}
}

func (c *cache) lose(share float64, now time.Duration) {
	var kept ring
	for c.order.n > 0 {
		k := c.order.popFront()
		if share < 1 && flushDraw(k, now) >= share {
			kept.push(k)
		}
	}
	c.order = kept
	for k := range c.until {
		if share >= 1 || flushDraw(uint32(k), now) < share {
			c.until[k] = 0
		}
	}
}

func flushDraw(key uint32, now time.Duration) float64 {
	return draw.Unit(draw.Mix(uint64(now), uint64(key)))
}

func (w *world) foundInCache(s *service, j *job, n int) bool {
	c := s.caches[n]
	if c.until[c.key(j, n)] > w.now && !s.hosts[0].now(w.now).flushed {
		w.rec.count(w.now, &w.rec.totals.Hits)
		return true
	}
	w.rec.count(w.now, &w.rec.totals.Misses)
	return false
}

func (w *world) fillCache(s *service, j *job) {
	if n := int(j.hop) - 1; s.caches[n] != nil && !s.hosts[0].now(w.now).flushed {
		s.caches[n].store(s.caches[n].key(j, n), w.now)
	}
}

// flushCaches has the caches of s lose what a fault that begins now takes.
func (w *world) flushCaches(s *service) {
	for i := range s.def.Faults {
		f := &s.def.Faults[i]
		if to, ok := f.latest(w.now); f.Kind != Flush || !ok || to-f.For != w.now {
			continue
		}
		for _, c := range s.caches {
			if c != nil {
				c.lose(f.share(), w.now)
			}
		}
	}
}
