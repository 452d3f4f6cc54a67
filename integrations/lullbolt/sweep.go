package lullbolt

import (
	"bytes"
	"context"

	"go.etcd.io/bbolt"
)

// How far a transaction sweeps: 4 entries for each that it may make (no more than maxOps). So
// expired entries are no more than a third as many as the others.
const (
	sweepFactor = 4
	sweepMin    = 16
	sweepStep   = 1000 // Sweep's
	sweepSave   = 4096 // entries after which the position is written in any case
)

// A sweeper goes through the file in the order of the keys, again and again, a few entries in each
// transaction that makes some. Neighbours are on one page, so deleting them costs few pages. An
// index by time would cost one page with every call.
type sweeper struct {
	next  []byte // the key at which it continues; at the beginning if empty
	swept int    // entries since next was written
}

// sweep checks a few entries, in proportion to those that will be made.
func (s *Store) sweep(t *txn, makes int) {
	w := s.sweeper // changed only if the transaction succeeds so far
	n := max(sweepMin, sweepFactor*makes)
	next, deleted := t.forget(w.next, n)
	w.next = next
	w.swept += n
	if deleted > 0 || w.swept >= sweepSave {
		w.swept = 0
		t.dirty = true
		t.check(t.tx.Bucket(bucketFile).Put(fieldSwept, w.next))
	}
	s.sweeper = w
}

// forget checks n entries beginning at the key from, and deletes the expired ones. It returns the
// key at which to continue, nil after the last, and how many it has deleted.
func (t *txn) forget(from []byte, n int) (next []byte, deleted int) {
	c := t.keys.Cursor()
	k, v := c.Seek(from)
	var old [][]byte
	for ; k != nil && n > 0; k, v = c.Next() {
		n--
		if forgotten(k, v, t.now) {
			old = append(old, bytes.Clone(k)) // the cursor does not outlive a deletion
		}
	}
	next = bytes.Clone(k)
	for _, k := range old {
		if t.delete(k) != nil {
			break
		}
	}
	return next, len(old)
}

// Sweep goes once through the whole file and deletes the expired entries. It returns how many it
// has deleted. It works in transactions of a thousand entries, between which others have their
// turn. Nobody needs to call it. The file gets no smaller, but has room.
func (s *Store) Sweep(ctx context.Context) (deleted int, err error) {
	var from []byte
	for {
		if err := ctx.Err(); err != nil {
			return deleted, err
		}
		var next []byte
		n := 0
		err := s.carryOut(ctx, &op{do: func(t *txn) error {
			next, n = t.forget(from, sweepStep)
			return nil
		}})
		if err != nil {
			return deleted, err
		}
		deleted += n
		if from = next; from == nil {
			return deleted, nil
		}
	}
}

// Len returns how many entries are in the file, including expired ones that are not yet deleted. It
// reads all of the file.
func (s *Store) Len() (n int, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		n = tx.Bucket(bucketKeys).Stats().KeyN
		return nil
	})
	return n, err
}
