//go:build servers

package lullpgx_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/postgres/lullpgx"
)

// What the guide and the comment of the package show, as it stands there.

func guideOpen(ctx context.Context, url string, d *lull.Dependency) error {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return err
	}
	if err := lullpgx.AddTo(config, d, lullpgx.Config{}); err != nil {
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	return pool.Ping(ctx)
}

func packageComment(ctx context.Context, url string) error {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return err
	}
	d, err := lull.NewDependency("orders-db", lull.Policy{})
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
	url := url(at(t))
	d, err := lull.NewDependency("orders-db", lull.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if err := guideOpen(t.Context(), url, d); err != nil {
		t.Error(err)
	}
	if err := packageComment(t.Context(), url); err != nil {
		t.Error(err)
	}
}
