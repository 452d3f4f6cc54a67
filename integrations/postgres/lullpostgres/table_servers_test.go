//go:build servers

package lullpostgres

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
)

func TestNoTable(t *testing.T) {
	t.Parallel()
	pool := newPool(t, dsn(t))
	s := must.Have(New(pool, Config{Table: "no_such_table"}))
	c := request()
	_, claim := s.Claim(bg, c)
	_, transact := s.Transact(bg, c, nil)
	_, sweep := s.Sweep(bg)
	for call, err := range map[string]error{
		"Claim": claim, "Transact": transact, "Sweep": sweep, "Check": s.Check(bg),
		"Extend":   s.Extend(bg, c.Key, c.Token, 1, 1),
		"Complete": s.Complete(bg, c.Key, c.Token, nil, 1),
		"Release":  s.Release(bg, c.Key, c.Token),
	} {
		if !errors.Is(err, ErrNoTable) || !strings.Contains(err.Error(), "no_such_table") || !strings.Contains(err.Error(), "Migrate") {
			t.Errorf("%s without a table: %v", call, err)
		}
	}
	execute(t, pool, "CREATE TABLE IF NOT EXISTS another (key text, value text)")
	s = must.Have(New(pool, Config{Table: "another"}))
	check.Is(t, s.Migrate(bg), ErrNoTable, "Migrate where there is another table of that name")
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	at := place(t) // a schema with the table that Schema makes
	pool := newPool(t, at)
	schema := pool.Config().ConnConfig.RuntimeParams["search_path"]
	exact := must.Have(New(pool, Config{}))
	check.Is(t, exact.Check(bg), nil, "Schema")
	if _, err := pool.Exec(bg, Schema); err != nil {
		t.Errorf("Schema once more: %v", err)
	}
	s, err := New(pool, Config{Table: schema + ".Order"}) // a keyword, and a capital
	must.Succeed(err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			check.Is(t, s.Migrate(bg), nil, "Migrate, with others")
		})
	}
	wg.Wait()
	claims(t, s, request(), idempotency.Claimed)

	// The two tables are alike, and so are their indexes.
	describe := func(table string) (d string) {
		err := pool.QueryRow(bg, `SELECT (SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull, collname), ', ' ORDER BY attnum)
			FROM pg_attribute LEFT JOIN pg_collation c ON c.oid = attcollation WHERE attrelid = $1::regclass AND attnum > 0) || '; ' ||
			(SELECT string_agg(regexp_replace(indexdef, '.* USING', ''), ', ' ORDER BY indexdef) FROM pg_indexes WHERE schemaname = $2 AND tablename = $3)`,
			`"`+table+`"`, schema, table).Scan(&d)
		must.Succeed(err)
		return d
	}
	if a, b := describe("Order"), describe(DefaultTable); a != b {
		t.Errorf("Migrate makes\n%s, Schema\n%s", a, b)
	} else {
		t.Log(a)
	}

	// A role that may only use the table can call Migrate, too.
	execute(t, pool, "DROP ROLE IF EXISTS lull_user", "CREATE ROLE lull_user LOGIN",
		"GRANT USAGE ON SCHEMA "+schema+" TO lull_user",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "+schema+" TO lull_user")
	t.Cleanup(func() {
		pool.Exec(bg, "DROP OWNED BY lull_user")
		pool.Exec(bg, "DROP ROLE lull_user")
	})
	user := must.Have(New(newPool(t, strings.Replace(at, "postgres@", "lull_user@", 1)), Config{}))
	check.Is(t, user.Migrate(bg), nil, "Migrate without the right to create")
	c := request()
	claims(t, user, c, idempotency.Claimed)
	must.Succeed(user.Complete(bg, c.Key, c.Token, nil, time.Hour))
	must.Have(user.Sweep(bg))
}

