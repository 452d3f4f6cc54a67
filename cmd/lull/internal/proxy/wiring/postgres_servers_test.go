//go:build servers

package wiring

import (
	"database/sql"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
	"github.com/lullgo/lull/server/idempotency/storetest"
)

func postgresAt(addr string, connections int) *postgres {
	p := must.Have(parsePostgres("postgres://postgres@" + addr + "/postgres?sslmode=disable"))
	p.connections = connections
	return p
}

// The store keeps its contract over the proxy's own connections.
func TestPostgres(t *testing.T) {
	s, stop, err := postgresAt(databases.Addr(t), 16).open(t.Context())
	must.Succeed(err)
	defer stop()
	storetest.Run(t, func(*testing.T) idempotency.Store { return s }, storetest.Options{})
}

// A connection that a restart of the server has ended fails one call at most, and none if it was unused for a while.
func TestPostgresRestarts(t *testing.T) {
	server := databases.Own(t)
	s, stop, err := postgresAt(server.Addr(), 1).open(t.Context())
	must.Succeed(err)
	defer stop()
	claim := func(key string) error {
		_, err := s.Claim(t.Context(), idempotency.Claim{Key: key, Lease: time.Minute, Retention: time.Hour})
		return err
	}
	restart := func() {
		server.Kill()
		must.Succeed(server.Start())
	}
	must.Succeed(claim("before"))
	restart()
	_ = claim("at once")
	check.Is(t, claim("then"), nil, "the next claim")
	restart()
	time.Sleep(trustedFor)
	check.Is(t, claim("later"), nil, "a claim of a connection that was unused")
}

// A transaction in which a statement has failed is not committed, and a type that nobody knows is not guessed.
func TestPostgresFails(t *testing.T) {
	db := sql.OpenDB(postgresAt(databases.Addr(t), 2))
	defer db.Close()
	var n int64
	tx := must.Have(db.BeginTx(t.Context(), nil))
	if err := tx.QueryRow("SELECT 1/0").Scan(&n); err == nil {
		t.Error("1/0 has a result")
	}
	if err := tx.Commit(); err == nil {
		t.Error("a transaction that has failed is committed")
	}
	for _, query := range []string{"SELECT 1.5", "SELECT 'x'", "SELECT now()"} {
		if err := db.QueryRow(query).Scan(new(any)); err == nil {
			t.Errorf("%s has a result", query)
		}
	}
	if err := db.QueryRow("SELECT $1::timestamptz IS NULL", time.Now()).Scan(new(bool)); err == nil {
		t.Error("a time is a parameter")
	}
	must.Succeed(db.QueryRow("SELECT $1::bigint", -7).Scan(&n))
	check.Equal(t, n, -7, "a number")
}
