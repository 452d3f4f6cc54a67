// Package lullpostgres keeps the keys of package idempotency in a table of PostgreSQL:
// the store for services whose effects are in that database, and the one with which a
// request is carried out exactly once.
//
//	store, err := lullpostgres.New(pool, lullpostgres.Config{})
//	...
//	err = store.Migrate(ctx) // or run Schema with your migrations
//	keys, err := idempotency.New(store, idempotency.Config{Transactional: true})
//
// # Why
//
// A store beside the database can keep a request from being carried out twice, but not
// from stopping half-way: between the handler's commit and the record of it there is a
// moment in which a process can die, and after it nobody knows. The answer then is 409,
// outcome unknown, and a human. If the record is in the handler's own transaction that
// moment is gone. There is one commit: before it nothing has happened, after it
// everything has, and the next request with the key finds out which.
//
// # The two ways to use it
//
// With Config.Transactional the handler gets a transaction, from [TxFrom] (pgx) or
// [SQLTxFrom] (database/sql), and does in it all that it does:
//
//	killed                        effects      the retry
//	before COMMIT                 none         is carried out
//	after COMMIT                  one          gets the first one's response
//	while COMMIT is under way     none or one  as the server decides: one of the above
//
// What it does elsewhere, a mail or another service's API, is not rolled back with it:
// write down in the transaction that it is to be done, and do it later (an outbox).
//
// Without, the store is one like others: a claim is committed before the handler runs,
// and the record after it. A request is carried out at most once, and where a process
// died in between, that is said. It needs no connection while the handler runs.
//
// The tests kill processes (SIGKILL) at each step of the protocol in both modes, and
// with Transactional also at any moment, in the middle of COMMIT too: each request has
// one effect in the end, and its record is there.
//
// # pgx and database/sql
//
// [New] takes a pgxpool.Pool and [NewSQL] a sql.DB, because the handler wants the
// transaction in the form in which the rest of its code has it, and the one cannot be
// made of the other. Behind that both are six methods, and the same statements. NewSQL
// uses nothing of pgx, and has been run with lib/pq.
//
// # A claim is one statement
//
//	WITH old AS (what is there), may AS (does it let us, and is the key free),
//	     new AS (INSERT ... ON CONFLICT DO UPDATE ... WHERE ... RETURNING) SELECT ...
//
// The time is clock_timestamp(), the server's, evaluated once for each statement. A claim
// that old refuses (replay, in flight, mismatch, unknown) writes nothing: it takes no row
// lock, no transaction number, and does not wait for the disk, so a client that polls
// costs a read. Where old lets it pass, the unique index decides, with the row as it is
// by then; if another came in between, the statement is made anew.
//
// # Nobody waits for a handler
//
// A row that a transaction has inserted and not committed is visible to nobody, but who
// inserts the same key waits for it. The others should not wait but be told that the
// request is in flight. FOR UPDATE NOWAIT or SKIP LOCKED cannot tell, as there is no row
// yet that could be locked; a lock_timeout waits first, and ends the transaction. So
// whoever writes asks for an advisory lock first, whose number is made of the table's
// name and the key (64 bits of SHA-256), and does not wait for that either: Transact
// takes it alone (pg_try_advisory_xact_lock), the other calls share it. Who does not get
// it is told in flight; an owner who was given up, and comes back while its successor's
// transaction is open, gets an error that is no answer yet.
//
// The lock spares waiting; it decides nothing. If two keys have the same number, which
// is one in 2^64, or another program uses that number, one is in flight while the other
// is, and is carried out later. If there were no lock, claims would wait. In neither
// case would a handler run twice: that is the unique index.
//
// It is a lock of the transaction, not of the session, and there is nothing else that
// belongs to a session. So it works through a pooler that gives each transaction another
// connection (PgBouncer, pool_mode = transaction). Prepared statements may not, that is
// pgx's part: default_query_exec_mode=exec in the connection string, or PgBouncer 1.21
// with max_prepared_statements. (Run with PgBouncer 1.18, exec and simple_protocol.)
//
// # Connections
//
// A handler with Transactional has a connection of the pool to itself while it runs. The
// pool should have as many as there are such handlers at a time, and some for claims;
// where there are none left, requests wait for one, until their deadline. A handler that
// takes another connection from the same pool can wait for itself: use the transaction.
//
// A process that is killed closes its connections, and the server rolls back at once. If
// its machine is cut off instead, the server learns it from TCP, by default after two
// hours, and the key is in flight until then. Have it learn sooner, in the connection
// string or the server's configuration:
//
//	tcp_keepalives_idle=30 tcp_keepalives_interval=10 tcp_keepalives_count=3
//
// idle_in_transaction_session_timeout bounds handlers that hang. Both end a transaction,
// and so a request that is carried out by the next attempt.
//
// # Isolation
//
// Config.Isolation is that of the handler's transaction; its statements and the store's
// two are in one. The store is right at each level, and with each
// default_transaction_isolation. At repeatable read and serializable a transaction can
// fail because of others, at the handler's statements or at the commit. It is rolled
// back, the client gets 503 and tries again. The handler is not called again in the same
// request, because it may have done what no database rolls back. Under serializable,
// keys that are neighbours in the index can fail each other; where read committed with
// explicit row locks will do, it fails less.
//
// # What survives what
//
// What PostgreSQL has committed: with its defaults, everything but the loss of its disk.
// If synchronous_commit is off, or a replica takes over that did not have it all
// (asynchronous replication), the last commits may be lost. A claim that was lost lets a
// handler run twice. With Transactional, record and effect are lost together, and the
// retry does it again: still once. Do not make the table UNLOGGED: it is emptied after a
// crash.
//
// # The table grows
//
// An entry past its time does not exist any more, but its row is there until [Store.Sweep]
// deletes it, in batches of a thousand that are found by an index, and that skip what
// others hold. [Store.SweepEvery] does so for as long as a context lasts:
//
//	go store.SweepEvery(ctx, time.Minute, nil)
//
// Any number of processes may. The room is used again after autovacuum, as always.
//
// # Cost
//
// Round trips: one for a claim, one for its record. With Transactional four: BEGIN, the
// claim, the record, COMMIT; the handler's own commit is saved. With 16 workers,
// server, client and disk on one virtual machine with two cores (PostgreSQL 15, go test
// -bench Store, records of 2 KiB), requests a second:
//
//	                         fsync     fsync=off
//	claim                    9,700        18,000
//	claim, complete          3,200         9,800
//	Transact                 2,500         7,300
//	replay                  19,000        23,000
//
// (medians of five, on a machine that had other work: up to a third more or less).
//
// Records of 2 KB and more are compressed by the server.
//
// # What it does not do
//
// It does not work on a replica, nor where the table is another's: [Store.Check] tells
// at the start of a program. It has been run with PostgreSQL 15; what it needs (ON
// CONFLICT, MATERIALIZED) is there since 12.
package lullpostgres
