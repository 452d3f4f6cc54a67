package wiring

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"runtime"
	"time"

	"github.com/lib/pq"

	"github.com/lullgo/lull/integrations/postgres/lullpostgres"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
)

// parsePostgres reads the URL. The error has no part of it.
func parsePostgres(address string) (pq.Config, error) {
	if _, err := parse(address); err != nil {
		return pq.Config{}, err
	}
	c, err := pq.NewConfig(address)
	if err != nil {
		return pq.Config{}, errors.New("want postgres://USER@HOST/DATABASE, and settings that libpq has")
	}
	c.SSLMode = cmp.Or(c.SSLMode, pq.SSLModePrefer)
	c.BinaryParameters = true // one round trip, and nothing is prepared: poolers between may give each transaction another connection
	return c, nil
}

// openPostgres opens the store. It makes the table, if it is not there. (pgx would make the program 3 MB larger.)
func openPostgres(ctx context.Context, c pq.Config) (idempotency.Store, func() error, error) {
	db := sql.OpenDB(must.Have(pq.NewConnectorConfig(c)))
	most := max(4, runtime.NumCPU())
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	db.SetConnMaxLifetime(time.Hour)
	db.SetConnMaxIdleTime(30 * time.Minute)
	s := must.Have(lullpostgres.NewSQL(db, lullpostgres.Config{}))
	migrating, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := s.Migrate(migrating); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	sweeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	go s.SweepEvery(sweeping, time.Minute, nil)
	return s, func() error { stop(); return db.Close() }, nil
}
