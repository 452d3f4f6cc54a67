package lullbolt

import (
	"bytes"
	"context"

	"go.etcd.io/bbolt"
)

// How far a transaction sweeps: 4 entries for each that it may make (of which there are
// no more than maxOps), so that those that are past their time are no more than a third
// as many as those that are not.
const (
	sweepFactor = 4
	sweepMin    = 16
	sweepStep   = 1000 // Sweep's
	sweepSave   = 4096 // entries, after which the place is written down in any case
)

// A sweeper goes through the file in the order of the keys, over and over, a few
// entries in each transaction that makes some. Neighbours are on one page, so it costs
// few pages to delete them; an index by time would cost one with every call.
type sweeper struct {
	next  []byte // the key at which it goes on; at the beginning if empty
	swept int    // entries since next was written down
}

// sweep looks at a few entries, in proportion to those that are to be made.
func (s *Store) sweep(t *txn, makes int) {
	w := s.sweeper // changed only if the transaction comes so far
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

// forget looks at n entries from the key from on, deletes those that are past their
// time, and returns the key at which to go on, nil after the last, and how many it has
// deleted.
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

// Sweep goes once through the whole file, in transactions of a thousand entries between
// which others have their turn, and deletes what is past its time: how many it was.
// Nobody needs to call it. The file gets no smaller, but has room.
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

// Len is how many entries are in the file, those that are past their time and not yet
// deleted among them. It reads all of it.
func (s *Store) Len() (n int, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		n = tx.Bucket(bucketKeys).Stats().KeyN
		return nil
	})
	return n, err
}
