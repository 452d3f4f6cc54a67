//go:build servers

package lullpgx_test

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull/internal/dbserver"
	"github.com/lullgo/lull/internal/pace"
)

// shared is the server of the tests that neither end nor fill it.
var shared struct {
	once   sync.Once
	server *dbserver.Server
	err    error
}

func TestMain(m *testing.M) {
	pace.Overlap(16)
	code := m.Run()
	if shared.server != nil {
		shared.server.Close()
	}
	os.Exit(code)
}

func start() (*dbserver.Server, error) {
	return dbserver.Postgres(func(addr string) error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, url(addr))
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	}, "-c", "fsync=off")
}

func need(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, dbserver.ErrAbsent) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run starts a server of the test's own.
func run(t testing.TB) *dbserver.Server {
	t.Helper()
	s, err := start()
	need(t, err)
	t.Cleanup(s.Close)
	return s
}

// at is the address of the shared server.
func at(t testing.TB) string {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = start() })
	need(t, shared.err)
	return shared.server.Addr()
}

// wrapDials lets wrap make a connection of each that is dialled.
func wrapDials(c *pgxpool.Config, wrap func(net.Conn) net.Conn) {
	dial := c.ConnConfig.DialFunc
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return wrap(conn), nil
	}
}

func exec(t testing.TB, pool *pgxpool.Pool, query string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), query); err != nil {
		t.Fatal(query, err)
	}
}
