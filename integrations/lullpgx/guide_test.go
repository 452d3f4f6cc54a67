package lullpgx_test

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullpgx"
)

// What the guide shows must compile as it stands there; other tests run it.
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
	pool.Close()
	return nil
}

var _ = guideOpen
