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
// A store outside of the database can prevent that a request is carried out twice. It cannot prevent
// that a process dies between the handler's commit and its record. Then nobody knows the outcome,
// and the answer is 409. If the record is in the handler's own transaction,
// there is one commit: before it nothing has happened, after it everything has.
//
// With Config.Transactional the handler gets a transaction, from [TxFrom] (pgx) or [SQLTxFrom]
// (database/sql), and does everything in it:
//
//	killed                        effects      the retry
//	before COMMIT                 none         is carried out
//	after COMMIT                  one          gets the first one's response
//	while COMMIT is under way     none or one  one of the above, as the server decides
//
// An effect elsewhere, such as a mail or another service's API, is not rolled back with it. Record
// such a task in the transaction, and carry it out later (an outbox).
//
// Without Transactional a claim is committed before the handler runs, and the record after it. A
// request is carried out at most once. If a process dies in between, the client learns that the
// outcome is unknown. The store needs no connection while the handler runs.
//
// [New] takes a pgxpool.Pool and [NewSQL] a sql.DB, because the handler needs the transaction in
// the form that the rest of its code uses. NewSQL uses nothing of pgx. It was tested with
// lib/pq. A pooler that gives each transaction another connection works (PgBouncer, pool_mode =
// transaction).
//
// Connections: a handler with Transactional has a connection of the pool to itself while it runs.
// The pool needs as many as there are such handlers at a time, and some for claims. A handler
// that takes another connection from the same pool can wait for itself: use the transaction.
//
// An expired entry no longer exists, but its row stays until [Store.Sweep] deletes it.
// [Store.SweepEvery] calls Sweep for as long as a context lasts; any number of processes may:
//
//	go store.SweepEvery(ctx, time.Minute, nil)
//
// A claim is one round trip, and so is its record. With Transactional there are four: BEGIN, the
// claim, the record, COMMIT; the handler's own commit is saved.
//
// The store does not work on a replica, or with a table of another form: call [Store.Check] when
// a program starts. It was tested with PostgreSQL 15. The features that it needs (ON CONFLICT,
// MATERIALIZED) exist since 12.
//
// docs/guide.md has the rest, under "Once and no more": how claims avoid waiting, TCP keepalives,
// isolation levels, what survives a failure, and the costs.
package lullpostgres
