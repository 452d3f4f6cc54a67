// Package lullsql puts the calls of a program to a database/sql database under a [lull.Policy]:
// dials, statements, reads and transactions.
//
//	d, err := lull.NewDependency("orders-db", lull.Policy{})
//	...
//	connector, err := lullsql.NewConnector(base, d, lullsql.Config{}) // base: the driver's own
//	...
//	db := sql.OpenDB(connector)
//	...
//	err = lullsql.Tx(ctx, d, db, nil, func(ctx context.Context, tx *sql.Tx) error {
//		...
//	})
//
// A careless retry costs most in a database: an INSERT whose answer was lost may have been carried
// out. So what may be repeated depends on what is known of the failure:
//
//	                      Exec        Read       Tx
//	never sent            repeated    repeated   repeated
//	undone by the server  a single    repeated   repeated, the first time at once
//	                      statement
//	connection broke      not         repeated   repeated before COMMIT, not after
//	timed out             not         if others  if others are answered, and before COMMIT
//	                                  are answered
//	an answer (a failed   not         not        not
//	constraint, no rows)
//
// "Never sent" means that the dial failed. (A driver.ErrBadConn should mean the same, but some
// drivers return it in other cases. lib/pq returns it for statements that were carried out. So Exec
// does not repeat after it.) "Undone" means a serialization failure or a deadlock, for example (40001, 40P01;
// MySQL 1205, 1213; SQLite busy). For [Exec] that is a proof only if the server carries the query out as a whole: a CALL, a
// script or DDL may have committed a part. After 40003, which CockroachDB sends if it does not know the
// outcome, nothing is repeated. docs/protocols.md has all codes, and what each of them proves.
// A server that is read-only refuses a write: it is made on another connection, and this one is closed.
//
// [Classify] recognises the errors of pgx, lib/pq,
// go-sql-driver/mysql and the drivers of SQLite by their types and codes, and imports none of them.
// If the meaning of an error is unknown, it asks the driver whether the connection still works
// (driver.Validator).
//
// Each retry pays from the budget of d, and each call learns from and obeys its breaker. Give the
// same d to lullhttp.WithDependencies, lullgrpc and lull.Do if they reach the same server: then there
// is one budget and one circuit for all of them.
//
// A policy's AttemptTimeout bounds one run of a statement, read or transaction. It ends the
// context, and the driver must obey. During COMMIT and ROLLBACK go-sql-driver/mysql does not obey:
// set readTimeout in its DSN. lib/pq asks the server to end the statement. If the server does not
// answer, it waits.
//
// # Dials
//
// When a database is down, database/sql dials for every statement. It dials three times if the
// driver returns a bad connection for a failure during the dial. A connector of [NewConnector] dials
// once, has a few dials in flight at most, and does not dial while the circuit is open. It works for
// the plain sql.DB too, and so for code that does not use lull: an ORM, generated queries.
//
// # Cost
//
// The bare client with a context.WithTimeout for each call makes 5 allocations more than without (a
// transaction 7). Beside that, a [Read] that succeeds makes none more. [Exec] makes 2: the connection that
// it takes, so that database/sql does not repeat the statement. [Tx] makes 2: one for its connection, and
// one because database/sql derives a context from the attempt's. A Read takes 0.26 µs more, an Exec
// 0.35, of which 0.1 are for the connection, and a Tx 0.42 (the least of 2,500 short rounds on a busy machine;
// go run ./lab/bench -group adapters compares them).
//
// # What it does not do
//
// It does not repeat a statement made with the plain sql.DB. database/sql itself does that, without
// a wait, for a driver.ErrBadConn. So the program is correct only if its driver returns that error
// only for what was not sent.
//
// It does not make a transaction idempotent. After [ErrOutcomeUnknown] the program has to read the
// state, or to use a key (package idempotency).
//
// It has been run with PostgreSQL 15 (pgx 5, lib/pq), MariaDB 10.11 (go-sql-driver/mysql) and SQLite
// (ncruces/go-sqlite3): module sqltest.
package lullsql
