package idempotency

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

// The defaults of the zero MemoryStoreConfig.
const (
	DefaultMemoryEntries = 100_000
	DefaultMemoryBytes   = 64 << 20
)

// A MemoryStoreConfig bounds a MemoryStore. No caller may hold more entries or bytes than are
// free: one greedy caller gets half, two get a third each, and a new caller always finds room.
// Callers that share their keys ([SharedScope]) have no shares.
type MemoryStoreConfig struct {
	// MaxEntries is how many keys are remembered at a time. Zero: 100,000.
	MaxEntries int
	// MaxBytes is how much their keys and records may take together. Zero: 64 MiB.
	MaxBytes int
}

// Validate reports everything that is wrong with c at once.
func (c MemoryStoreConfig) Validate() error {
	var l problem.List
	l.Check(c.MaxEntries >= 0, "MaxEntries", c.MaxEntries, "a positive number, or 0 for the default of 100000")
	l.Check(c.MaxBytes >= 0, "MaxBytes", c.MaxBytes, "a positive number of bytes, or 0 for the default of 64 MiB")
	return l.Err()
}

// ErrFull is the error of MemoryStore for a new key when it has no room. MemoryStore forgets nothing
// early: a key that is forgotten early is a request that may be carried out twice.
var ErrFull = errors.New("idempotency: the store is full: give it more room, or keep records for less long")

// ErrShare is the error of MemoryStore for a new key of a caller that holds as much as is left
// for all others. It is an ErrFull too. The middleware answers with 429, ProblemTooManyKeys.
var ErrShare = fmt.Errorf("%w (for this caller, who holds as much as is left for all others)", ErrFull)

// MemoryStore is a Store in the memory of one process: for tests, and for a service
// that is one process and whose effects end with it. A restart forgets all keys.
type MemoryStore struct {
	maxEntries, maxBytes int

	mu      sync.Mutex
	entries map[string]*entry
	byEnd   expiry // the same entries, the next to be forgotten first
	bytes   int
	held    map[string]holding // by caller; none for the callers that share their keys
}

// A holding is one caller's part of the store.
type holding struct{ entries, bytes int }

type entry struct {
	key         string
	caller      string
	fingerprint Fingerprint
	token       FencingToken
	completed   bool
	resumed     bool
	leaseEnd    time.Time
	forgetAt    time.Time
	record      []byte
	index       int // in byEnd
}

// NewMemoryStore returns an empty store, or the error of c.Validate.
func NewMemoryStore(c MemoryStoreConfig) (*MemoryStore, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &MemoryStore{
		maxEntries: cmp.Or(c.MaxEntries, DefaultMemoryEntries),
		maxBytes:   cmp.Or(c.MaxBytes, DefaultMemoryBytes), entries: make(map[string]*entry),
		held: make(map[string]holding),
	}, nil
}

var _ Store = (*MemoryStore)(nil)

// Claim implements Store. The error is ErrFull, ErrShare, or that of a ctx that has ended.
func (m *MemoryStore) Claim(ctx context.Context, c Claim) (ClaimResult, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil { // with the lock: what comes after ctx's end finds all that this has made
		return ClaimResult{}, err
	}
	now := m.sweep()
	e := m.entries[c.Key]
	if e == nil {
		if len(m.entries) >= m.maxEntries || len(c.Key) > m.maxBytes-m.bytes {
			return ClaimResult{}, ErrFull
		}
		if !m.fits(c.Caller, 1, len(c.Key)) {
			return ClaimResult{}, ErrShare
		}
		e = &entry{key: c.Key, caller: c.Caller, fingerprint: c.Fingerprint, token: c.Token, leaseEnd: addCapped(now, c.Lease), forgetAt: addCapped(now, c.Retention)}
		m.entries[c.Key] = e
		m.addHolding(e.caller, 1, len(c.Key))
		heap.Push(&m.byEnd, e)
		return ClaimResult{State: Claimed}, nil
	}
	switch left := e.leaseEnd.Sub(now); {
	case e.fingerprint != c.Fingerprint:
		return ClaimResult{State: Mismatch}, nil
	case e.completed:
		return ClaimResult{State: Replay, Record: append([]byte(nil), e.record...)}, nil
	case e.token == c.Token:
	case left > 0:
		return ClaimResult{State: InFlight, Remaining: left}, nil
	case c.Resume:
		e.token, e.resumed = c.Token, true
	default:
		return ClaimResult{State: Unknown}, nil
	}
	e.leaseEnd = addCapped(now, c.Lease)
	m.keepUntil(e, addCapped(now, c.Retention))
	return ClaimResult{State: Claimed, Resumed: e.resumed}, nil
}

