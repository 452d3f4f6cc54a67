package lullbolt

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/lullgo/lull/internal/sleep"
	"github.com/lullgo/lull/server/idempotency"
)

// The greatest size of one transaction, beside the first call.
const (
	maxOps   = 512
	maxBatch = 8 << 20 // bytes of records
)

// An op is one call that may write. Calls that come while a transaction is being written to the
// disk share the next one: a commit costs two syncs, however much is in it. No call waits for
// others to come.
type op struct {
	// do carries the call out. Its error is for this call alone, and it returns one only if it has
	// changed nothing. Errors of the file go to t.
	do        func(t *txn) error
	size      int  // bytes that it adds, about
	mayCreate bool // an entry, maybe

	answer  idempotency.ClaimResult // do's; read when done is closed
	err     error
	started atomic.Bool // by the writer, or by a caller who has gone away
	done    chan struct{}
}

type txn struct {
	s     *Store
	tx    *bbolt.Tx
	keys  *bbolt.Bucket
	now   instant
	free  int64       // bytes that may still be added
	total entryTotals // with what this transaction has changed
	dirty bool
	err   error // of the file; the transaction is rolled back
}

func (t *txn) get(key string) (*entry, error) { return get(t.keys, key, t.now) }

func (t *txn) put(key string, e *entry) error {
	t.dirty = true
	name := []byte(key)
	b := e.encode(name)
	t.free -= int64(len(key) + len(b))
	if old := t.keys.Get(name); old != nil {
		t.total.remove(old)
	}
	t.total.add(b)
	return t.check(t.keys.Put(name, b))
}

func (t *txn) delete(key []byte) error {
	t.dirty = true
	if old := t.keys.Get(key); old != nil {
		t.total.remove(old)
	}
	return t.check(t.keys.Delete(key))
}

func (t *txn) check(err error) error {
	if err != nil && t.err == nil {
		t.err = err
	}
	return err
}

func (t *txn) hasRoom(n int) bool { return int64(n) <= t.free }

// carryOut makes the writer carry out o, and waits for the disk. If ctx ends before the writer has
// begun with o, it is not carried out.
func (s *Store) carryOut(ctx context.Context, o *op) error {
	o.done = make(chan struct{})
	s.mu.Lock()
	if err := s.usableLocked(); err != nil {
		s.mu.Unlock()
		return err
	}
	s.queue = append(s.queue, o)
	if !s.writing {
		s.writing = true
		go s.write()
	}
	s.mu.Unlock()
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
	}
	if o.started.Swap(true) && sleep.IsOver(o.done) {
		return o.err
	}
	return ctx.Err()
}

func (s *Store) usable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usableLocked()
}

func (s *Store) usableLocked() error {
	if s.closed {
		return ErrClosed
	}
	return s.broken
}

// write processes the queue until it is empty.
func (s *Store) write() {
	for {
		s.mu.Lock()
		batch := s.nextBatchLocked()
		if len(batch) == 0 {
			s.writing = false
			s.idle.Broadcast()
			s.mu.Unlock()
			return
		}
		broken := s.broken
		s.mu.Unlock()
		if broken != nil {
			finish(batch, broken)
			continue
		}
		s.commit(batch)
	}
}

// nextBatchLocked takes the calls of one transaction out of the queue.
func (s *Store) nextBatchLocked() []*op {
	n, size := 0, 0
	for n < len(s.queue) && n < maxOps && (n == 0 || size+s.queue[n].size <= maxBatch) {
		size += s.queue[n].size
		n++
	}
	batch := s.queue[:n:n]
	if s.queue = s.queue[n:]; len(s.queue) == 0 {
		s.queue = nil
	}
	return batch
}

// commit carries out batch in one transaction.
func (s *Store) commit(batch []*op) {
	var tx *bbolt.Tx
	var err error
	live := batch
	defer func() { finish(live, err) }()
	defer s.recovered(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if tx, err = s.db.Begin(true); err != nil {
		err = fmt.Errorf("lullbolt: %s: %w", s.path, err)
		return
	}
	defer tx.Rollback() // nothing after Commit
	live = slices.DeleteFunc(batch, func(o *op) bool { return o.started.Swap(true) })
	t := &txn{s: s, tx: tx, keys: tx.Bucket(bucketKeys), now: s.now(), free: s.maxBytes - s.inUse(tx)}
	if t.total, err = decodeTotal(tx.Bucket(bucketFile).Get(fieldTotal)); err != nil {
		return
	}
	makes := 0
	for _, o := range live {
		if o.mayCreate {
			makes++
		}
	}
	if makes > 0 {
		s.sweep(t, makes)
	}
	for _, o := range live {
		if o.err = o.do(t); t.err != nil {
			err = fmt.Errorf("lullbolt: %s: %w", s.path, t.err)
			return
		}
	}
	if t.dirty {
		if err = tx.Bucket(bucketFile).Put(fieldTotal, t.total.encode()); err == nil {
			err = tx.Commit()
		}
		if err != nil {
			err = fmt.Errorf("lullbolt: %s: %w", s.path, err)
		}
	}
}

// recovered is deferred by callers of bbolt. bbolt panics if it finds impossible pages. The runtime
// panics (SetPanicOnFault) if the file is shorter than its mapping. bbolt's state is unknown then,
// so it is not called any more. The process continues.
func (s *Store) recovered(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("%w: %s: bbolt panicked: %v; end the process, and %s\n%s", ErrDamaged, s.path, v, repairAdvice, debug.Stack())
		s.mu.Lock()
		s.broken = *err
		s.mu.Unlock()
	}
}

// inUse returns how many bytes of the file are in use.
func (s *Store) inUse(tx *bbolt.Tx) int64 {
	stats := s.db.Stats()
	return tx.Size() - int64(stats.FreePageN+stats.PendingPageN)*int64(s.db.Info().PageSize)
}

// finish returns the results to the callers: err, if there is one, replaces their own.
func finish(ops []*op, err error) {
	for _, o := range ops {
		if err != nil {
			o.err = err
		}
		close(o.done)
	}
}
