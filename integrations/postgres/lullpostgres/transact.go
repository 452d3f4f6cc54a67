package lullpostgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lullgo/lull/server/idempotency"
)

// defaultCommitTimeout is the default of Claim.CommitTimeout: how long storing the record and the commit, or the rollback,
// may take after run has returned, whether or not its context has ended.
const defaultCommitTimeout = 5 * time.Second

var errVanished = errors.New("the entry that this transaction has made is gone")

// Transact implements idempotency.Transactor. TxFrom and SQLTxFrom give the handler its
// transaction.
//
// The result of run is committed even if ctx has ended by then, if that takes no longer than c.CommitTimeout
// (zero: five seconds). If run has ended the transaction itself, or a statement has failed in it, and
// the record must be kept nevertheless, Transact returns an error.
func (s *Store) Transact(ctx context.Context, c idempotency.Claim, run func(ctx context.Context, resumed bool) (record []byte, keep bool)) (idempotency.ClaimResult, error) {
	tx, a, err := s.begin(ctx, &c)
	if err != nil || tx == nil {
		return a, err
	}
	always, committed := context.WithoutCancel(ctx), false
	left := func() time.Duration { return cmp.Or(c.CommitTimeout, defaultCommitTimeout) }
	// run may panic, or end its goroutine: neither is recovered.
	defer func() {
		if !committed {
			rollBack(always, tx, left())
		}
	}()
	if err := ctx.Err(); err != nil {
		return idempotency.ClaimResult{}, err
	}
	record, keep := run(tx.with(ctx), a.Resumed)
	until := time.Now().Add(left())
	left = func() time.Duration { return time.Until(until) }
	if !keep {
		return a, nil
	}
	if err := tooLarge(record); err != nil {
		return idempotency.ClaimResult{}, err
	}
	if err := tx.checkNotRolledBack(); err != nil {
		return idempotency.ClaimResult{}, err
	}
	end, cancel := context.WithDeadline(always, until)
	defer cancel()
	var completed bool
	err = tx.row(end, s.sql.completeInTx, []any{c.Key, c.Token[:], notNull(record), micros(c.Retention)}, []any{&completed})
	switch {
	case err == nil:
		err = tx.commit(end)
	case errors.Is(err, sql.ErrNoRows):
		err = errVanished
	}
	if err != nil {
		return idempotency.ClaimResult{}, s.explain(end, "Transact", err)
	}
	committed = true
	return a, nil
}

// begin returns a transaction that has claimed c, or no transaction and the answer to c.
func (s *Store) begin(ctx context.Context, c *idempotency.Claim) (transaction, idempotency.ClaimResult, error) {
	for range maxRounds {
		if err := ctx.Err(); err != nil {
			return nil, idempotency.ClaimResult{}, err
		}
		tx, err := s.db.begin(ctx, s.config.Isolation)
		if err != nil {
			return nil, idempotency.ClaimResult{}, s.explain(ctx, "Transact", err)
		}
		a, err := s.claim(ctx, tx, s.sql.claimInTx, c)
		if err == nil && a.State == idempotency.Claimed {
			return tx, a, nil
		}
		rollBack(ctx, tx, defaultCommitTimeout)
		switch {
		case err == nil && a.State == claimAgain, transient(err):
			// A new transaction, not only a new statement: its snapshot may be fixed.
		case err != nil:
			return nil, idempotency.ClaimResult{}, s.explain(ctx, "Transact", err)
		default:
			return nil, a, nil
		}
	}
	return nil, idempotency.ClaimResult{}, s.explain(ctx, "Transact", errContended)
}

// rollBack rolls back. If that fails, the connection is closed, and the server rolls back.
func rollBack(ctx context.Context, tx transaction, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tx.rollback(ctx)
}

// sweepBatch is how many rows one statement of Sweep deletes at most.
const sweepBatch = 1000

// Sweep deletes the expired entries, in statements of a thousand rows, each in its own transaction.
// It returns how many it has deleted. Rows that another transaction uses are left for the next
// time, so several processes may sweep at once. A store works without Sweep, but its table grows.
func (s *Store) Sweep(ctx context.Context) (deleted int64, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return deleted, err
		}
		var n int64
		err := s.db.row(ctx, s.sql.sweep, []any{sweepBatch}, []any{&n})
		if err != nil && !transient(err) {
			return deleted, s.explain(ctx, "Sweep", err)
		}
		if err == nil {
			deleted += n
		}
		if err == nil && n < sweepBatch {
			return deleted, nil
		}
	}
}

// SweepEvery calls Sweep at once and then at the given interval, until ctx ends. It returns ctx's
// error. report, unless it is nil, gets the result of each.
//
//	go store.SweepEvery(ctx, time.Minute, nil)
func (s *Store) SweepEvery(ctx context.Context, every time.Duration, report func(deleted int64, err error)) error {
	if every <= 0 {
		return fmt.Errorf("lullpostgres: SweepEvery: every is %v: want a positive duration", every)
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		n, err := s.Sweep(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if report != nil {
			report(n, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
}