// Migrate makes the table of any name that Config takes, for both kinds of database, beside tables of names that are
// made of it, and in either order. The table then serves as a store. Where a name is that of another's index, Migrate reports it.
func TestMigrateNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 50)
	names := []string{
		"", "my_" + DefaultTable, DefaultTable + "2", DefaultTable + "_" + DefaultTable,
		DefaultTable + "_forget_at", DefaultTable + "_pkey", DefaultTable + "_forget_at_forget_at",
		"key", "forget_at", "table", "user", "Order", "_", long,
		"%[1]s.my_2", "%[1]s.select", DefaultTable + "." + DefaultTable, "Table.Key", long + "." + long,
	}
	for _, kind := range []string{"pgx", "sql"} {
		schema := "s_" + strings.ToLower(rand.Text())
		pool := newPool(t, dsn(t)+"&search_path="+schema)
		execute(t, pool, `CREATE SCHEMA "`+schema+`"`)
		for _, name := range names {
			name := strings.ReplaceAll(name, "%[1]s", schema)
			if in, _, ok := strings.Cut(name, "."); ok {
				execute(t, pool, `CREATE SCHEMA IF NOT EXISTS "`+in+`"`)
			}
			s, err := New(pool, Config{Table: name})
			if kind == "sql" {
				s, err = NewSQL(stdlib.OpenDBFromPool(pool), Config{Table: name})
			}
			must.Succeed(err)
			for range 2 {
				err = s.Migrate(bg)
			}
			if err != nil {
				if !strings.HasSuffix(name, "_pkey") || !strings.Contains(err.Error(), name) {
					t.Errorf("%s, %s: %v", kind, name, err)
				}
				continue
			}
			c := request()
			claims(t, s, c, idempotency.Claimed)
			must.Succeed(s.Complete(bg, c.Key, c.Token, []byte("done"), time.Hour))
			claims(t, s, anew(c), idempotency.Replay)
			var indexes int
			if err := pool.QueryRow(bg, "SELECT count(*) FROM pg_index WHERE indrelid = $1::regclass", s.config.quoted()).Scan(&indexes); err != nil || indexes != 2 {
				t.Errorf("%s, %s has %d indexes, %v; want that of the key and that of forget_at", kind, name, indexes, err)
			}
			if strings.Contains(name, ".") { // in a schema that the other kind has, too
				execute(t, pool, "DROP TABLE "+s.config.quoted())
			}
		}
		slices.Reverse(names)
	}
}

// A refusal only reads: it takes no transaction number, so it writes nothing.
func TestRefusalsWriteNothing(t *testing.T) { // not beside others: the server counts transactions of all
	pool := newPool(t, dsn(t))
	s := newTable(t, pool, Config{})
	running, done, unknown := request(), request(), request()
	for _, c := range []idempotency.Claim{running, done, unknown} {
		claims(t, s, c, idempotency.Claimed)
	}
	must.Succeed(errors.Join(s.Complete(bg, done.Key, done.Token, nil, time.Hour), s.Extend(bg, unknown.Key, unknown.Token, 0, time.Hour)))
	other := anew(done)
	other.Fingerprint[0]++
	next := func() (n int64) {
		must.Succeed(pool.QueryRow(bg, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&n))
		return n
	}
	const n = 100
	before := next()
	for range n {
		claims(t, s, anew(running), idempotency.InFlight)
		claims(t, s, anew(done), idempotency.Replay)
		claims(t, s, anew(unknown), idempotency.Unknown)
		claims(t, s, other, idempotency.Mismatch)
		if a, err := s.Transact(bg, anew(done), nil); err != nil || a.State != idempotency.Replay {
			t.Fatal(a.State, err)
		}
	}
	if used := next() - before; used > n/2 { // some are autovacuum's
		t.Errorf("%d refusals took %d transaction numbers", 5*n, used)
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	pool := newPool(t, dsn(t))
	s := newTable(t, pool, Config{})
	execute(t, pool, "INSERT INTO "+s.config.quoted()+` SELECT 'old ' || n, '\x', '\x', false, now(), now() - n * interval '1 second'
		FROM generate_series(0, 2499) AS n`)
	owned, kept := request(), request()
	claims(t, s, owned, idempotency.Claimed)
	claims(t, s, kept, idempotency.Claimed)
	must.Succeed(s.Complete(bg, kept.Key, kept.Token, nil, time.Hour))
	ended, cancel := context.WithCancel(bg)
	cancel()
	if n, err := s.Sweep(ended); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("Sweep with a context that has ended: %d, %v", n, err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var total int64
	for range 4 {
		wg.Go(func() {
			n, err := s.Sweep(bg)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			total += n
		})
	}
	wg.Wait()
	if n, err := s.Sweep(bg); err != nil || total+n != 2500 {
		t.Errorf("four at once have deleted %d, and another %d, %v; want 2500", total, n, err)
	}
	claims(t, s, anew(owned), idempotency.InFlight)
	claims(t, s, anew(kept), idempotency.Replay)

	var plan string
	if err := pool.QueryRow(bg, "SELECT count(*)::text FROM "+s.config.quoted()).Scan(&plan); err != nil || plan != "2" {
		t.Errorf("%s rows are left, %v", plan, err)
	}

	short := request()
	short.Lease, short.Retention = 1, 1
	claims(t, s, short, idempotency.Claimed)
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	var deleted int64
	err := s.SweepEvery(ctx, time.Millisecond, func(n int64, err error) {
		if deleted += n; deleted > 0 || err != nil {
			cancel()
		}
	})
	if deleted != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("SweepEvery: %d, %v", deleted, err)
	}
	if err := s.SweepEvery(bg, 0, nil); err == nil {
		t.Error("SweepEvery(0) is fine")
	}
}
