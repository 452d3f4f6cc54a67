//go:build servers

package lullpostgres

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
)

// What the comment of the package shows, as it stands there: with the zero Config.
func packageComment(ctx context.Context, pool *pgxpool.Pool) (*idempotency.Middleware, error) {
	store, err := New(pool, Config{})
	if err != nil {
		return nil, err
	}
	err = store.Migrate(ctx) // or run Schema with your migrations
	if err != nil {
		return nil, err
	}
	go store.SweepEvery(ctx, time.Minute, nil)
	keys, err := idempotency.New(store, idempotency.Config{Transactional: true})
	return keys, err
}

func TestWhatTheDocsShow(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	must.Have(packageComment(ctx, newPool(t, dsn(t))))
}

// Database returns the address of a new schema with the given tables, for the examples.
func Database(tables string) (string, error) {
	shared, err := server.Server()
	if err != nil {
		return "", err
	}
	ctx, name := context.Background(), "e_"+strings.ToLower(rand.Text())
	at := connString(shared.Addr()) + "&search_path=" + name
	conn, err := pgx.Connect(ctx, at)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "CREATE SCHEMA "+name+"; "+tables)
	return at, err
}
