//go:build servers

package lullpostgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull/internal/dbserver"
	"github.com/lullgo/lull/internal/pace"
)

// useServer is the variable that names a server to use instead of one that the tests start: a
// connection string of a role that may create tables.
const useServer = "LULLPOSTGRES_SERVER"

// server is the PostgreSQL of these tests, started by the first test that needs it.
var server struct {
	once   sync.Once
	dsn    string
	err    error
	absent bool
	stop   func()
}

func TestMain(m *testing.M) {
	pace.Overlap(16)
	if os.Getenv("CI") == "" && os.Getenv(useServer) == "" && !dbserver.HasPostgres() {
		pace.Skip("^Example(NewSQL|TxFrom)?$")
	}
	code := m.Run()
	if server.stop != nil {
		server.stop()
	}
	os.Exit(code)
}

// dsn returns the address of the server. Without one the test is skipped; with CI set it fails.
func dsn(t testing.TB) string {
	t.Helper()
	server.once.Do(startShared)
	if server.absent && os.Getenv("CI") == "" {
		t.Skip(server.err)
	}
	if server.err != nil {
		t.Fatal(server.err)
	}
	return server.dsn
}

func startShared() {
	if server.dsn = os.Getenv(useServer); server.dsn == "" {
		server.dsn, server.stop, server.absent, server.err = start("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")
	}
}

// start starts a server on a free port of 127.0.0.1, in a new directory.
func start(options ...string) (dsn string, stop func(), absent bool, err error) {
	at := func(addr string) string { return "postgres://postgres@" + addr + "/postgres?sslmode=disable" }
	s, err := dbserver.Postgres(func(addr string) error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, at(addr))
		if err == nil {
			conn.Close(ctx)
		}
		return err
	}, options...)
	if err != nil {
		return "", nil, errors.Is(err, dbserver.ErrAbsent), fmt.Errorf("%w, or name a server in %s", err, useServer)
	}
	return at(s.Addr()), s.Close, false, nil
}

// newPool returns a pool of connections to the server at dsn.
func newPool(t testing.TB, dsn string, options ...string) *pgxpool.Pool {
	t.Helper()
	c, err := pgxpool.ParseConfig(strings.Join(append([]string{dsn}, options...), "&"))
	if err != nil {
		t.Fatal(err)
	}
	c.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
