//go:build servers

package lullpgx_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/integrations/postgres/lullpgx"
	"github.com/lullgo/lull/internal/must"
)

// onRetry calls a function before a retry.
type onRetry func()

func (f onRetry) Observe(_ context.Context, e lull.Event) {
	if e.Kind == event.RetryScheduled {
		f()
	}
}

// rewriter makes a procedure of each query.
type rewriter struct{}

func (rewriter) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return "CALL part_pay()", nil, nil
}

// The locked row is in the way of each query at its end. What is repeated when it is free is there once, and so is
// what is not repeated.
func TestNothingIsRepeatedInPart(t *testing.T) {
	t.Parallel()
	const blocked = "SELECT n FROM part_acc FOR UPDATE NOWAIT"
	direct := open(t, url(server.Addr(t)), nil, lullpgx.Config{})
	exec(t, direct, "DROP TABLE IF EXISTS part_acc, part_ledger")
	exec(t, direct, "CREATE TABLE part_acc (n INT)")
	exec(t, direct, "INSERT INTO part_acc VALUES (0)")
	exec(t, direct, "CREATE TABLE part_ledger (n INT)")
	exec(t, direct, "CREATE OR REPLACE PROCEDURE part_pay() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO part_ledger VALUES (1); COMMIT; PERFORM n FROM part_acc FOR UPDATE NOWAIT; END $$")
	type call func(context.Context, *lull.Dependency, *pgxpool.Pool) error
	query := func(q string, args ...any) call {
		return func(ctx context.Context, d *lull.Dependency, pool *pgxpool.Pool) error {
			_, err := lullpgx.Exec(ctx, d, pool, q, args...)
			return err
		}
	}
	read := func(opts ...lull.CallOption) call {
		return func(ctx context.Context, d *lull.Dependency, pool *pgxpool.Pool) error {
			_, err := lullpgx.Read(ctx, d, pool, func(ctx context.Context, c *pgxpool.Conn) (int, error) {
				if _, err := c.Exec(ctx, "INSERT INTO part_ledger VALUES (1)"); err != nil {
					return 0, err
				}
				_, err := c.Exec(ctx, blocked)
				return 0, err
			}, opts...)
			return err
		}
	}
	const one = "WITH l AS (INSERT INTO part_ledger VALUES (1)) " + blocked
	for _, x := range []struct {
		name string
		call call
		want error
		rows int
	}{
		{"one statement", query(one), nil, 1},
		{"one statement with arguments", query("WITH l AS (INSERT INTO part_ledger VALUES (@n)) "+blocked, pgx.NamedArgs{"n": 1}), nil, 1},
		{"one statement that is prepared for it", query("WITH l AS (INSERT INTO part_ledger VALUES ($1)) "+blocked, 1), nil, 1},
		{"another query of a rewriter", query(one, rewriter{}), lull.ErrNotIdempotent, 1},
		{"a procedure", query("CALL part_pay()"), lull.ErrNotIdempotent, 1},
		{"a procedure that is prepared", query("pay"), lull.ErrNotIdempotent, 1},
		{"several statements", query("INSERT INTO part_ledger VALUES (1); COMMIT; " + blocked), lull.ErrNotIdempotent, 1},
		{"read, twice", read(), nil, 2},
		{"read, not idempotent", read(lull.NotIdempotent()), lull.ErrNotIdempotent, 1},
		{"an index", query("CREATE INDEX CONCURRENTLY IF NOT EXISTS part_index ON part_acc (n)"), lull.ErrNotIdempotent, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			exec(t, direct, "DELETE FROM part_ledger")
			tx := must.Have(direct.Begin(t.Context()))
			defer tx.Rollback(context.Background())
			must.Have(tx.Exec(t.Context(), "UPDATE part_acc SET n = n"))
			d := newDependency(t, patient, lull.WithObserver(onRetry(func() { tx.Rollback(context.Background()) })))
			pool := open(t, url(server.Addr(t)), d, lullpgx.Config{}, func(c *pgxpool.Config) {
				c.ConnConfig.RuntimeParams["lock_timeout"] = "300"
				c.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
					_, err := c.Prepare(ctx, "pay", "CALL part_pay()")
					return err
				}
			})
			err := x.call(t.Context(), d, pool)
			tx.Rollback(t.Context())
			var n int
			must.Succeed(direct.QueryRow(t.Context(), "SELECT count(*) FROM part_ledger").Scan(&n))
			if n != x.rows || !errors.Is(err, x.want) || (err == nil) != (x.want == nil) {
				t.Errorf("%d rows, %v; want %d, %v", n, err, x.rows, x.want)
			}
		})
	}
}

