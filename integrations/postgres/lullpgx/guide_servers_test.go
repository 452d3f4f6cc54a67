//go:build servers

package lullpgx_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/postgres/lullpgx"
	"github.com/lullgo/lull/internal/must"
)

// What the guide and the comment of the package show, as it stands there.

func guide(ctx context.Context, url string) error {
	d, err := lull.NewDependency("orders-db", lull.Policy{})
	if err != nil {
		return err
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return err
	}
	err = lullpgx.AddTo(config, d, lullpgx.Config{})
	if err != nil {
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	err = lullpgx.Tx(ctx, d, pool, pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT 1")
		return err
	})
	return err
}

func TestWhatTheDocsShow(t *testing.T) {
	t.Parallel()
	must.Succeed(guide(t.Context(), url(server.Addr(t))))
}
