package lullbolt

import "context"

// Decode reports whether b is an entry of key, and if so encodes it again.
func Decode(key, b []byte) ([]byte, bool) {
	e, err := decode(key, b)
	if err != nil {
		return nil, false
	}
	return e.encode(key), true
}

// InUse returns how many bytes of the file are in use.
func InUse(s *Store) int64 {
	tx, err := s.db.Begin(false)
	if err != nil {
		panic(err)
	}
	defer tx.Rollback()
	return s.inUse(tx)
}

// Hold keeps the store from writing until the result is called.
func Hold(s *Store) (release func() error) {
	tx, err := s.db.Begin(true)
	if err != nil {
		panic(err)
	}
	return tx.Rollback
}

// Queued returns how many calls wait for their turn, and whether the writer has others.
func Queued(s *Store) (n int, writing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue), s.writing
}

// Panic makes the store panic in the middle of a transaction, as bbolt does when it finds an
// impossible page.
func Panic(s *Store) error {
	return s.carryOut(context.Background(), &op{do: func(*txn) error { panic("page 7: not a leaf") }})
}
