package lullpostgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull/idempotency"
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
	if _, err := packageComment(ctx, newPool(t, dsn(t))); err != nil {
		t.Error(err)
	}
}
