// Package recent keeps a value for each key, and forgets those that were not asked
// for the longest when there are too many.
package recent

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A Cache keeps a value for each key. Its methods may be called concurrently. Make one with
// New. Get takes no lock and allocates nothing for a key that it holds.
type Cache[V any] struct {
	size    int
	make    func(key string) V
	clock   atomic.Int64  // counts new keys: the age of an entry is measured in them
	count   atomic.Int64  // of entries in byKey
	byKey   sync.Map      // of *entry[V]
	mu      sync.Mutex    // held to add and to remove, and to change near
	freezes atomic.Uint64 // how often Freeze has ended; changes under mu
	// near has some of the entries, by place: a few keys are most of what is asked for.
	near [16]atomic.Pointer[entry[V]]
}

// place returns where in near the entry of a key may be.
func (c *Cache[V]) place(key string) *atomic.Pointer[entry[V]] {
	n := len(key)
	if n > 0 {
		n += int(key[0]) + 5*int(key[len(key)-1])
	}
	return &c.near[n%len(c.near)]
}

type entry[V any] struct {
	key   string
	value V
	used  atomic.Int64 // the clock when it was last asked for
}

// New returns a cache for at most size keys, which must be positive. make makes the value
// of a new key. It may be called concurrently, and more than once for a key.
func New[V any](size int, make func(key string) V) *Cache[V] {
	return &Cache[V]{size: size, make: make}
}

// Get returns the value of a key, and makes it if there is none.
func (c *Cache[V]) Get(key string) V {
	e := c.place(key).Load()
	if e == nil || e.key != key {
		v, ok := c.byKey.Load(key)
		if !ok {
			return c.add(key)
		}
		e = v.(*entry[V])
	}
	if now := c.clock.Load(); e.used.Load() != now {
		e.used.Store(now)
	}
	return e.value
}

// Has reports whether the cache holds a key. That does not count as asking for it.
func (c *Cache[V]) Has(key string) bool {
	if c.Len() == 0 {
		return false
	}
	_, ok := c.byKey.Load(key)
	return ok
}

// add makes the value without a lock, and again if Freeze was called meanwhile.
func (c *Cache[V]) add(key string) V {
	for {
		holds := c.freezes.Load()
		if v, ok := c.keep(key, c.make(key), holds); ok {
			return v
		}
	}
}

// keep adds an entry, unless there is one, or Freeze has ended since freezes was read. If
// there is no room, an eighth of the entries leave at once, so that a flood of new keys
// does not search the cache for each of them.
func (c *Cache[V]) keep(key string, value V, holds uint64) (_ V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.byKey.Load(key); ok {
		return v.(*entry[V]).value, true
	}
	if c.freezes.Load() != holds {
		return value, false
	}
	e := &entry[V]{key: key, value: value}
	if c.Len() >= c.size {
		c.evict(max(c.size/8, 1))
	}
	e.used.Store(c.clock.Add(1))
	c.count.Add(1)
	c.byKey.Store(key, e)
	c.place(key).Store(e)
	return value, true
}

// evict removes the n entries that were not asked for the longest. The lock is held.
func (c *Cache[V]) evict(n int) {
	held := int64(c.Len())
	keys := make([]any, 0, held)
	ages := make([]int64, 0, held) // with the place of the key, so that they sort as plain numbers
	for key, v := range c.byKey.Range {
		ages = append(ages, v.(*entry[V]).used.Load()*held+int64(len(keys)))
		keys = append(keys, key)
	}
	slices.Sort(ages)
	for _, age := range ages[:n] {
		key := keys[age%held].(string)
		c.byKey.Delete(key)
		if at := c.place(key); at.Load() != nil && at.Load().key == key {
			at.Store(nil)
		}
	}
	c.count.Add(int64(-n))
}

// Freeze calls f while no key comes or leaves. Values that are being made meanwhile are
// made again, because f may change how.
func (c *Cache[V]) Freeze(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.freezes.Add(1)
	f()
}

// Len returns the number of keys.
func (c *Cache[V]) Len() int { return int(c.count.Load()) }

// All calls f with every key and its value, in any order, until f returns false. It does
// not count as asking for them.
func (c *Cache[V]) All(f func(key string, value V) bool) {
	for k, v := range c.byKey.Range {
		if !f(k.(string), v.(*entry[V]).value) {
			return
		}
	}
}