// What the server itself says to try again is tried again, in the same session if that is of use.
func TestWhatTheServerSaysToRepeat(t *testing.T) {
	t.Parallel()
	direct := open(t, url(server.Addr(t)), nil, lullpgx.Config{})
	exec(t, direct, "DROP TABLE IF EXISTS again")
	exec(t, direct, "CREATE TABLE again (n INT)")
	exec(t, direct, "INSERT INTO again VALUES (0)")
	d := newDependency(t, lull.Policy{})
	pool := open(t, url(server.Addr(t)), d, lullpgx.Config{}, func(c *pgxpool.Config) { c.MaxConns = 1 })
	session := func() (id int) {
		t.Helper()
		must.Succeed(pool.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&id))
		return id
	}
	all := func(ctx context.Context, q interface {
		Query(context.Context, string, ...any) (pgx.Rows, error)
	}) error {
		rows, err := q.Query(ctx, "SELECT * FROM again WHERE n >= $1", 0)
		if err != nil {
			return err
		}
		_, err = pgx.CollectRows(rows, pgx.RowToMap)
		return err
	}
	read := func() error {
		_, err := lullpgx.Read(t.Context(), d, pool, func(ctx context.Context, c *pgxpool.Conn) (int, error) { return 0, all(ctx, c) })
		return err
	}
	tx := func(opts pgx.TxOptions, op func(context.Context, pgx.Tx) error) error {
		return lullpgx.Tx(t.Context(), d, pool, opts, op)
	}
	write := func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE again SET n = 1")
		return err
	}
	must.Succeed(read())
	readOnly := pgx.TxOptions{AccessMode: pgx.ReadOnly}
	for _, x := range []struct {
		name, before string
		call         func() error
		elsewhere    bool
		want         error
	}{
		{"0A000 in a read", "ALTER TABLE again ADD COLUMN a INT", read, false, nil},
		{"0A000 in a transaction", "ALTER TABLE again ADD COLUMN b INT", func() error {
			return tx(pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error { return all(ctx, tx) })
		}, false, nil},
		{"another 0A000", "", func() error {
			_, err := lullpgx.Exec(t.Context(), d, pool, "INSERT INTO other.public.again VALUES (1)")
			return err
		}, false, lull.ErrPermanent},
		{"25006 in a statement", "read-only", func() error {
			_, err := lullpgx.Exec(t.Context(), d, pool, "UPDATE again SET n = 1")
			return err
		}, true, nil},
		{"25006 in a transaction", "read-only", func() error { return tx(pgx.TxOptions{}, write) }, true, nil},
		{"25006 of the caller's own", "", func() error { return tx(readOnly, write) }, false, lull.ErrPermanent},
		{"25P03", "", func() error {
			runs := 0
			return tx(pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
				if runs++; runs == 1 {
					if _, err := tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout=50"); err != nil {
						return err
					}
					exec(t, direct, "SELECT pg_sleep(1)") // it has ended the session then
				}
				return write(ctx, tx)
			})
		}, true, nil},
	} {
		before := session()
		switch x.before {
		case "":
		case "read-only":
			exec(t, pool, "SET default_transaction_read_only=on")
		default:
			exec(t, direct, x.before)
		}
		err := x.call()
		if after := session(); !errors.Is(err, x.want) || (err == nil) != (x.want == nil) || (before != after) != x.elsewhere {
			t.Errorf("%s: %v, in session %d, then %d; want %v, another one: %t", x.name, err, before, after, x.want, x.elsewhere)
		}
	}
}
