package lullpostgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull/internal/sqlerr"
	"github.com/lullgo/lull/internal/storecall"
)

// The part of a database that this package uses: *pgxpool.Pool and *sql.DB both have it, under
// different names.
type (
	database interface {
		querier
		begin(ctx context.Context, level sql.IsolationLevel) (transaction, error)
	}
	querier interface {
		// row reads the row that query returns, if there is one. After an error nobody may read dest: a driver may still be
		// at work.
		row(ctx context.Context, query string, args, dest []any) error
	}
	transaction interface {
		querier
		commit(ctx context.Context) error
		rollback(ctx context.Context) error
		// with returns ctx with the transaction for the handler.
		with(ctx context.Context) context.Context
		// checkNotRolledBack returns an error if the handler has ended the transaction.
		checkNotRolledBack() error
	}
)

func exec(ctx context.Context, q querier, query string) error {
	if err := q.row(ctx, query, nil, nil); !errors.Is(err, sql.ErrNoRows) { // which pgx.ErrNoRows is, too
		return err
	}
	return nil
}

// pgx.

type pgxQuerier struct {
	q interface {
		QueryRow(ctx context.Context, query string, args ...any) pgx.Row
	}
}

func (c pgxQuerier) row(ctx context.Context, query string, args, dest []any) error {
	return c.q.QueryRow(ctx, query, args...).Scan(dest...)
}

type poolDB struct {
	pgxQuerier
	pool *pgxpool.Pool
}

var pgxLevels = map[sql.IsolationLevel]pgx.TxIsoLevel{
	sql.LevelReadCommitted:  pgx.ReadCommitted,
	sql.LevelRepeatableRead: pgx.RepeatableRead,
	sql.LevelSerializable:   pgx.Serializable,
}

func (d poolDB) begin(ctx context.Context, level sql.IsolationLevel) (transaction, error) {
	// Its ctx is that of BEGIN only.
	tx, err := d.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgxLevels[level]})
	if err != nil {
		return nil, err
	}
	return &pgxTx{pgxQuerier{tx}, guardedTx{Tx: tx}}, nil
}

type pgxTx struct {
	pgxQuerier
	guarded guardedTx
}

func (t *pgxTx) commit(ctx context.Context) error   { return t.guarded.Tx.Commit(ctx) }
func (t *pgxTx) rollback(ctx context.Context) error { return t.guarded.Tx.Rollback(ctx) }

type txKey struct{}

func (t *pgxTx) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, txKey{}, &t.guarded)
}

func (t *pgxTx) checkNotRolledBack() error {
	if t.guarded.rolledBack {
		return errors.New("lullpostgres: the handler has rolled back the store's transaction, and then returned a response that was to be kept")
	}
	return nil
}

// guardedTx is the handler's transaction: the handler cannot end it.
type guardedTx struct {
	pgx.Tx
	rolledBack bool
}

// ErrNotYours is the error of Commit in a handler: the store commits, together with the record.
var ErrNotYours = errors.New("lullpostgres: the store commits its transaction, when the handler has returned; for one of the handler's own inside of it, call Begin")

func (t *guardedTx) Commit(context.Context) error { return ErrNotYours }

func (t *guardedTx) Rollback(context.Context) error {
	t.rolledBack = true
	return nil
}

// TxFrom returns the transaction of the handler whose context is ctx, if New has made its Store and
// its middleware has Config.Transactional set; nil otherwise.
//
// Its changes are committed together with the record of the response, or not at all. The store ends
// it: Commit returns ErrNotYours. After Rollback it is not committed either: the request is
// answered with 503 unless the handler returns a response that is not kept (500 and more, or one
// that it declared idempotency.NoEffect for). Code that ends transactions gets one of its own, a
// savepoint, from Begin.
//
// It is one connection: do not use it concurrently, nor after the handler has returned.
func TxFrom(ctx context.Context) pgx.Tx {
	if t, ok := ctx.Value(txKey{}).(*guardedTx); ok {
		return t
	}
	return nil
}

// database/sql.

// Some drivers (lib/pq) wait for a server that does not answer even after the context has ended. So
// no call here waits for its driver for longer than its context lasts.
type sqlQuerier struct {
	q interface {
		QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	}
}

func (c sqlQuerier) row(ctx context.Context, query string, args, dest []any) error {
	return storecall.Wait(ctx, func() error { return c.q.QueryRowContext(ctx, query, args...).Scan(dest...) })
}

type sqlDB struct {
	sqlQuerier
	db *sql.DB
}

func (d sqlDB) begin(ctx context.Context, level sql.IsolationLevel) (transaction, error) {
	// database/sql rolls a transaction back when the context of its BeginTx ends. Here that only
	// holds until the transaction has begun.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	begun, failed := make(chan *sql.Tx), make(chan error, 1)
	go func() {
		tx, err := d.db.BeginTx(own, &sql.TxOptions{Isolation: level})
		if err != nil {
			cancel()
			failed <- err
			return
		}
		select {
		case begun <- tx:
		case <-ctx.Done():
			tx.Rollback()
		}
	}()
	select {
	case tx := <-begun:
		if stop() {
			return &sqlTx{sqlQuerier{tx}, tx, cancel}, nil
		}
		go tx.Rollback()
	case err := <-failed:
		return nil, err
	case <-ctx.Done():
	}
	return nil, ctx.Err()
}

type sqlTx struct {
	sqlQuerier
	tx     *sql.Tx
	cancel context.CancelFunc
}

// commit has no context of its own: when ctx ends, the transaction's context ends.
func (t *sqlTx) commit(ctx context.Context) error   { return t.end(ctx, t.tx.Commit) }
func (t *sqlTx) rollback(ctx context.Context) error { return t.end(ctx, t.tx.Rollback) }

func (t *sqlTx) end(ctx context.Context, how func() error) error {
	defer t.cancel()
	return storecall.Wait(ctx, how)
}

type sqlTxKey struct{}

func (t *sqlTx) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, sqlTxKey{}, t.tx)
}

func (t *sqlTx) checkNotRolledBack() error { return nil } // the next statement will fail

// SQLTxFrom is TxFrom for a Store made by NewSQL. The handler must not call its Commit and
// Rollback; nothing can prevent it. After a Commit of its own the response is lost, and the outcome
// of the request is unknown to all that follow. After Rollback the request is answered with 503.
func SQLTxFrom(ctx context.Context) *sql.Tx {
	tx, _ := ctx.Value(sqlTxKey{}).(*sql.Tx)
	return tx
}

// transient reports whether the statement had no effect and may be made again: a serialization
// failure, a deadlock.
func transient(err error) bool {
	switch sqlerr.State(err) {
	case "40001", "40P01":
		return true
	}
	return false
}

// explain adds to err which call failed, why, and what to do. The error also wraps that of ctx, if
// ctx has ended.
func (s *Store) explain(ctx context.Context, call string, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("lullpostgres: %s: %w: %w", call, ended, err)
	}
	switch sqlerr.State(err) {
	case "42P01", "42703": // undefined table, column
		return fmt.Errorf("%w (%s): %w", ErrNoTable, s.config.Table, err)
	case "25P02":
		return fmt.Errorf("lullpostgres: %s: an earlier statement of the handler has failed, and the transaction with it; to go on after an error, use a savepoint (Begin): %w", call, err)
	}
	return fmt.Errorf("lullpostgres: %s: %w", call, err)
}
