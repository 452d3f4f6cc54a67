// Package lullpostgres keeps the keys of package idempotency in a table of PostgreSQL. It is the
// store for services whose effects are in that database, and the one with which a request is
// carried out exactly once.
//
//	store, err := lullpostgres.New(pool, lullpostgres.Config{})
//	...
//	err = store.Migrate(ctx) // or run Schema with your migrations
//	...
//	keys, err := idempotency.New(store, idempotency.Config{Transactional: true})
//
// With Config.Transactional the handler gets a transaction, from [TxFrom] (pgx) or [SQLTxFrom]
// (database/sql), and does everything in it. The record is in the same transaction: before its COMMIT
// nothing has happened, after it everything has. An expired entry no longer exists, but its row stays
// until [Store.Sweep] deletes it:
//
//	go store.SweepEvery(ctx, time.Minute, nil)
//
// A claim is one round trip, and so is its record. With Transactional there are four; the handler's
// own commit is saved. The package was tested with PostgreSQL 15. The features that it needs (ON CONFLICT,
// MATERIALIZED) exist since 12. docs/servers.md has the rest, under "Once and no more".
package lullpostgres
