//go:build servers

package lullpgx_test

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull/internal/dbserver"
	"github.com/lullgo/lull/internal/pace"
)

var server = dbserver.Shared{Start: func() (*dbserver.Server, error) {
	return dbserver.Postgres(func(addr string) error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, url(addr))
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	}, "-c", "fsync=off")
}}

func TestMain(m *testing.M) {
	pace.Overlap(16)
	code := m.Run()
	server.Close()
	os.Exit(code)
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
