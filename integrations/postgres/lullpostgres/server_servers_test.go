//go:build servers

package lullpostgres

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull/internal/dbserver"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
)

var server = dbserver.Shared{Start: func() (*dbserver.Server, error) {
	return start("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")
}}

func TestMain(m *testing.M) {
	pace.Overlap(16)
	if os.Getenv("CI") == "" && !dbserver.HasPostgres() {
		pace.Skip("^Example(NewSQL|TxFrom)?$")
	}
	code := m.Run()
	server.Close()
	os.Exit(code)
}

func start(options ...string) (*dbserver.Server, error) {
	return dbserver.Postgres(func(addr string) error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, connString(addr))
		if err == nil {
			conn.Close(ctx)
		}
		return err
	}, options...)
}

func connString(addr string) string {
	return "postgres://postgres@" + addr + "/postgres?sslmode=disable"
}

// dsn returns the connection string of the shared server.
func dsn(t testing.TB) string {
	t.Helper()
	return connString(server.Addr(t))
}

// newPool returns a pool of connections to the server at dsn.
func newPool(t testing.TB, dsn string, options ...string) *pgxpool.Pool {
	t.Helper()
	c := must.Have(pgxpool.ParseConfig(strings.Join(append([]string{dsn}, options...), "&")))
	c.MaxConns = 16
	pool := must.Have(pgxpool.NewWithConfig(context.Background(), c))
	t.Cleanup(pool.Close)
	return pool
}
