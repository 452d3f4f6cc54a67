//go:build servers

package lullpostgres

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/idempotency/storetest"
)

func execute(t testing.TB, pool *pgxpool.Pool, queries ...string) {
	t.Helper()
	for _, q := range queries {
		if _, err := pool.Exec(context.Background(), q); err != nil {
			t.Fatal(q, err)
		}
	}
}

// newTable returns a Store with a table of its own.
func newTable(t testing.TB, pool *pgxpool.Pool, c Config) *Store {
	t.Helper()
	c.Table = "t_" + strings.ToLower(rand.Text())
	s := must.Have(New(pool, c))
	must.Succeed(s.Migrate(context.Background()))
	return s
}

// The contract, with each way to call the server. The ways of pgx differ in who encodes the
// parameters and how. The way without prepared statements is for a pooler that gives each
// transaction another connection.
func TestConformance(t *testing.T) {
	t.Parallel()
	at := dsn(t)
	for name, open := range map[string]func(t *testing.T) *Store{
		"pgx": func(t *testing.T) *Store { return newTable(t, newPool(t, at), Config{}) },
		"pgx, exec": func(t *testing.T) *Store {
			return newTable(t, newPool(t, at, "default_query_exec_mode=exec"), Config{})
		},
		"pgx, simple": func(t *testing.T) *Store {
			return newTable(t, newPool(t, at, "default_query_exec_mode=simple_protocol"), Config{})
		},
		"pgx, serializable": func(t *testing.T) *Store {
			return newTable(t, newPool(t, at, "default_transaction_isolation=serializable"), Config{})
		},
		"database/sql": func(t *testing.T) *Store { return newSQL(t, at, Config{}) },
		"database/sql, repeatable read": func(t *testing.T) *Store {
			return newSQL(t, at, Config{Isolation: sql.LevelRepeatableRead})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) idempotency.Store { return open(t) }, storetest.Options{})
		})
	}
}

func newSQL(t testing.TB, at string, c Config) *Store {
	t.Helper()
	conf := must.Have(pgx.ParseConfig(at))
	db := stdlib.OpenDB(*conf)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	t.Cleanup(func() { db.Close() })
	c.Table = "t_" + strings.ToLower(rand.Text())
	s := must.Have(NewSQL(db, c))
	must.Succeed(s.Migrate(context.Background()))
	return s
}

// place makes the objects that the servers of a matrix need, under names of its own.
func place(t *testing.T) string {
	at := dsn(t) + "&search_path=s_" + strings.ToLower(rand.Text())
	pool := newPool(t, at)
	execute(t, pool, "CREATE SCHEMA "+pool.Config().ConnConfig.RuntimeParams["search_path"], Schema, "CREATE TABLE effects (name text NOT NULL)")
	return at
}

// address returns the host and port in at, and at with others.
func address(at string) (string, func(string) string) {
	u, err := url.Parse(at)
	if err != nil {
		panic(err)
	}
	return u.Host, func(addr string) string { return strings.Replace(at, u.Host, addr, 1) }
}

func openAt(t *testing.T, at string) idempotency.Store {
	return must.Have(New(newPool(t, at), Config{}))
}

// Two processes are killed at each step. (Beside each other, for they wait for most of their time, but not beside other
// tests: if the server is too slow to answer, a claim is made that is not answered.)
func TestMatrix(t *testing.T) {
	t.Run("effect outside", matrixOutside)
	t.Run("transactional", matrixTransactional)
	t.Run("transactional, SQL", matrixTransactionalSQL)
}

func matrixOutside(t *testing.T) {
	t.Parallel()
	storetest.Matrix(t, storetest.Outliving{Place: place, Open: openAt, Address: address})
}

func effects(t *testing.T, at, name string) int {
	var n int
	must.Succeed(newPool(t, at).QueryRow(context.Background(), "SELECT count(*) FROM effects WHERE name = $1", name).Scan(&n))
	return n
}

// The effect is in the transaction of the record: it is there exactly once, always.
func matrixTransactional(t *testing.T) {
	t.Parallel()
	storetest.Matrix(t, storetest.Outliving{
		Place: place, Open: openAt, Address: address, Transactional: true, Effects: effects,
		Effect: func(ctx context.Context, _ idempotency.Store, name string) error {
			_, err := TxFrom(ctx).Exec(ctx, "INSERT INTO effects SELECT $1::text FROM pg_sleep(0.05)", name)
			return err
		},
	})
}

func matrixTransactionalSQL(t *testing.T) {
	t.Parallel()
	storetest.Matrix(t, storetest.Outliving{
		Place: place, Address: address, Transactional: true, Effects: effects,
		Open: func(t *testing.T, at string) idempotency.Store {
			return must.Have(NewSQL(stdlib.OpenDBFromPool(newPool(t, at)), Config{Isolation: sql.LevelReadCommitted}))
		},
		Effect: func(ctx context.Context, _ idempotency.Store, name string) error {
			_, err := SQLTxFrom(ctx).ExecContext(ctx, "INSERT INTO effects SELECT $1::text FROM pg_sleep(0.05)", name)
			return err
		},
	})
}

func request() idempotency.Claim {
	c := idempotency.Claim{Key: rand.Text(), Lease: time.Minute, Retention: time.Hour}
	rand.Read(c.Token[:])
	return c
}

func anew(c idempotency.Claim) idempotency.Claim {
	rand.Read(c.Token[:])
	return c
}