// Extend implements Store.
func (m *MemoryStore) Extend(ctx context.Context, key string, token FencingToken, lease, retention time.Duration) error {
	return m.asOwner(ctx, key, token, func(e *entry, now time.Time) error {
		if e.completed {
			return ErrFenced
		}
		e.leaseEnd = addCapped(now, lease)
		m.keepUntil(e, addCapped(now, retention))
		return nil
	})
}

// Complete implements Store.
func (m *MemoryStore) Complete(ctx context.Context, key string, token FencingToken, record []byte, retention time.Duration) error {
	return m.asOwner(ctx, key, token, func(e *entry, now time.Time) error {
		if e.completed {
			return nil
		}
		// The shortest records always fit, so that every completion can be recorded. There
		// are no more of them than entries.
		if len(record) > shortRecord && (len(record) > m.maxBytes-m.bytes || !m.fits(e.caller, 0, len(record))) {
			return ErrTooLarge
		}
		e.completed, e.record = true, record
		m.addHolding(e.caller, 0, len(record))
		m.keepUntil(e, addCapped(now, retention))
		return nil
	})
}

// shortRecord is long enough for a record without body or header.
const shortRecord = 16

// Release implements Store.
func (m *MemoryStore) Release(ctx context.Context, key string, token FencingToken) error {
	return m.asOwner(ctx, key, token, func(e *entry, _ time.Time) error {
		if e.completed {
			return ErrFenced
		}
		heap.Remove(&m.byEnd, e.index)
		m.forget(e)
		return nil
	})
}

// Len returns how many keys are remembered.
func (m *MemoryStore) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	return len(m.entries)
}

// asOwner calls f with the entry of key, if token owns it.
func (m *MemoryStore) asOwner(ctx context.Context, key string, token FencingToken, f func(*entry, time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.sweep()
	e := m.entries[key]
	if e == nil || e.token != token {
		return ErrFenced
	}
	return f(e, now)
}

// sweep deletes expired entries, and returns the time. The lock is held.
func (m *MemoryStore) sweep() time.Time {
	now := time.Now()
	for len(m.byEnd) > 0 && !now.Before(m.byEnd[0].forgetAt) {
		m.forget(heap.Pop(&m.byEnd).(*entry))
	}
	return now
}

// forget drops an entry that is out of byEnd already. With the lock.
func (m *MemoryStore) forget(e *entry) {
	delete(m.entries, e.key)
	m.addHolding(e.caller, -1, -len(e.key)-len(e.record))
}

// fits reports whether a caller may add this: its new total must not exceed the present
// free room. Switches share a buffer by the same dynamic threshold (Choudhury and Hahne,
// 1998). It does not depend on how many callers there are nor on what they need, and costs
// the same for any number of them. With the lock.
func (m *MemoryStore) fits(caller string, entries, bytes int) bool {
	h := m.held[caller]
	return (entries == 0 || h.entries+entries <= m.maxEntries-len(m.entries)) && h.bytes+bytes <= m.maxBytes-m.bytes
}

// addHolding adds to the holding of a caller, or subtracts from it. The lock is held.
func (m *MemoryStore) addHolding(caller string, entries, bytes int) {
	m.bytes += bytes
	if caller == "" {
		return
	}
	h := m.held[caller]
	h.entries += entries
	h.bytes += bytes
	if m.held[caller] = h; h.entries == 0 {
		delete(m.held, caller)
	}
}

func (m *MemoryStore) keepUntil(e *entry, until time.Time) {
	e.forgetAt = until
	heap.Fix(&m.byEnd, e.index)
}

// addCapped returns t+d, with d cut to what Times can still be compared by.
func addCapped(t time.Time, d time.Duration) time.Time { return t.Add(min(d, math.MaxInt64/2)) }

// expiry is a heap of entries by forgetAt.
type expiry []*entry

func (x expiry) Len() int           { return len(x) }
func (x expiry) Less(i, j int) bool { return x[i].forgetAt.Before(x[j].forgetAt) }
func (x expiry) Swap(i, j int) {
	x[i], x[j] = x[j], x[i]
	x[i].index, x[j].index = i, j
}
func (x *expiry) Push(v any) {
	e := v.(*entry)
	e.index = len(*x)
	*x = append(*x, e)
}
func (x *expiry) Pop() any {
	old := *x
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*x = old[:len(old)-1]
	return e
}
