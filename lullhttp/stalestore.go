package lullhttp

import (
	"container/list"
	"sync"
)

// A StaleStore keeps what WithStale stores. Its methods may be called concurrently, are called by the
// goroutine of a call, and should return soon. A store may forget anything at any time. Keys are at
// most some hundred bytes longer than a URL. Values are not changed by either side.
type StaleStore interface {
	// Get returns the value of the key; false if there is none, or the store fails.
	Get(key string) (value []byte, ok bool)
	Set(key string, value []byte)
	Delete(key string)
}

// entryCost is about what an entry takes beside its key and value.
const entryCost = 256

// memoryStore is a StaleStore of bounded size. What was not used for the longest is forgotten first.
type memoryStore struct {
	mostEntries int
	mostBytes   int64

	mu      sync.Mutex // guards what follows
	entries map[string]*list.Element
	used    list.List // of *memoryEntry, the latest first
	bytes   int64
}

type memoryEntry struct {
	key   string
	value []byte
}

func (e *memoryEntry) size() int64 { return int64(len(e.key)) + int64(cap(e.value)) + entryCost }

func newMemoryStore(entries int, bytes int64) *memoryStore {
	return &memoryStore{mostEntries: entries, mostBytes: bytes, entries: map[string]*list.Element{}}
}

func (s *memoryStore) Get(key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.entries[key]
	if at == nil {
		return nil, false
	}
	s.used.MoveToFront(at)
	return at.Value.(*memoryEntry).value, true
}

func (s *memoryStore) Set(key string, value []byte) {
	e := &memoryEntry{key, value}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(s.entries[key])
	if e.size() > s.mostBytes {
		return
	}
	for len(s.entries) >= s.mostEntries || s.bytes+e.size() > s.mostBytes {
		s.remove(s.used.Back())
	}
	s.entries[key] = s.used.PushFront(e)
	s.bytes += e.size()
}

func (s *memoryStore) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(s.entries[key])
}

// remove removes an entry, if it is not nil. The lock is held.
func (s *memoryStore) remove(at *list.Element) {
	if at == nil {
		return
	}
	e := s.used.Remove(at).(*memoryEntry)
	delete(s.entries, e.key)
	s.bytes -= e.size()
}
