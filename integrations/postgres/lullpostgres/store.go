package lullpostgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull/internal/storecall"
	"github.com/lullgo/lull/server/idempotency"
)

// A Store is an idempotency.Store, and a Transactor, in a table. It is safe for concurrent use, and
// need not be closed.
type Store struct {
	config Config
	db     database
	sql    statements
	lock   func(key string) int64
	clock  storecall.Clock
}

var _ idempotency.Transactor = (*Store)(nil)

// New returns a Store that uses pool, or an error if c is invalid. It does not call the server: a
// program can start without it. The handler's transaction is a pgx.Tx, from TxFrom.
func New(pool *pgxpool.Pool, c Config) (*Store, error) {
	if pool == nil {
		return nil, errors.New("lullpostgres: New: the pool is nil: want one from pgxpool.New")
	}
	return newStore(poolDB{pgxQuerier{pool}, pool}, c)
}

// NewSQL is New for database/sql, with a driver for PostgreSQL: pgx's stdlib, or
// another that takes $1 for a parameter. The handler's transaction is a *sql.Tx, from
// SQLTxFrom.
func NewSQL(db *sql.DB, c Config) (*Store, error) {
	if db == nil {
		return nil, errors.New("lullpostgres: NewSQL: the database is nil: want one from sql.Open")
	}
	return newStore(sqlDB{sqlQuerier{db}, db}, c)
}

func newStore(db database, c Config) (*Store, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("lullpostgres: %w", err)
	}
	c.Table = cmp.Or(c.Table, DefaultTable)
	s := &Store{config: c, db: db, sql: statementsFor(c.quoted())}
	s.lock = func(key string) int64 {
		h := sha256.Sum256([]byte("lull idempotency\x00" + c.Table + "\x00" + key))
		return int64(binary.BigEndian.Uint64(h[:8]))
	}
	return s, nil
}

const (
	// maxRounds is how often a statement is made again after it met other transactions. Each of them
	// has finished, so this many in a row do not happen.
	maxRounds = 20

	// maxRecord: a server returns at most a gigabyte at a time, and its text form needs two
	// characters for a byte.
	maxRecord = 256 << 20
)

var errContended = errors.New("the key was changed by others each time")

// errBusy: a replaced owner calls during its successor's transaction. Whether it is fenced is known
// only when that transaction ends.
var errBusy = errors.New("a transaction is at work on the key, and will decide")

// Claim implements idempotency.Store, in one statement. The first with a deadline takes two, to learn
// the server's clock. While a transaction is at work on the key, Remaining is zero.
func (s *Store) Claim(ctx context.Context, c idempotency.Claim) (idempotency.ClaimResult, error) {
	for range maxRounds {
		if err := ctx.Err(); err != nil {
			return idempotency.ClaimResult{}, err
		}
		a, err := s.claim(ctx, s.db, s.sql.claim, &c)
		switch {
		case err == nil && a.State == claimAgain, transient(err):
		case err != nil:
			return idempotency.ClaimResult{}, s.explain(ctx, "Claim", err)
		default:
			return a, nil
		}
	}
	return idempotency.ClaimResult{}, s.explain(ctx, "Claim", errContended)
}

func (s *Store) claim(ctx context.Context, q querier, query string, c *idempotency.Claim) (idempotency.ClaimResult, error) {
	var a idempotency.ClaimResult
	var state, remaining, now int64
	var deadline any
	if end, ok := s.clock.Deadline(ctx); ok {
		deadline = end
	}
	err := q.row(ctx, query,
		[]any{c.Key, c.Fingerprint[:], c.Token[:], micros(c.Lease), micros(c.Retention), c.Resume, s.lock(c.Key), deadline},
		[]any{&state, &a.Resumed, &remaining, &a.Record, &now})
	if err != nil {
		return idempotency.ClaimResult{}, err
	}
	s.clock.Read(now)
	a.State, a.Remaining = idempotency.KeyState(state), time.Duration(remaining)*time.Microsecond
	return a, nil
}

// micros returns d in microseconds, the server's unit, rounded up.
func micros(d time.Duration) int64 {
	m := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		m++
	}
	return max(m, 0)
}

// Extend implements idempotency.Store.
func (s *Store) Extend(ctx context.Context, key string, token idempotency.FencingToken, lease, retention time.Duration) error {
	return s.asOwner(ctx, "Extend", s.sql.extend, key, token, micros(lease), micros(retention))
}

// Complete implements idempotency.Store. A record of more than 256 MiB is too large.
func (s *Store) Complete(ctx context.Context, key string, token idempotency.FencingToken, record []byte, retention time.Duration) error {
	if err := tooLarge(record); err != nil {
		return err
	}
	return s.asOwner(ctx, "Complete", s.sql.complete, key, token, notNull(record), micros(retention))
}

func tooLarge(record []byte) error {
	if len(record) > maxRecord {
		return fmt.Errorf("%w: %d bytes; lullpostgres keeps %d", idempotency.ErrTooLarge, len(record), maxRecord)
	}
	return nil
}

// notNull returns an empty record for nil, which would be null.
func notNull(record []byte) []byte {
	if record == nil {
		return []byte{}
	}
	return record
}

// Release implements idempotency.Store.
func (s *Store) Release(ctx context.Context, key string, token idempotency.FencingToken) error {
	err := s.asOwner(ctx, "Release", s.sql.release, key, token)
	if errors.Is(err, idempotency.ErrFenced) {
		// A claim may have been committed after the statement's snapshot, and before it had the lock.
		err = s.asOwner(ctx, "Release", s.sql.release, key, token)
	}
	return err
}

// asOwner runs one of the owner's statements.
func (s *Store) asOwner(ctx context.Context, call, query string, key string, token idempotency.FencingToken, more ...any) error {
	args := append([]any{key, token[:], s.lock(key)}, more...)
	err := errContended
	for range maxRounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		var free, owned bool
		err = s.db.row(ctx, query, args, []any{&free, &owned})
		switch {
		case transient(err):
			continue
		case err != nil:
		case !free:
			err = errBusy
		case !owned:
			return idempotency.ErrFenced
		}
		break
	}
	return s.explain(ctx, call, err)
}
