package lullbolt

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/lullgo/lull/server/idempotency"
)

var _ idempotency.Store = (*Store)(nil)

// Claim implements idempotency.Store. Answers other than Claimed are read, and cost no write. The
// error may be idempotency.ErrFull.
func (s *Store) Claim(ctx context.Context, c idempotency.Claim) (idempotency.ClaimResult, error) {
	if err := ctx.Err(); err != nil {
		return idempotency.ClaimResult{}, err
	}
	a, err := s.refuse(&c)
	if err != nil || a.State != idempotency.Claimed {
		return a, err
	}
	o := &op{size: len(c.Key) + offRecord + sumSize, mayCreate: true}
	o.do = func(t *txn) error {
		old, err := t.get(c.Key)
		if err != nil {
			return err
		}
		var next *entry
		o.answer, next = claim(old, &c, t.now)
		switch {
		case next == nil:
			return nil
		case old == nil && !t.hasRoom(o.size):
			o.answer = idempotency.ClaimResult{}
			return fmt.Errorf("%w (%s: %d bytes)", idempotency.ErrFull, s.path, s.maxBytes)
		}
		return t.put(c.Key, next)
	}
	if err := s.carryOut(ctx, o); err != nil {
		return idempotency.ClaimResult{}, err
	}
	return o.answer, nil
}

// refuse returns the answer to c if reading is enough; Claimed, if it must be written.
func (s *Store) refuse(c *idempotency.Claim) (a idempotency.ClaimResult, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		now := s.now()
		old, err := get(tx.Bucket(bucketKeys), c.Key, now)
		if err != nil {
			return err
		}
		a, _ = claim(old, c, now)
		return nil
	})
	return a, err
}

// view calls f with a transaction that reads the committed state.
func (s *Store) view(f func(tx *bbolt.Tx) error) (err error) {
	if err := s.usable(); err != nil {
		return err
	}
	defer s.recovered(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	err = s.db.View(f)
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// Extend implements idempotency.Store.
func (s *Store) Extend(ctx context.Context, key string, token idempotency.FencingToken, lease, retention time.Duration) error {
	return s.asOwner(ctx, key, token, 0, func(t *txn, e *entry) error {
		if e.completed {
			return idempotency.ErrFenced
		}
		e.leaseEnd, e.forgetAt = t.now.after(lease), t.now.after(retention)
		return t.put(key, e)
	})
}

// Complete implements idempotency.Store. A record is too large if Config.MaxBytes leaves no room
// for it.
func (s *Store) Complete(ctx context.Context, key string, token idempotency.FencingToken, record []byte, retention time.Duration) error {
	if len(record) > maxRecord {
		return fmt.Errorf("%w: %d bytes, and bbolt keeps %d", idempotency.ErrTooLarge, len(record), maxRecord)
	}
	return s.asOwner(ctx, key, token, len(record), func(t *txn, e *entry) error {
		if e.completed {
			return nil
		}
		// The shortest records always fit, so that an outcome can always be recorded. There are no more
		// such records than keys.
		if len(record) > shortRecord && !t.hasRoom(len(record)) {
			return fmt.Errorf("%w: %d bytes (%s: %d bytes in all)", idempotency.ErrTooLarge, len(record), s.path, s.maxBytes)
		}
		e.completed, e.record, e.forgetAt = true, record, t.now.after(retention)
		return t.put(key, e)
	})
}

const (
	shortRecord = 64
	maxRecord   = bbolt.MaxValueSize - offRecord - sumSize
)

// Release implements idempotency.Store.
func (s *Store) Release(ctx context.Context, key string, token idempotency.FencingToken) error {
	return s.asOwner(ctx, key, token, 0, func(t *txn, e *entry) error {
		if e.completed {
			return idempotency.ErrFenced
		}
		return t.delete([]byte(key))
	})
}

// asOwner calls f with the entry of key, if token owns it.
func (s *Store) asOwner(ctx context.Context, key string, token idempotency.FencingToken, size int, f func(*txn, *entry) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.carryOut(ctx, &op{size: size, do: func(t *txn) error {
		e, err := t.get(key)
		switch {
		case err != nil:
			return err
		case e == nil || e.token != token:
			return idempotency.ErrFenced
		}
		return f(t, e)
	}})
}

// get returns the entry of key, or nil if it does not exist or has expired.
func get(keys *bbolt.Bucket, key string, now instant) (*entry, error) {
	name := []byte(key)
	b := keys.Get(name)
	if b == nil {
		return nil, nil
	}
	e, err := decode(name, b)
	if err != nil {
		return nil, fmt.Errorf("%w: key %q", err, key)
	}
	if e.forgetAt <= now {
		return nil, nil
	}
	return &e, nil
}
