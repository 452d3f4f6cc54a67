// Package lullpgx makes what a program does with a pool of pgx version 5 calls under a
// [lull.Policy]: dials, statements, reads and transactions. It is package lullsql for programs
// that use pgx without database/sql.
//
//	config, err := pgxpool.ParseConfig(url)
//	...
//	d, err := lull.NewDependency("orders-db", lull.Policy{})
//	...
//	err = lullpgx.AddTo(config, d, lullpgx.Config{})
//	...
//	pool, err := pgxpool.NewWithConfig(ctx, config)
//	...
//	err = lullpgx.Tx(ctx, d, pool, pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
//		...
//	})
//
// What is repeated depends on what is known of the failure:
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
// "Never sent" is a dial that failed, or an error for which pgconn.SafeToRetry is true. "conn
// closed" is an exception: pgx 5.12 also returns it for a COMMIT that was sent and whose answer was
// cut off.
// "Undone" is a serialization failure or a deadlock, for example (40001, 40P01). For [Exec] that is a proof only if the
// server carries the query out as a whole: a CALL, a script or DDL may have committed a part. After 40003, which CockroachDB
// sends if it does not know the outcome, nothing is repeated. docs/protocols.md has all codes, and what each of them proves. A server that is
// read-only refuses a write: it is made on another connection, and this one is closed.
//
// Each retry pays from the budget of d, and each call learns from and obeys its breaker. Give the
// same d to lullhttp.WithDependencies, lullgrpc and lull.Do if they reach the same server: then
// there is one budget and one circuit for all of them. A call for a request that is itself a retry is not
// repeated (package inbound).
//
// A policy's AttemptTimeout bounds one run of a statement, read or transaction. When it ends, pgx
// closes the connection.
//
// # Dials
//
// A pool dials when a connection is missing, for as many callers as MaxConns allows, and in the
// background. With [AddTo] a few dials are in flight at most, and none while the circuit is open.
// With sslmode=prefer, pgx's default, and with allow, pgx dials an address that has just failed a
// second time, for another mode of TLS. AddTo prevents that. This works for statements made with the plain pool,
// too.
//
// # Cost
//
// The bare pool with a context.WithTimeout for each call makes 7 allocations more than without.
// Beside that, a call that succeeds makes 1 more, and a transaction 3 (go test -bench Cost, in this
// folder): pgx watches the context of each statement, BEGIN and COMMIT included. Under the attempt's
// context, which lull.Progress can extend, that takes 3 allocations for each. Under one of package
// context it takes 2 for the first.
//
// # What it does not do
//
// It does not repeat a statement made with the plain pool.
//
// It does not make a transaction idempotent. After [ErrOutcomeUnknown] the program has to read the
// state, or to use a key (package idempotency).
//
// It has been run with PostgreSQL 15.
package lullpgx
